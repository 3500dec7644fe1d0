"""The stages that make the data: prepare, (encode), preprocess."""

import os
from typing import List, Tuple

from omegaconf import DictConfig

from ..data_checks import SPLITS
from ..placeholders import OUT, Word, folder
from ..recipe import Pieces, words
from ..stage import Stage
from .shared import files_in, script, text_stage

DISTILLED = "preprocess_distilled"


def stages(recipe: DictConfig) -> List[Stage]:
    """The stages of the sentence pairs and of the text of one language."""
    found = [_prepare(recipe)]
    dictionary: List[Word] = []
    if recipe.data.pieces != Pieces.none:
        stage, dictionary = _encode(recipe)
        found.append(stage)
    found.append(_preprocess(recipe, dictionary))
    if recipe.data.monolingual:
        found.append(_preprocess_mono(recipe))
    return found


def _prepare(recipe: DictConfig) -> Stage:
    data = recipe.data
    word, files = script(f"{data.prepare}.sh")
    command: List[Word] = ["bash", word, OUT]
    if data.prepare == "text":  # a corpus of one's own, in any two languages
        command += [data.source, data.target]
    command += list(data.options)
    if data.monolingual:
        command.append("--monolingual")
    if data.folder is not None:
        command += ["--data", os.path.abspath(data.folder)]
    own = tuple(os.path.abspath(path) for path in data.files)
    command += ["--files", *own] if own else []
    return Stage("prepare", (tuple(command),), reads=(*files, *own, *files_in(data.folder)))


def _encode(recipe: DictConfig) -> Tuple[Stage, List[Word]]:
    """The stage that splits words into pieces, and the flags of the dictionary that it makes."""
    data = recipe.data
    word, reads = script(f"encode_{data.pieces.name}.sh")
    command: List[Word] = ["bash", word, folder("prepare"), OUT, data.source, data.target]
    dictionary: List[Word]
    if data.pieces == Pieces.sentencepiece:
        size = "auto" if data.vocabulary is None else str(data.vocabulary)
        command += [size, *([data.blank] if data.blank else [])]
        dictionary = ["--srcdict", folder("encode") / "dict.txt"]
    else:
        place = os.path.abspath(data.gpt2)
        command.append(place)
        shared = os.path.join(place, "dict.txt")
        dictionary = ["--srcdict", shared, "--tgtdict", shared]
        names = ("encoder.json", "vocab.bpe", "dict.txt")
        reads = (*reads, *(os.path.join(place, name) for name in names))
    return Stage("encode", (tuple(command),), ("prepare",), reads), dictionary


def _preprocess(recipe: DictConfig, dictionary: List[Word]) -> Stage:
    data, text = recipe.data, text_stage(recipe)
    command: List[Word] = ["fairseq-preprocess", "-s", data.source, "-t", data.target]
    for split in SPLITS:
        command += [f"--{split}pref", folder(text) / split]
    command += ["--destdir", OUT, *dictionary]
    if data.pieces != Pieces.gpt2:
        command.append("--joined-dictionary")
    command += words(recipe.preprocess)
    return Stage("preprocess", (tuple(command),), (text,))


def _preprocess_mono(recipe: DictConfig) -> Stage:
    target, text = recipe.data.target, text_stage(recipe)
    command: List[Word] = ["fairseq-preprocess", "--only-source", "--destdir", OUT]
    for split in ("train", "valid"):
        command += [f"--{split}pref", folder(text) / f"mono.{split}.{target}"]
    # The dictionary of the pairs, whose model goes on with this one's embedding.
    command += ["--srcdict", folder("preprocess") / f"dict.{target}.txt"]
    command += words(recipe.preprocess)
    return Stage("preprocess_mono", (tuple(command),), (text, "preprocess"))


def distilled(recipe: DictConfig, parts: List[str]) -> Stage:
    """The sentence pairs whose targets are the teacher's translations, which these stages made."""
    source, target, text = recipe.data.source, recipe.data.target, text_stage(recipe)
    word, files = script("distilled.py")
    pairs = folder(text) / f"train.{source}"
    made: List[Word] = ["python", word, "--log", *(folder(part) / "train.out" for part in parts)]
    made += ["--source", pairs, "--target", folder(text) / f"train.{target}"]
    command: List[Word] = ["fairseq-preprocess", "-s", source, "-t", target]
    command += ["--trainpref", OUT / "text/train"]
    for split in ("valid", "test"):
        command += [f"--{split}pref", folder(text) / split]
    command += ["--destdir", OUT, "--srcdict", folder("preprocess") / f"dict.{source}.txt"]
    command += ["--tgtdict", folder("preprocess") / f"dict.{target}.txt"]
    lines: List[List[Word]] = [
        ["mkdir", "-p", OUT / "text"],
        [*made, "--out", OUT / f"text/train.{target}"],
        ["cp", pairs, OUT / f"text/train.{source}"],
        [*command, *words(recipe.preprocess)],
    ]
    needs = (*parts, text, "preprocess")
    return Stage(DISTILLED, tuple(map(tuple, lines)), needs, files)
