"""Subword pieces where words should be: the wrong ``--remove-bpe`` found and named."""

import re
from typing import Optional, Sequence

_GLUED = re.compile(r"\w@@\w")
_SENTENCEPIECE = "generate with --remove-bpe sentencepiece"
_SUBWORD_NMT = "generate with --remove-bpe subword_nmt"
_GPT2 = "generate with --bpe gpt2 and the encoder.json and vocab.bpe of the preprocessing"


def _remedy(text: str) -> Optional[str]:
    if "\u2581" in text:
        return _SENTENCEPIECE
    if "@@ " in text + " ":
        return _SUBWORD_NMT
    if "\u0120" in text:  # the space of GPT-2's byte alphabet
        return _GPT2
    return None


def check_pieces(texts: Sequence[str], name: str, references: Sequence[str] = ()) -> None:
    """Refuse texts that hold subword pieces, or words that a wrong removal glued together.

    ``references`` (plain words) lets it find glued words and bare GPT-2 ids as well.

    :raises ValueError: names the first sentence and the right option.

    >>> check_pieces(["a man", "a wo@@ man"], "gen.out")
    Traceback (most recent call last):
    ValueError: gen.out: sentence 1 holds subword pieces ('a wo@@ man'): generate with \
--remove-bpe subword_nmt
    """
    for i, text in enumerate(texts):
        remedy = _remedy(text)
        if remedy:
            raise ValueError(f"{name}: sentence {i} holds subword pieces ({text[:60]!r}): {remedy}")
    glued = [i for i, text in enumerate(texts) if _GLUED.search(text)]
    if len(glued) > 0.1 * len(texts):
        raise ValueError(
            f"{name}: words are glued together ({texts[glued[0]][:60]!r}, sentence {glued[0]}): "
            f"{_SUBWORD_NMT}"
        )
    words = [text.split() for text in texts if text.split()]
    wanted = [word for text in references for word in text.split()]
    if not words or not wanted:
        return
    if all(w.isdigit() for ws in words for w in ws) and not all(map(str.isdigit, wanted)):
        raise ValueError(f"{name}: numbers instead of words ({' '.join(words[0])[:60]!r}): {_GPT2}")
    # One long word a sentence against references of several ordinary ones.
    length = sum(map(len, wanted)) / len(wanted)
    one_word = all(len(ws) == 1 and len(ws[0]) > 2 * length for ws in words)
    if one_word and len(wanted) >= 3 * len(references):
        raise ValueError(
            f"{name}: every sentence is one long word ({words[0][0][:60]!r}): the spaces were "
            "removed by --remove-bpe sentencepiece from text without sentencepieces; use the "
            "value that fits the segmentation (subword_nmt for '@@ ', none for plain words)"
        )
