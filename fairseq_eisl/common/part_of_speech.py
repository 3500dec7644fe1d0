"""Nouns of English sentences, by the tagger of textblob, whose model lies inside its package."""

from typing import List, Sequence

TAGGER = "textblob-pattern"
_MISSING = "tagging words needs textblob: pip install textblob"


def check_tagger() -> None:
    """Raises ValueError: textblob is not installed."""
    try:
        from textblob.en import tag  # noqa: F401
    except ImportError:
        raise ValueError(_MISSING) from None


def nouns(words: Sequence[str]) -> List[bool]:
    """Which words of a sentence are common nouns in the singular (Penn's tag NN, as in Tian, Hu and
    Yu, 2018: neither plurals nor names).

    Raises:
        ValueError: textblob is not installed.
    """
    try:
        from textblob.en import tag
    except ImportError:
        raise ValueError(_MISSING) from None
    if not words:
        return []
    tagged = tag(" ".join(words), tokenize=False)
    if len(tagged) != len(words):  # it has taken a word apart: each for itself then
        tagged = [(tag(word, tokenize=False) or [(word, "")])[0] for word in words]
    return [kind == "NN" for _, kind in tagged]
