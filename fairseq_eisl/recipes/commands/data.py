"""A recipe as stages: the stock command lines, what each reads, and where it writes."""

import os
from typing import Dict, List, Optional, Tuple

from omegaconf import DictConfig

from .errors import RecipeError
from .recipe import (
    NOISE_FLAGS,
    NOISY_TASKS,
    ROOT,
    Corpus,
    Device,
    Pieces,
    noise_flags,
    task_of,
    training_flags,
    trainings,
    words,
)
from .score_stage import scores
from .stage import Stage, escaped, filled, shell

__all__ = ["SPLITS", "Stage", "build", "filled", "shell"]

SPLITS = ("train", "valid", "test")


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
    stages.append(scores(recipe, logs, stages))
    distils = any(part.corpus == Corpus.distilled for part in recipe.train.values())
    # "root" and "out" are placeholders of every command.
    names = ["root", "out", *(stage.name for stage in stages)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecipeError(
            f"train: {', '.join(twice)} is a name that recipes use; choose another one"
        )
    used = {recipe.teacher if distils else None, *(part.start for part in recipe.train.values())}
    for name, training in recipe.train.items():
        if training.system is None and name not in used:
            raise RecipeError(f"train.{name}: nothing uses it: it has no system to score, and no "
                              "other training starts or learns from it")  # fmt: skip
    return stages


_SENTENCES = ("scripts/prepare/sentences.py", "fairseq_eisl/common/prepared_text.py",
              "fairseq_eisl/common/text_lines.py")  # fmt: skip
# What else a script of scripts/prepare runs or reads of the checkout: its results change with it.
_RUNS: Dict[str, Tuple[str, ...]] = {
    "toy.sh": ("data/toy_corpus.py",),
    "multi30k.sh": ("scripts/prepare/multi30k.sha256", *_SENTENCES),
    "text.sh": _SENTENCES,
    "wmt.sh": ("scripts/prepare/text.sh", *_SENTENCES),
    "encode_sentencepiece.sh": ("scripts/prepare/sentencepiece_bpe.py", *_SENTENCES),
    "encode_gpt2.sh": _SENTENCES,
    "distilled.py": ("fairseq_eisl/evaluation/generation_log.py", _SENTENCES[-1]),
}


def _script(name: str) -> Tuple[str, Tuple[str, ...]]:
    """A script of scripts/prepare as a word of a command, and the files on which it depends."""
    files = (f"scripts/prepare/{name}", *_RUNS.get(name, ()))
    return f"{{root}}/scripts/prepare/{name}", tuple(os.path.join(ROOT, file) for file in files)


def _files(folder: Optional[str]) -> Tuple[str, ...]:
    if folder is None:
        return ()
    inside = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    return tuple(path for path in inside if os.path.isfile(path))


def _data_stages(recipe: DictConfig) -> List[Stage]:
    data = recipe.data
    source, target = data.source, data.target
    word, files = _script(f"{data.prepare}.sh")
    command = ["bash", word, "{out}"]
    if data.prepare == "text":  # a corpus of one's own, in any two languages
        command += [escaped(source), escaped(target)]
    command += map(escaped, data.options)
    if data.monolingual:
        command.append("--monolingual")
    if data.folder is not None:
        command += ["--data", escaped(os.path.abspath(data.folder))]
    stages = [Stage("prepare", (tuple(command),), reads=(*files, *_files(data.folder)))]
    text, dictionary = "prepare", []
    if data.pieces != Pieces.none:
        text = "encode"
        word, files = _script(f"encode_{data.pieces.name}.sh")
        command = ["bash", word, "{prepare}", "{out}"]
        command += [source, target]
        if data.pieces == Pieces.sentencepiece:
            command += [str(data.vocabulary), *([escaped(data.blank)] if data.blank else [])]
            dictionary = ["--srcdict", "{encode}/dict.txt"]
            reads = files
        else:
            folder = os.path.abspath(data.gpt2)
            command += [escaped(folder)]
            shared = escaped(os.path.join(folder, "dict.txt"))
            dictionary = ["--srcdict", shared, "--tgtdict", shared]
            names = ("encoder.json", "vocab.bpe", "dict.txt")
            reads = (*files, *(os.path.join(folder, name) for name in names))
        stages.append(Stage("encode", (tuple(command),), ("prepare",), reads))
    command = ["fairseq-preprocess", "-s", source, "-t", target]
    for split in SPLITS:
        command += [f"--{split}pref", f"{{{text}}}/{split}"]
    command += ["--destdir", "{out}", *dictionary]
    if data.pieces != Pieces.gpt2:
        command.append("--joined-dictionary")
    command += map(escaped, words(recipe.preprocess))
    stages.append(Stage("preprocess", (tuple(command),), (text,)))
    if data.monolingual:
        command = ["fairseq-preprocess", "--only-source", "--destdir", "{out}"]
        for split in ("train", "valid"):
            command += [f"--{split}pref", f"{{{text}}}/mono.{split}.{target}"]
        # The dictionary of the pairs, whose model goes on with this one's embedding.
        command += ["--srcdict", f"{{preprocess}}/dict.{target}.txt"]
        command += map(escaped, words(recipe.preprocess))
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
    task = {"task": training_flags(recipe, recipe.teacher).get("task")}
    subset = {"gen-subset": "train"}
    flags = words({"seed": recipe.seed}, _EVERY, task, subset, recipe.teacher_generate)
    translate = Stage(
        "distil",
        (tuple([*command, *map(escaped, flags)]),),
        ("preprocess", recipe.teacher),
        stdout="train.out",
        gpus=recipe.gpus,
    )
    word, files = _script("distilled.py")
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
        [*command, *map(escaped, words(recipe.preprocess))],
    ]
    needs = ("distil", text, "preprocess")
    return [translate, Stage("preprocess_distilled", tuple(map(tuple, lines)), needs, files)]


