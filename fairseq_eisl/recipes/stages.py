"""A recipe as stages: the stock command lines, what each reads, and where it writes."""

import csv
import io
import os
import re
import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from omegaconf import DictConfig

from .schema import ROOT, Corpus, Device, Pieces, RecipeError, trainings, words

SPLITS = ("train", "valid", "test")


class Stage(NamedTuple):
    """One step of a recipe.

    commands: words of command lines; ``{name}`` in a word is the folder of the stage of that
        name, ``{out}`` the stage's own, ``{root}`` the checkout. ``{{`` and ``}}`` are braces.
    needs: the stages that it reads, whose settings are therefore its own, too.
    reads: files from outside; their content counts.
    stdout: file in the stage's folder for the last command's standard output.
    resumes: run again, the command goes on where it was killed.
    max_update: a training that resumes at this update or later has ended.
    gpus: CUDA_VISIBLE_DEVICES for it.
    files: names and contents (text, or what becomes JSON) that its folder holds before it
        begins, with placeholders, too.
    """

    name: str
    commands: Tuple[Tuple[str, ...], ...]
    needs: Tuple[str, ...] = ()
    reads: Tuple[str, ...] = ()
    stdout: Optional[str] = None
    resumes: bool = False
    max_update: Optional[int] = None
    gpus: Optional[str] = None
    files: Tuple[Tuple[str, Any], ...] = ()

    def lines(self, folders: Dict[str, str]) -> List[List[str]]:
        """The command lines with the folders of the stages put in."""
        return [filled(command, folders) for command in self.commands]


def filled(content: Any, folders: Dict[str, str]) -> Any:
    """Content with the folders of the stages put in, wherever there is text."""
    if isinstance(content, str):
        return content.format(**folders)
    if isinstance(content, dict):
        return {filled(k, folders): filled(v, folders) for k, v in content.items()}
    if isinstance(content, (list, tuple)):
        return [filled(each, folders) for each in content]
    return content


