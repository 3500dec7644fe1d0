"""The last stage of a recipe: rows, pictures of them, tests and a page."""

import csv
import io
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from omegaconf import DictConfig

from ...common.run_files import PUBLISHED, PUBLISHED_COLUMNS, REPORT, ROWS, TESTS, TRIALS
from ...evaluation.metrics.registry import registered
from ..checks import decoding_columns
from ..placeholders import OUT, Deferred, Word, folder, shell_of
from ..recipe import (
    CHECKPOINT,
    TEXT,
    Corpus,
    Parameters,
    generation_flags,
    judges,
    language_models,
    noise_flags,
    noise_of,
    task_of,
    words,
)
from ..score_checks import score_files
from ..stage import Stage

_EVALUATE: Tuple[Word, ...] = ("python", "-m", "fairseq_eisl.evaluation")
_ROWS: Tuple[Word, ...] = ("--rows", OUT / ROWS)
# The recipe has joined the pieces itself: words that look like pieces do not cost a training.
_PLAIN = "--plain-words"


class Translated(NamedTuple):
    """The test set by the system of a training, in the way of a variant: what ``stage`` made."""

    training: str
    system: str
    stage: str
    variant: DictConfig

    @property
    def log(self) -> Deferred:
        return folder(self.stage) / "test.out"


def scores(recipe: DictConfig, logs: List[Translated], stages: List[Stage]) -> Stage:
    """Rows, in the order of the trainings and variants, pictures of them, and a page."""
    by_system = {log.system: log.training for log in logs}
    names = list(by_system.values())
    curves = {system: folder(name) / "log" for system, name in by_system.items()}
    start = _curve_start(recipe, names)
    data = recipe.data
    report: Dict[str, Any] = {  # the keys of run_files.Report
        "title": recipe.title,
        "settings": {key: str(value) for key, value in _settings(recipe).items()},
        "commands": [[s.name, _shown(s, line)] for s in stages for line in s.commands],
        "source": folder("prepare") / (data.test_source or f"test.{data.source}"),
        "reference": folder("prepare") / data.shown_reference
        if data.shown_reference
        else _reference(recipe),
        "systems": {log.system: log.log for log in _firsts(logs)},
        "curves": {} if start == "zero" else curves,
        **({"curve_start": start} if start == "last" else {}),
    }
    files: List[Tuple[str, Any]] = [(REPORT, report)]
    published = _published(recipe, names)
    if published is not None:
        files.append((PUBLISHED, published))
    if recipe.tried:
        files.append((TRIALS, _table(list(recipe.tried))))
    tests = _tests(recipe, logs)
    commands = [_row(recipe, log) for log in logs]
    commands.append(_curve(recipe, curves, start))
    commands += [*tests, *_pictures(recipe, bool(tests)), _page(published is not None)]
    needs = dict.fromkeys(["prepare", *names, *judges(recipe), *(log.stage for log in logs)])
    return Stage(
        "score",
        tuple(map(tuple, commands)),
        tuple(needs),
        reads=score_files(recipe),
        files=tuple(files),
    )


def _firsts(logs: List[Translated]) -> List[Translated]:
    """The first way to decode of each system."""
    found: Dict[str, Translated] = {}
    for log in logs:
        found.setdefault(log.system, log)
    return list(found.values())


def _reference(recipe: DictConfig) -> Deferred:
    return folder("prepare") / (recipe.data.test_reference or f"test.{recipe.data.target}")


def _row(recipe: DictConfig, log: Translated) -> List[Word]:
    """The command that appends a row."""
    columns = {
        "system": log.system,
        **_training_columns(recipe, log.training),
        "test_set": recipe.data.test_set,
        "model": recipe.model_name,
        "recipe": recipe.name,
        "overrides": " ".join(recipe.overrides) or None,
        **_decoding(recipe, log.training, log.variant),
        **recipe.columns,
        **recipe.train[log.training].columns,
        **log.variant.columns,
    }
    command = [*_EVALUATE, "score", "--log", log.log, "--reference", _reference(recipe)]
    stages = {"training": log.training, "translation": log.stage}
    for flag in (flag for metric in registered() for flag in metric.flags):
        if flag.in_run is not None:
            kind, file = flag.in_run
            command += [flag.name, folder(stages[kind]) / file]
    for name, value in recipe.score.items():
        if value not in (None, False):
            command += [f"--{name}", _value(str(value))]
    return [*command, _PLAIN, *_ROWS, "--set", *_pairs(columns)]


def _value(text: str) -> Word:
    """The value of a flag of ``score``, with the place of what it names."""
    if text.startswith(CHECKPOINT):
        return folder(text[len(CHECKPOINT) :]) / "checkpoint_best.pt"
    if text.startswith(TEXT):
        return folder("prepare") / text[len(TEXT) :]
    return text


def _curve_start(recipe: DictConfig, names: List[str]) -> str:
    """Where curves begin: behind the best or the last validation of the training before, or, where
    they do not all begin there, at zero."""
    later = [recipe.train[name] for name in names[1:]]
    if [training.start for training in later] != names[:-1]:
        return "zero"
    ways = {training.start_checkpoint.name for training in later} or {"best"}
    return ways.pop() if len(ways) == 1 else "zero"