def _training(recipe: DictConfig, name: str, training: DictConfig, device: List[str]) -> Stage:
    data = _PREPROCESSED[training.corpus]
    command = [*map(escaped, recipe.launcher), "fairseq-train", f"{{{data}}}", *_USER_DIR]
    pieces = {"eval-bleu-remove-bpe": _REMOVE[recipe.data.pieces]}
    given = {**recipe.flags, **training.flags, **noise_flags(recipe, name)}
    if task_of(recipe, name) not in NOISY_TASKS:  # what a base gives to the others
        given = {flag: value for flag, value in given.items() if flag not in NOISE_FLAGS}
    flags = words({"seed": recipe.seed}, _TRAINING, pieces, given)
    command += [*map(escaped, flags), *device, "--save-dir", "{out}"]
    needs = [data]
    reads: Tuple[str, ...] = ()
    # --finetune-from-model: a fresh optimiser, scheduler and data order at the first start, and
    # nothing of it where the training goes on from its own last checkpoint.
    if training.start is not None:
        needs.append(training.start)
        command += ["--finetune-from-model", f"{{{training.start}}}/checkpoint_best.pt"]
    elif training.weights is not None:
        reads = (training.weights,)
        command += ["--finetune-from-model", escaped(os.path.abspath(training.weights))]
    return Stage(
        name,
        (tuple(command),),
        tuple(needs),
        reads,
        resumes=True,
        max_update=_whole(training_flags(recipe, name).get("max-update")),
        gpus=recipe.gpus,
    )


def _whole(value) -> Optional[int]:
    """A whole number above 0; what else is given, fairseq refuses or takes for no limit."""
    return int(value) if str(value).isdecimal() and int(value) else None


def _average(name: str, last: int) -> Stage:
    command = ["python", "-m", "fairseq_eisl.checkpoints", "average", "--folder", f"{{{name}}}"]
    command += ["--last", str(last), "--by-updates", "--output", "{out}/model.pt"]
    return Stage(f"average_{name}", (tuple(command),), (name,))


def _generation(recipe, name, number, variant, checkpoint, needs, device) -> Stage:
    command = ["fairseq-generate", "{preprocess}", *_USER_DIR, "--path", checkpoint, *device]
    task = {"task": training_flags(recipe, name).get("task")}
    pieces = {"remove-bpe": _REMOVE[recipe.data.pieces]}
    flags = words({"seed": recipe.seed}, _EVERY, task, pieces, recipe.generate, variant.flags)
    stage = f"generate_{name}" + (f"_{number}" if recipe.variants else "")
    return Stage(
        stage,
        (tuple([*command, *map(escaped, flags)]),),
        ("preprocess", *needs),
        stdout="test.out",
        gpus=recipe.gpus,
    )
