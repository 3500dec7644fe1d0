"""The stages that train a model, and average its checkpoints."""

import os
from typing import List, Optional, Tuple

from omegaconf import DictConfig

from ..gpus import parts
from ..placeholders import OUT, Word, folder
from ..recipe import (
    NOISE_FLAGS,
    NOISY_TASKS,
    CleanText,
    Corpus,
    Parameters,
    files_of,
    noise_flags,
    task_of,
    training_flags,
    words,
)
from ..stage import Stage
from .shared import EVERY, REMOVE, USER_DIR

FLAGS = {
    **EVERY,
    "no-progress-bar": True,
    "log-format": "simple",
    "log-interval": 50,
    "best-checkpoint-metric": "bleu",
    "maximize-best-checkpoint-metric": True,
    "eval-bleu": True,
    "eval-tokenized-bleu": True,
    "no-epoch-checkpoints": True,
}
_DATA = {
    Corpus.parallel: "preprocess",
    Corpus.monolingual: "preprocess_mono",
    Corpus.distilled: "preprocess_distilled",
}


def training_stage(recipe: DictConfig, name: str, device: List[str], gpus: int) -> Stage:
    """The stage of a training, which has its name. ``gpus``: how many the machine has."""
    training = recipe.train[name]
    data = _DATA[training.corpus]
    command: List[Word] = [*recipe.launcher, "fairseq-train", folder(data), *USER_DIR]
    command += [*_flags(recipe, name), *device, "--save-dir", OUT]
    needs = [data]
    command += _clean_text(recipe, name, needs)
    reads = _files(recipe, name)
    # --finetune-from-model: a fresh optimiser, scheduler and data order at the first start, and
    # nothing of it where the training goes on from its own last checkpoint.
    if training.start is not None:
        needs.append(training.start)
        file = f"checkpoint_{training.start_checkpoint.name}.pt"
        shares = training.start_parameters == Parameters.shared
        flag = "--init-weights" if shares else "--finetune-from-model"
        command += [flag, folder(training.start) / file]
    elif training.weights is not None:
        reads = (*reads, training.weights)
        command += ["--finetune-from-model", os.path.abspath(training.weights)]
    return Stage(
        name,
        (tuple(command),),
        tuple(needs),
        reads,
        resumes=True,
        max_update=_whole(training_flags(recipe, name).get("max-update")),
        gpus=recipe.gpus,
        workers=1 if "--cpu" in device else _workers(recipe, name, gpus),
    )


def _workers(recipe: DictConfig, name: str, gpus: int) -> int:
    """Over how many GPUs fairseq-train spreads; batches grow with them. Where the command says it,
    that counts already."""
    flags = training_flags(recipe, name)
    if recipe.launcher or flags.get("distributed-world-size") is not None:
        return 1
    return len(parts(recipe.gpus)[0].split(",")) if recipe.gpus else max(1, gpus)


def _clean_text(recipe: DictConfig, name: str, needs: List[str]) -> List[Word]:
    """The flag, and among what is needed the stage that makes the text."""
    training = recipe.train[name]
    if training.clean_text is None:
        return []
    if training.clean_text == CleanText.validation:
        data, pair = recipe.data, f"{recipe.data.source}-{recipe.data.target}"
        return ["--clean-text", folder(needs[0]) / f"valid.{pair}.{data.target}"]
    text = _DATA[Corpus.monolingual]
    if text not in needs:
        needs.append(text)
    return ["--clean-text", folder(text) / "train"]


def _files(recipe: DictConfig, name: str) -> Tuple[str, ...]:
    """The files that flags of a training name, whose content its results depend on."""
    found = files_of(training_flags(recipe, name)).values()
    return tuple(file for files in found for file in files)


def _flags(recipe: DictConfig, name: str) -> List[str]:
    pieces = {"eval-bleu-remove-bpe": REMOVE[recipe.data.pieces]}
    given = {**recipe.flags, **recipe.train[name].flags, **noise_flags(recipe, name)}
    if task_of(recipe, name) not in NOISY_TASKS:  # what a base gives to the others
        given = {flag: value for flag, value in given.items() if flag not in NOISE_FLAGS}
    return words({"seed": recipe.seed}, FLAGS, pieces, given)


def _whole(value) -> Optional[int]:
    """A whole number above 0; what else is given, fairseq refuses or takes for no limit."""
    return int(value) if str(value).isdecimal() and int(value) else None


def average(name: str, last: int) -> Stage:
    """The stage that averages so many last checkpoints of a training."""
    command: List[Word] = ["python", "-m", "fairseq_eisl.checkpoints", "average"]
    command += ["--folder", folder(name), "--last", str(last), "--by-updates"]
    command += ["--output", OUT / "model.pt"]
    return Stage(f"average_{name}", (tuple(command),), (name,))
