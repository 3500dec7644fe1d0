"""The stages that translate: the test set with every system, the training set with a teacher."""

from typing import Any, List, Mapping, Tuple

from omegaconf import DictConfig

from ..placeholders import OUT, Word, folder
from ..recipe import LM_PATH, generation_flags, named_training, training_flags, words
from ..stage import Stage
from .shared import EVERY, REMOVE, USER_DIR

WITH_DICTIONARY = "preprocess_with_dictionary"


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
    flags = ({"seed": recipe.seed}, EVERY, task, pieces, decoding)
    command, needs, reads = _command(folder(model) / file, device, *flags)
    name = f"generate_{name}" + (f"_{number}" if recipe.variants else "")
    needs = (*needs, model)
    return Stage(name, (command,), needs, reads, stdout="test.out", gpus=recipe.gpus, one_gpu=True)


def distillation(recipe: DictConfig, device: List[str]) -> List[Stage]:
    """The teacher translates the training set: each line once, still in pieces, since they are
    what is trained on (Kim and Rush, 2016); so many batches in turn in each part."""
    teacher = recipe.teacher
    task = {"task": training_flags(recipe, teacher).get("task")}
    # Pairs that are too long have not been trained on, either; ``distilled.py`` has them.
    subset = {"gen-subset": "train", "skip-invalid-size-inputs-valid-test": True}
    flags = ({"seed": recipe.seed}, EVERY, task, subset, recipe.teacher_generate)
    command, needs, reads = _command(folder(teacher) / "checkpoint_best.pt", device, *flags)
    every = Stage("distil", (command,), (*needs, teacher), reads, stdout="train.out",
                  gpus=recipe.gpus, one_gpu=True)  # fmt: skip
    count = recipe.teacher_parts
    if count == 1:
        return [every]
    # What fairseq-generate goes by; it does not look at its --num-shards.
    share = [words({"distributed-world-size": count, "distributed-rank": n}) for n in range(count)]
    return [
        every._replace(name=f"distil_{n}", commands=((*command, *share[n]),)) for n in range(count)
    ]


def with_dictionary(recipe: DictConfig) -> Stage:
    """The data as fairseq-generate needs them for a language model, which looks for its
    dictionary there under another name than translations have."""
    # All that preprocessing wrote, but the log of the stage and what says that it is done.
    links = (
        'for f in "$0"/*; do case "${f##*/}" in log|stage.json) ;; '
        '*) ln -s "$f" "$2" || exit;; esac; done; ln -s "$0/$1" "$2/dict.txt"'
    )
    command = ("sh", "-c", links, folder("preprocess"), f"dict.{recipe.data.target}.txt", OUT)
    return Stage(WITH_DICTIONARY, (command,), ("preprocess",))


def _command(
    checkpoint: Word, device: List[str], *groups: Mapping[str, Any]
) -> Tuple[Tuple[Word, ...], Tuple[str, ...], Tuple[str, ...]]:
    """The command that decodes under flags, and what it needs beside the model: stages, files."""
    flags = {flag: value for group in groups for flag, value in group.items()}
    path = flags.pop(LM_PATH, None)
    data, needs = "preprocess", ["preprocess"]
    more: List[Word] = []
    reads: Tuple[str, ...] = ()
    if path is not None:
        trained = named_training(path)
        reads = () if trained else (str(path),)
        more = [f"--{LM_PATH}", folder(trained) / "checkpoint_best.pt" if trained else str(path)]
        data, needs = WITH_DICTIONARY, ["preprocess", WITH_DICTIONARY, *filter(None, [trained])]
    command: List[Word] = ["fairseq-generate", folder(data), *USER_DIR, "--path", checkpoint]
    return (*command, *device, *more, *words(flags)), tuple(needs), reads
