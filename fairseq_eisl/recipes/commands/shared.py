"""What the command lines of several kinds of stages have in common."""

import os
from typing import Dict, Optional, Tuple

from omegaconf import DictConfig

from ...common.checkout import beside
from ..placeholders import CHECKOUT, PLUGIN, Deferred, Word
from ..recipe import Pieces

USER_DIR: Tuple[Word, ...] = ("--user-dir", PLUGIN)
# --required-batch-size-multiple 1: fairseq's default of 8 drops the last sentences of a set.
EVERY = {"required-batch-size-multiple": 1}
REMOVE = {Pieces.none: None, Pieces.sentencepiece: "sentencepiece", Pieces.gpt2: None}
"""--remove-bpe, by the pieces of the text."""

_SENTENCES = ("scripts/prepare/sentences.py", "fairseq_eisl/common/prepared_text.py",
              "fairseq_eisl/common/text_lines.py")  # fmt: skip
_STYLES = ("scripts/prepare/styles.py", *_SENTENCES)
# What else a script of scripts/prepare runs or reads of the checkout: its results change with it.
_RUNS: Dict[str, Tuple[str, ...]] = {
    "toy.sh": ("data/toy_corpus.py",),
    "multi30k.sh": ("scripts/prepare/multi30k.sha256", *_SENTENCES),
    "text.sh": _SENTENCES,
    "wmt.sh": ("scripts/prepare/text.sh", *_SENTENCES),
    **dict.fromkeys(("styles.sh", "yelp.sh", "political.sh"), _STYLES),
    "encode_sentencepiece.sh": ("scripts/prepare/sentencepiece_bpe.py", *_SENTENCES),
    "encode_gpt2.sh": _SENTENCES,
    "distilled.py": ("fairseq_eisl/evaluation/readers/generation_log.py", _SENTENCES[-1]),
}


def script(name: str) -> Tuple[Deferred, Tuple[str, ...]]:
    """A script of scripts/prepare as a word of a command, and the files on which it depends."""
    files = (f"scripts/prepare/{name}", *_RUNS.get(name, ()))
    return CHECKOUT / f"scripts/prepare/{name}", tuple(map(beside, files))


def files_in(folder: Optional[str]) -> Tuple[str, ...]:
    """The files right in a folder, if there is one."""
    if folder is None:
        return ()
    inside = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
    return tuple(path for path in inside if os.path.isfile(path))


def text_stage(recipe: DictConfig) -> str:
    """The stage that has the text as fairseq-preprocess reads it."""
    return "prepare" if recipe.data.pieces == Pieces.none else "encode"
