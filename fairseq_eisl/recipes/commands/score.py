"""The last stage of a recipe: rows, pictures of them, tests and a page."""

import csv
import io
import re
from typing import Any, Dict, List, Tuple

from omegaconf import DictConfig

from .checks import decoding_columns
from .recipe import noise_flags, noise_of, task_of, words
from .stage import Stage, escaped, shell

# The recipe has joined the pieces itself: words that look like pieces do not cost a training.
_PLAIN = ["--plain-words"]


def scores(recipe: DictConfig, logs: list, stages: List[Stage]) -> Stage:
    """Rows, in the order of the trainings and variants, pictures of them, and a page."""
    evaluate = ["python", "-m", "fairseq_eisl.evaluation"]
    rows = ["--rows", "{out}/rows.csv"]
    reference = f"{{prepare}}/test.{recipe.data.target}"
    commands = []
    for name, system, stage, variant in logs:
        columns = {
            "system": system,
            **_training_columns(recipe, name),
            "test_set": recipe.data.test_set,
            "model": recipe.model_name,
            "recipe": recipe.name,
            "overrides": " ".join(recipe.overrides) or None,
            **_decoding(recipe, name, variant),
            **recipe.columns,
            **variant.columns,
        }
        command = [*evaluate, "score", "--log", f"{{{stage}}}/test.out", "--reference", reference]
        command += ["--training-log", f"{{{name}}}/log", *_PLAIN]
        commands.append([*command, *rows, "--set", *_pairs(columns)])
    by_system = {system: name for name, system, _, _ in logs}
    curves = {escaped(system): f"{{{name}}}/log" for system, name in by_system.items()}
    names = list(by_system.values())
    # One after the other, or each from the same start: then the updates begin at zero.
    chain = all(recipe.train[b].start == a for a, b in zip(names, names[1:]))
    command = [*evaluate, "curve", "--log", *(f"{name}={log}" for name, log in curves.items())]
    command += ["--out", "{out}/curve.png", "--start", "best" if chain else "zero"]
    commands.append([*command, f"--title={escaped(recipe.title)}"])
    # One test for each way to decode; the first system is the baseline.
    groups: Dict[str, list] = {}
    for name, system, stage, variant in logs:
        groups.setdefault(str(variant), []).append((name, system, stage, variant))
    tested = False
    for group in groups.values():
        if len(group) > 1:
            tested = True
            command = [*evaluate, "significance", "--reference", reference, "--system"]
            command += [f"{escaped(system)}={{{stage}}}/test.out" for _, system, stage, _ in group]
            each = [
                {**_training_columns(recipe, name), **_decoding(recipe, name, variant)}
                for name, _, _, variant in group
            ]
            # What holds for every system of the test.
            columns = {k: v for k, v in each[0].items() if all(e.get(k) == v for e in each)}
            columns.update(group[0][3].columns)
            command += [*_PLAIN, "--rows", "{out}/significance.csv", "--set"]
            commands.append([*command, *_pairs(columns)])
    first = dict(recipe.variants[0].columns) if recipe.variants else {}
    tests = ["--tests", "{out}/significance.csv"] if tested else []
    command = [*evaluate, "plot", *rows, *_where(first), *tests]
    commands.append([*command, "--out", "{out}/compare.png"])
    if len({variant.columns.get("iterations") for variant in recipe.variants}) > 1:
        first.pop("iterations", None)
        command = [*evaluate, "iterations", *rows, *_where(first), *tests]
        commands.append([*command, "--out", "{out}/iterations.png"])
    about: Dict[str, Any] = {
        "title": escaped(recipe.title),
        "settings": {escaped(key): escaped(value) for key, value in _settings(recipe).items()},
        "commands": [[s.name, shell(_placed(s, line))] for s in stages for line in s.commands],
        "source": f"{{prepare}}/test.{recipe.data.source}",
        "reference": reference,
        "systems": {escaped(s): f"{{{log}}}/test.out" for _, s, log, _ in reversed(logs)},
        "curves": curves if chain else {},
    }
    about["systems"] = {escaped(s): about["systems"][escaped(s)] for s in by_system}
    files: List[Tuple[str, Any]] = [("report.json", about)]
    command = [*evaluate, "report", "--run", "{out}", *_PLAIN, "--out", "{out}/report.html"]
    noises = {noise_of(recipe, name) for name in names}
    if recipe.published and noises == {recipe.published_for or recipe.noise}:
        files.append(("published.csv", escaped(_published(recipe))))
        command += ["--published", "{out}/published.csv"]
    commands.append(command)
    needs = dict.fromkeys(["prepare", *names, *(stage for _, _, stage, _ in logs)])
    return Stage("score", tuple(map(tuple, commands)), tuple(needs), files=tuple(files))


def _placed(stage: Stage, line: Tuple[str, ...]) -> List[str]:
    """A command as another stage names it, to which ``{out}`` would be its own folder."""
    return [re.sub(r"(?<!\{)\{out\}", f"{{{stage.name}}}", word) for word in line]


def _training_columns(recipe: DictConfig, name: str) -> Dict[str, Any]:
    """The columns that say what a training got."""
    noise = noise_of(recipe, name)
    noise_seed = None if noise == "none" else recipe.noise_seed
    return {"noise": noise, "noise_seed": noise_seed, "seed": recipe.seed}


def _decoding(recipe: DictConfig, name: str, variant: DictConfig) -> Dict[str, Any]:
    """The columns that say how a training's model was decoded."""
    return decoding_columns(task_of(recipe, name), {**recipe.generate, **variant.flags})


def _pairs(columns: Dict[str, Any]) -> List[str]:
    """``key=value`` words; a column without a value has none."""
    return [escaped(f"{key}={value}") for key, value in columns.items() if value is not None]


def _where(columns: Dict[str, Any]) -> List[str]:
    pairs = _pairs(columns)
    return ["--where", *pairs] if pairs else []


def _settings(recipe: DictConfig) -> Dict[str, Any]:
    """What a reader of the results wants to know first."""
    found = {key: recipe[key] for key in ("model_name", "noise", "seed", "average")}
    found["test set"] = recipe.data.test_set
    for name, training in recipe.train.items():
        flags = " ".join(words(noise_flags(recipe, name), training.flags))
        found[f"training {name}"] = flags + (f" (from {training.start})" if training.start else "")
    return {key: value for key, value in found.items() if value is not None}


def _published(recipe: DictConfig) -> str:
    """Scores of the paper as a table for the page."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["setting", "system", "bleu", "source"])
    for system, bleu in recipe.published.items():
        writer.writerow([recipe.noise, system, bleu, recipe.published_source])
    return text.getvalue()
