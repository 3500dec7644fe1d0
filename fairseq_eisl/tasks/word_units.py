"""The words of a task's dictionary, whose pieces noise keeps together."""

import logging
import os
from typing import List, Optional

from fairseq import utils
from fairseq.data import Dictionary

from ..noise import WordUnits, detect_scheme, read_gpt2_encoder
from ..noise.segmentation import KINDS, Marks, is_number

logger = logging.getLogger(__name__)


def word_units(
    dictionary: Dictionary,
    scheme: str,
    data: str,
    gpt2_encoder: Optional[str] = None,
    prefix: str = "--target-noise",
) -> WordUnits:
    """The word units of a dictionary.

    Args:
        scheme: ``auto`` reads it off the dictionary.
        data: the task's data folders, the first of which may hold GPT-2's encoder.json.
        gpt2_encoder: that file, where it lies elsewhere.
        prefix: of the flags that errors name.

    Raises:
        ValueError: the scheme and the dictionary do not fit, or GPT-2's file is missing.
    """
    flag = f"{prefix}-bpe"
    if scheme == "auto":
        scheme = detect_scheme(dictionary.symbols, dictionary.nspecial)
        side = prefix.strip("-").split("-")[0]  # target or source
        logger.info(f"{side} words are split as: {scheme} ({flag})")
    pieces = None
    own = dictionary.symbols[dictionary.nspecial :]
    if scheme == "gpt2" and sum(map(is_number, own)) > len(own) / 2:
        path = gpt2_encoder or os.path.join(utils.split_paths(data)[0], "encoder.json")
        if not os.path.exists(path):
            raise ValueError(
                f"{prefix}-gpt2-encoder: the dictionary holds GPT-2 piece numbers, and "
                f"word boundaries can only be read from GPT-2's encoder.json, not at {path} "
                f"(numbers that are words: {flag} none)"
            )
        pieces = read_gpt2_encoder(path)
    try:
        symbols = _with_mask(dictionary.symbols, scheme)
        return WordUnits(symbols, dictionary.nspecial, dictionary.unk(), scheme, pieces)
    except ValueError as err:
        raise ValueError(f"{flag} {scheme}: {err}") from None


def _with_mask(symbols: List[str], scheme: str) -> List[str]:
    """The symbols, with denoising's mask as a word of its own where words have a mark."""
    marks = KINDS.get(scheme, Marks())
    if not any(marks.before in s and marks.after in s for s in symbols):
        return symbols  # the scheme does not fit, which is said elsewhere
    return [f"{marks.before}{s}{marks.after}" if s == "<mask>" else s for s in symbols]
