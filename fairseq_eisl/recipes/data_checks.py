"""What the types alone do not say of a recipe's corpus."""

import functools
import os
import re
from typing import Sequence

from omegaconf import DictConfig

from ..common.checkout import beside
from .recipe import CleanText, Corpus, Pieces, training_flags

SPLITS = ("train", "valid", "test")
_WEIGHS = ("eisl", "token_weighted")  # criterions that a clean text says something to


def check_data(recipe: DictConfig):
    """Pairs (key, what is wrong): files that are missing, names that no file can end in."""
    data = recipe.data
    if not re.fullmatch(r"[\w.+-]+", recipe.name) or recipe.name.startswith((".", "-")):
        yield "name", f"letters, digits, and ._+- are needed, not {recipe.name!r}"
    scripts = beside("scripts/prepare")
    if not os.path.isdir(scripts):
        what = f"there is no folder {scripts}, which a checkout and an installed wheel have"
        yield "data.prepare", what
        return
    names = [name[:-3] for name in os.listdir(scripts) if name.endswith(".sh")]
    known = sorted(name for name in names if not name.startswith(("encode_", "bart_")))
    if data.prepare not in known:
        yield "data.prepare", f"{data.prepare!r} is unknown (choose from {', '.join(known)})"
    for key in ("folder", "gpt2"):
        folder = data[key]
        if folder is not None and not os.path.isdir(folder):
            yield f"data.{key}", f"there is no folder {folder}"
    for key in ("source", "target"):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_@-]*", data[key]):  # as prepare/text.sh
            yield f"data.{key}", f"a language is needed, the end of file names, not {data[key]!r}"
    if data.source == data.target:
        yield "data.target", f"another language than data.source is needed, not {data.target!r}"
    for key, text in (("data.test_set", data.test_set), ("model_name", recipe.model_name)):
        if not text.strip():
            yield key, "rows need a text, not an empty one"
    yield from _check_folder(data)
    if data.monolingual and data.folder is None:
        what = "data.monolingual needs a local folder that has the text; it is not fetched"
        yield "data.folder", what
    if data.pieces == Pieces.gpt2 and not data.gpt2:
        what = "pieces: gpt2 needs the folder with encoder.json, vocab.bpe and dict.txt"
        yield "data.gpt2", what
    if data.blank is not None and (not data.blank or re.search(r"\s", data.blank)):
        yield "data.blank", f"one symbol without spaces is needed, not {data.blank!r}"


def _check_folder(data: DictConfig):
    """A corpus that is there has its files; one that is made takes none."""
    if data.prepare == "toy" and data.folder is not None:
        yield "data.folder", f"prepare: toy makes its text itself and takes no {data.folder}"
    if data.files:
        yield from _check_files(data)
    if data.prepare != "text" or data.files:
        return
    if data.folder is None:
        what = "prepare: text needs the folder with the six files {train,valid,test}.{%s,%s}, or "
        yield "data.folder", what % (data.source, data.target) + "the six as data.files"
        return
    needed = [f"{s}.{side}" for s in SPLITS for side in (data.source, data.target)]
    if data.monolingual:
        needed += [f"mono.{split}.{data.target}" for split in ("train", "valid")]
    for name in needed:
        path = os.path.join(data.folder, name)
        if not os.path.isfile(path) or not os.path.getsize(path):
            yield "data.folder", f"{data.folder} has no file {name} (or an empty one){_there(data)}"
    pairs = [os.path.join(data.folder, name) for name in needed[: 2 * len(SPLITS)]]
    yield from _check_pairs("data.folder", pairs)


def _there(data: DictConfig) -> str:
    """The languages of which a folder has training text, where they are not those of the recipe."""
    names = [name.split(".", 1) for name in sorted(os.listdir(data.folder))]
    found = [name[1] for name in names if name[0] == SPLITS[0] and len(name) == 2]
    if not found or {data.source, data.target} <= set(found):
        return ""
    needed = "data.source and data.target are the ends of its files' names"
    return f"; {needed}, and it has {', '.join(f'{SPLITS[0]}.{end}' for end in found)}"


def _check_pairs(key: str, paths: Sequence[str]):
    """The two sides of each split have as many lines. What is in them, ``run`` reads."""
    for pair in zip(paths[::2], paths[1::2]):
        counts = [_lines(path, os.stat(path).st_mtime_ns) for path in pair]
        if counts[0] != counts[1]:
            told = " and ".join(f"{path} has {n:,} lines" for path, n in zip(pair, counts))
            what = "they must be translations of one another, line by line"
            yield key, f"{told}: {what}"


@functools.lru_cache(maxsize=None)  # a sweep asks for each of its cells
def _lines(path: str, changed: int) -> int:
    count, last = 0, b"\n"
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def _check_files(data: DictConfig):
    if data.prepare != "text" or data.folder is not None:
        other = f"prepare: {data.prepare}" if data.prepare != "text" else f"folder: {data.folder}"
        yield "data.files", f"they are for prepare: text without a folder, not with {other}"
    if len(data.files) != 2 * len(SPLITS):
        what = "six are needed, of {0} and {1} in turns: [train.{0},train.{1},valid.{0},...]"
        yield "data.files", what.format(data.source, data.target) + f", not {len(data.files)}"
    for path in data.files:
        if not os.path.isfile(path) or not os.path.getsize(path):
            yield "data.files", f"there is no file {path} (or an empty one)"
    yield from _check_pairs("data.files", data.files)


def check_clean_text(recipe: DictConfig, name: str):
    """(key, what is wrong) with the text that weighs a training's targets."""
    training, key = recipe.train[name], f"train.{name}.clean_text"
    if training.clean_text == CleanText.monolingual and not recipe.data.monolingual:
        yield key, "monolingual needs data.monolingual: true"
    if training.corpus == Corpus.monolingual:
        yield key, "it weighs the targets of sentence pairs; corpus is monolingual"
    flags = training_flags(recipe, name)
    if flags.get("clean-text") is not None:
        yield key, "the flag clean-text says it as well; give one of them"
    if str(flags.get("criterion")) not in _WEIGHS:
        what = f"the criterion must be {' or '.join(_WEIGHS)}, not {flags.get('criterion')}"
        yield key, what
