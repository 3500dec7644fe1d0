"""The stages that translate: the test set with every system, the training set with a teacher."""

from typing import List

from omegaconf import DictConfig

from ..placeholders import Word, folder
from ..recipe import generation_flags, training_flags, words
from ..stage import Stage
from .shared import EVERY, REMOVE, USER_DIR


def translation(
    recipe: DictConfig,
    name: str,
    model: str,
    number: int,
    variant: DictConfig,
    device: List[str],
) -> Stage:
    """The test set by a training's model, in the way of a variant, which has that number.

    ``model``: the stage that has the checkpoint, the training or an average of it.
    """
    file = "checkpoint_best.pt" if model == name else "model.pt"
    task = {"task": training_flags(recipe, name).get("task")}
    pieces = {"remove-bpe": REMOVE[recipe.data.pieces]}
    decoding = generation_flags(recipe, name, variant.flags)
    flags = words({"seed": recipe.seed}, EVERY, task, pieces, decoding)
    return Stage(
        f"generate_{name}" + (f"_{number}" if recipe.variants else ""),
        (tuple([*_command(folder(model) / file, device), *flags]),),
        ("preprocess", model),
        stdout="test.out",
        gpus=recipe.gpus,
    )


def distillation(recipe: DictConfig, device: List[str]) -> Stage:
    """The teacher translates the training set: each line once, in the order of the set, still in
    pieces, since they are what is trained on (Kim and Rush, 2016)."""
    task = {"task": training_flags(recipe, recipe.teacher).get("task")}
    subset = {"gen-subset": "train"}
    flags = words({"seed": recipe.seed}, EVERY, task, subset, recipe.teacher_generate)
    return Stage(
        "distil",
        (tuple([*_command(folder(recipe.teacher) / "checkpoint_best.pt", device), *flags]),),
        ("preprocess", recipe.teacher),
        stdout="train.out",
        gpus=recipe.gpus,
    )


def _command(checkpoint: Word, device: List[str]) -> List[Word]:
    command: List[Word] = ["fairseq-generate", folder("preprocess"), *USER_DIR]
    return [*command, "--path", checkpoint, *device]