def _curve(recipe: DictConfig, curves: Dict[str, Deferred], start: str) -> List[Word]:
    """The command that draws the trainings' validation scores."""
    command = [*_EVALUATE, "curve", "--log", *(f"{name}=" + log for name, log in curves.items())]
    command += ["--out", OUT / "curve.png", "--start", start]
    return [*command, f"--title={recipe.title}"]


def _tests(recipe: DictConfig, logs: List[Translated]) -> List[List[Word]]:
    """One test for each way to decode; the first system is the baseline."""
    groups: Dict[str, List[Translated]] = {}
    for log in logs:
        groups.setdefault(str(log.variant), []).append(log)
    commands = []
    for group in groups.values():
        if len(group) < 2:
            continue
        command = [*_EVALUATE, "significance", "--reference", _reference(recipe), "--system"]
        command += [f"{log.system}=" + log.log for log in group]
        each = [
            {
                **_training_columns(recipe, log.training),
                **_decoding(recipe, log.training, log.variant),
            }
            for log in group
        ]
        # What holds for every system of the test.
        columns = {k: v for k, v in each[0].items() if all(e.get(k) == v for e in each)}
        columns.update(group[0].variant.columns)
        commands.append([*command, _PLAIN, "--rows", OUT / TESTS, "--set", *_pairs(columns)])
    return commands


def _pictures(recipe: DictConfig, tested: bool) -> List[List[Word]]:
    """The commands that draw the rows."""
    # Rows of the first variant: they have no value where only others have a column.
    first: Dict[str, Any] = {name: "" for part in recipe.variants for name in part.columns}
    first.update(recipe.variants[0].columns if recipe.variants else {})
    tests: List[Word] = ["--tests", OUT / TESTS] if tested else []
    commands = [[*_EVALUATE, "plot", *_ROWS, *_where(first), *tests, "--out", OUT / "compare.png"]]
    if len({variant.columns.get("iterations") for variant in recipe.variants}) > 1:
        first.pop("iterations", None)
        command = [*_EVALUATE, "iterations", *_ROWS, *_where(first), *tests]
        commands.append([*command, "--out", OUT / "iterations.png"])
    if recipe.score.get("style-classifier"):  # there is an accuracy
        command = [*_EVALUATE, "plot", "--kind", "style", *_ROWS, *_where(first), *tests]
        commands.append([*command, "--out", OUT / "style.png"])
    return commands


def _page(published: bool) -> List[Word]:
    command = [*_EVALUATE, "report", "--run", OUT, _PLAIN, "--out", OUT / "report.html"]
    return [*command, "--published", OUT / PUBLISHED] if published else command


def _shown(stage: Stage, line: Tuple[Word, ...]) -> Deferred:
    """A command as another stage names it, to which ``OUT`` would be its own folder."""
    own = folder(stage.name)
    return shell_of(tuple(w if isinstance(w, str) else w.renamed(OUT, own) for w in line))


def _training_columns(recipe: DictConfig, name: str) -> Dict[str, Any]:
    """The columns that say what a training got."""
    noise = noise_of(recipe, name)
    if noise == "none" and recipe.train[name].corpus == Corpus.distilled:
        noise = noise_of(recipe, recipe.teacher)  # what its targets come from
    noise_seed = None if noise == "none" else recipe.noise_seed
    return {"noise": noise, "noise_seed": noise_seed, "seed": recipe.seed}


def _decoding(recipe: DictConfig, name: str, variant: DictConfig) -> Dict[str, Any]:
    """The columns that say how a training's model was decoded."""
    flags = generation_flags(recipe, name, variant.flags)
    return decoding_columns(task_of(recipe, name), flags, bool(language_models(recipe)))


def _pairs(columns: Dict[str, Any]) -> List[str]:
    """``key=value`` words; a column without a value has none."""
    return [f"{key}={value}" for key, value in columns.items() if value is not None]


def _where(columns: Dict[str, Any]) -> List[str]:
    pairs = _pairs(columns)
    return ["--where", *pairs] if pairs else []


def _settings(recipe: DictConfig) -> Dict[str, Any]:
    """What a reader of the results wants to know first."""
    found = {key: recipe[key] for key in ("model_name", "noise", "seed", "average")}
    found["test set"] = recipe.data.test_set
    for name, training in recipe.train.items():
        flags = " ".join(words(noise_flags(recipe, name), training.flags))
        start = f"the {training.start_checkpoint.name} checkpoint of {training.start}"
        if training.start_parameters == Parameters.shared:
            start = f"the parameters shared with {start}"
        found[f"training {name}"] = flags + (f" (from {start})" if training.start else "")
    return {key: value for key, value in found.items() if value is not None}


def _published(recipe: DictConfig, names: List[str]) -> Optional[str]:
    """Scores of the paper as a table for the page, where its noise is that of all trainings."""
    noises = {noise_of(recipe, name) for name in names}
    if not recipe.published or noises != {recipe.published_for or recipe.noise}:
        return None
    rows = [
        dict(zip(PUBLISHED_COLUMNS, (recipe.noise, system, bleu, recipe.published_source)))
        for system, bleu in recipe.published.items()
    ]
    return _table(rows)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as the text of a CSV file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(dict.fromkeys(k for row in rows for k in row)), restval="",
                            lineterminator="\n")  # fmt: skip
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