def build(recipe: DictConfig, cuda: bool = False) -> List[Stage]:
    """The stages of a recipe in their order. ``cuda``: this machine has a usable GPU."""
    device = ["--cpu"]
    if cuda and recipe.device != Device.cpu:
        device = ["--fp16"] if recipe.half_precision else []
    stages = _data_stages(recipe)
    scored = []
    for name in trainings(recipe):
        training = recipe.train[name]
        if training.corpus == Corpus.distilled and "distil" not in [s.name for s in stages]:
            stages += _distillation(recipe, device)
        stages.append(_training(recipe, name, training, device))
        if training.system:
            scored.append((name, training.system))
    logs = []
    for name, system in scored:
        checkpoint = f"{{{name}}}/checkpoint_best.pt"
        needs = [name]
        if recipe.average:
            stages.append(_average(name, recipe.average))
            checkpoint, needs = f"{{average_{name}}}/model.pt", [f"average_{name}"]
        for number, variant in enumerate(
            recipe.variants or [DictConfig({"columns": {}, "flags": {}})]
        ):
            stage = _generation(recipe, name, number, variant, checkpoint, needs, device)
            stages.append(stage)
            logs.append((name, system, stage.name, variant))
    stages.append(_scores(recipe, logs, stages))
    # "root" and "out" are placeholders of every command.
    names = ["root", "out", *(stage.name for stage in stages)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecipeError(
            f"train: {', '.join(twice)} is a name that recipes use; choose another one"
        )
    return stages


def _script(name: str) -> Tuple[str, str]:
    """A script of scripts/prepare as a word of a command, and as a file."""
    return f"{{root}}/scripts/prepare/{name}", os.path.join(ROOT, "scripts", "prepare", name)


def _plain(word: str) -> str:
    """A word that has no placeholders."""
    return str(word).replace("{", "{{").replace("}", "}}")


def _files(folder: Optional[str]) -> Tuple[str, ...]:
    if folder is None:
        return ()
    inside = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    return tuple(path for path in inside if os.path.isfile(path))


def _data_stages(recipe: DictConfig) -> List[Stage]:
    data = recipe.data
    source, target = data.source, data.target
    word, file = _script(f"{data.prepare}.sh")
    command = ["bash", word, "{out}"]
    if data.prepare == "text":  # a corpus of one's own, in any two languages
        command += [_plain(source), _plain(target)]
    command += map(_plain, data.options)
    if data.monolingual:
        command.append("--monolingual")
    if data.folder is not None:
        command += ["--data", _plain(os.path.abspath(data.folder))]
    stages = [Stage("prepare", (tuple(command),), reads=(file, *_files(data.folder)))]
    text, dictionary = "prepare", []
    if data.pieces != Pieces.none:
        text = "encode"
        word, file = _script(f"encode_{data.pieces.name}.sh")
        command = ["bash", word, "{prepare}", "{out}"]
        command += [source, target]
        if data.pieces == Pieces.sentencepiece:
            command += [str(data.vocabulary), *([_plain(data.blank)] if data.blank else [])]
            dictionary = ["--srcdict", "{encode}/dict.txt"]
            reads: Tuple[str, ...] = (file,)
        else:
            folder = os.path.abspath(data.gpt2)
            command += [_plain(folder)]
            shared = _plain(os.path.join(folder, "dict.txt"))
            dictionary = ["--srcdict", shared, "--tgtdict", shared]
            names = ("encoder.json", "vocab.bpe", "dict.txt")
            reads = (file, *(os.path.join(folder, name) for name in names))
        stages.append(Stage("encode", (tuple(command),), ("prepare",), reads))
    command = ["fairseq-preprocess", "-s", source, "-t", target]
    for split in SPLITS:
        command += [f"--{split}pref", f"{{{text}}}/{split}"]
    command += ["--destdir", "{out}", *dictionary]
    if data.pieces != Pieces.gpt2:
        command.append("--joined-dictionary")
    command += map(_plain, words(recipe.preprocess))
    stages.append(Stage("preprocess", (tuple(command),), (text,)))
    if data.monolingual:
        command = ["fairseq-preprocess", "--only-source", "--destdir", "{out}"]
        for split in ("train", "valid"):
            command += [f"--{split}pref", f"{{{text}}}/mono.{split}.{target}"]
        # The dictionary of the pairs, whose model goes on with this one's embedding.
        command += ["--srcdict", f"{{preprocess}}/dict.{target}.txt"]
        command += map(_plain, words(recipe.preprocess))
        stages.append(Stage("preprocess_mono", (tuple(command),), (text, "preprocess")))
    return stages


_USER_DIR = ["--user-dir", "{root}/fairseq_eisl"]


# --required-batch-size-multiple 1: fairseq's default of 8 drops the last sentences of a set.
_EVERY = {"required-batch-size-multiple": 1}
_TRAINING = {
    **_EVERY,
    "no-progress-bar": True,
    "log-format": "simple",
    "log-interval": 50,
    "best-checkpoint-metric": "bleu",
    "maximize-best-checkpoint-metric": True,
    "eval-bleu": True,
    "eval-tokenized-bleu": True,
    "no-epoch-checkpoints": True,
}
_REMOVE = {Pieces.none: None, Pieces.sentencepiece: "sentencepiece", Pieces.gpt2: None}


_PREPROCESSED = {
    Corpus.parallel: "preprocess",
    Corpus.monolingual: "preprocess_mono",
    Corpus.distilled: "preprocess_distilled",
}


def _distillation(recipe: DictConfig, device: List[str]) -> List[Stage]:
    """The teacher translates the training set: each line once, in the order of the set, still in
    pieces, since they are what is trained on (Kim and Rush, 2016)."""
    source, target = recipe.data.source, recipe.data.target
    text = "prepare" if recipe.data.pieces == Pieces.none else "encode"
    path = f"{{{recipe.teacher}}}/checkpoint_best.pt"
    command = ["fairseq-generate", "{preprocess}", *_USER_DIR, "--path", path, *device]
    task = {"task": recipe.train[recipe.teacher].flags.get("task", recipe.flags.get("task"))}
    subset = {"gen-subset": "train"}
    flags = words({"seed": recipe.seed}, _EVERY, task, subset, recipe.teacher_generate)
    translate = Stage(
        "distil",
        (tuple([*command, *map(_plain, flags)]),),
        ("preprocess", recipe.teacher),
        stdout="train.out",
        gpus=recipe.gpus,
    )
    word, file = _script("distilled.py")
    pairs = f"{{{text}}}/train.{source}"
    command = ["python", word, "--log", "{distil}/train.out", "--source", pairs]
    lines = [[*command, "--out", f"{{out}}/text/train.{target}"]]
    lines.append(["cp", pairs, f"{{out}}/text/train.{source}"])
    command = ["fairseq-preprocess", "-s", source, "-t", target, "--trainpref", "{out}/text/train"]
    for split in ("valid", "test"):
        command += [f"--{split}pref", f"{{{text}}}/{split}"]
    command += ["--destdir", "{out}", "--srcdict", f"{{preprocess}}/dict.{source}.txt"]
    command += ["--tgtdict", f"{{preprocess}}/dict.{target}.txt"]
    lines = [
        ["mkdir", "-p", "{out}/text"],
        *lines,
        [*command, *map(_plain, words(recipe.preprocess))],
    ]
    needs = ("distil", text, "preprocess")
    return [translate, Stage("preprocess_distilled", tuple(map(tuple, lines)), needs, (file,))]


def _training(recipe: DictConfig, name: str, training: DictConfig, device: List[str]) -> Stage:
    data = _PREPROCESSED[training.corpus]
    command = [*map(_plain, recipe.launcher), "fairseq-train", f"{{{data}}}", *_USER_DIR]
    pieces = {"eval-bleu-remove-bpe": _REMOVE[recipe.data.pieces]}
    flags = words({"seed": recipe.seed}, _TRAINING, pieces, recipe.flags, training.flags)
    command += [*map(_plain, flags), *device, "--save-dir", "{out}"]
    needs = [data]
    reads: Tuple[str, ...] = ()
    # --finetune-from-model: a fresh optimiser, scheduler and data order at the first start, and
    # nothing of it where the training goes on from its own last checkpoint.
    if training.start is not None:
        needs.append(training.start)
        command += ["--finetune-from-model", f"{{{training.start}}}/checkpoint_best.pt"]
    elif training.weights is not None:
        reads = (training.weights,)
        command += ["--finetune-from-model", _plain(os.path.abspath(training.weights))]
    return Stage(
        name,
        (tuple(command),),
        tuple(needs),
        reads,
        resumes=True,
        max_update=int({**recipe.flags, **training.flags}.get("max-update") or 0) or None,
        gpus=recipe.gpus,
    )


def _average(name: str, last: int) -> Stage:
    command = ["python", "-m", "fairseq_eisl.checkpoints", "average", "--folder", f"{{{name}}}"]
    command += ["--last", str(last), "--by-updates", "--output", "{out}/model.pt"]
    return Stage(f"average_{name}", (tuple(command),), (name,))


def _generation(recipe, name, number, variant, checkpoint, needs, device) -> Stage:
    command = ["fairseq-generate", "{preprocess}", *_USER_DIR, "--path", checkpoint, *device]
    task = {"task": recipe.flags.get("task")}
    pieces = {"remove-bpe": _REMOVE[recipe.data.pieces]}
    flags = words({"seed": recipe.seed}, _EVERY, task, pieces, recipe.generate, variant.flags)
    stage = f"generate_{name}" + (f"_{number}" if recipe.variants else "")
    return Stage(
        stage,
        (tuple([*command, *map(_plain, flags)]),),
        ("preprocess", *needs),
        stdout="test.out",
        gpus=recipe.gpus,
    )


def _scores(recipe: DictConfig, logs: list, stages: List[Stage]) -> Stage:
    """Rows, in the order of the trainings and variants, pictures of them, and a page."""
    evaluate = ["python", "-m", "fairseq_eisl.evaluation"]
    rows = ["--rows", "{out}/rows.csv"]
    reference = f"{{prepare}}/test.{recipe.data.target}"
    commands = []
    for name, system, stage, variant in logs:
        columns = {
            "system": system,
            "noise": recipe.noise,
            "seed": recipe.seed,
            "test_set": recipe.data.test_set,
            "model": recipe.model_name,
            "recipe": recipe.name,
            **recipe.columns,
            **variant.columns,
        }
        pairs = [_plain(f"{key}={value}") for key, value in columns.items() if value is not None]
        command = [*evaluate, "score", "--log", f"{{{stage}}}/test.out", "--reference", reference]
        command += ["--training-log", f"{{{name}}}/log"]
        commands.append([*command, *rows, "--set", *pairs])
    by_system = {system: name for name, system, _, _ in logs}
    curves = {system: f"{{{name}}}/log" for system, name in by_system.items()}
    names = list(by_system.values())
    # One after the other, or each from the same start: then the updates begin at zero.
    chain = all(recipe.train[b].start == a for a, b in zip(names, names[1:]))
    command = [*evaluate, "curve", "--log", *(f"{name}={log}" for name, log in curves.items())]
    command += ["--out", "{out}/curve.png", "--start", "best" if chain else "zero"]
    commands.append([*command, "--title", _plain(recipe.title)])
    first = dict(recipe.variants[0].columns) if recipe.variants else {}
    commands.append([*evaluate, "plot", *rows, *_where(first), "--out", "{out}/compare.png"])
    if len({variant.columns.get("iterations") for variant in recipe.variants}) > 1:
        first.pop("iterations", None)
        command = [*evaluate, "iterations", *rows, *_where(first)]
        commands.append([*command, "--out", "{out}/iterations.png"])
    # One test for each way to decode; the first system is the baseline.
    groups: Dict[str, list] = {}
    for _, system, stage, variant in logs:
        groups.setdefault(str(variant), []).append((system, stage, variant))
    for group in groups.values():
        if len(group) > 1:
            command = [*evaluate, "significance", "--reference", reference, "--system"]
            command += [f"{_plain(system)}={{{stage}}}/test.out" for system, stage, _ in group]
            columns = {"noise": recipe.noise, "seed": recipe.seed, **group[0][2].columns}
            command += ["--rows", "{out}/significance.csv", "--set"]
            commands.append([*command, *(_plain(f"{k}={v}") for k, v in columns.items())])
    about: Dict[str, Any] = {
        "title": _plain(recipe.title),
        "settings": {_plain(key): _plain(value) for key, value in _settings(recipe).items()},
        "commands": [[s.name, shell(_placed(s, line))] for s in stages for line in s.commands],
        "source": f"{{prepare}}/test.{recipe.data.source}",
        "reference": reference,
        "systems": {s: f"{{{log}}}/test.out" for _, s, log, _ in reversed(logs)},
        "curves": curves if chain else {},
    }
    about["systems"] = {system: about["systems"][system] for system in by_system}
    files: List[Tuple[str, Any]] = [("report.json", about)]
    command = [*evaluate, "report", "--run", "{out}", "--out", "{out}/report.html"]
    if recipe.published and recipe.published_for in (None, recipe.noise):
        files.append(("published.csv", _plain(_published(recipe))))
        command += ["--published", "{out}/published.csv"]
    commands.append(command)
    needs = dict.fromkeys(["prepare", *names, *(stage for _, _, stage, _ in logs)])
    return Stage("score", tuple(map(tuple, commands)), tuple(needs), files=tuple(files))


def _placed(stage: Stage, line: Tuple[str, ...]) -> List[str]:
    """A command as another stage names it, to which ``{out}`` would be its own folder."""
    return [re.sub(r"(?<!\{)\{out\}", f"{{{stage.name}}}", word) for word in line]


def _where(columns: Dict[str, Any]) -> List[str]:
    pairs = [_plain(f"{key}={value}") for key, value in columns.items()]
    return ["--where", *pairs] if pairs else []


def _settings(recipe: DictConfig) -> Dict[str, Any]:
    """What a reader of the results wants to know first."""
    found = {key: recipe[key] for key in ("model_name", "noise", "seed", "average")}
    found["test set"] = recipe.data.test_set
    for name, training in recipe.train.items():
        flags = " ".join(words(training.flags))
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


def shell(line: List[str]) -> str:
    """A command line to copy and paste."""
    return " ".join(shlex.quote(word) for word in line)
