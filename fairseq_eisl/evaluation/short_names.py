"""Names as they are shown: short ones spelt out, very long ones cut, none of them a command."""

import math
import re
import unicodedata
from typing import Iterable

MEANINGS = {
    "CE": "cross entropy",
    "EISL": "Edit-Invariant Sequence Loss",
    "PG": "policy gradient",
    "BoN": "bag of n-grams",
    "AXE": "aligned cross entropy",
    "OAXE": "order-agnostic cross entropy",
    "CTC": "connectionist temporal classification",
    "NAT": "non-autoregressive Transformer",
    "iNAT": "iteratively refining non-autoregressive Transformer",
    "CMLM": "conditional masked language model",
    "CRF": "conditional random field",
    "LevT": "Levenshtein Transformer",
    "KD": "knowledge distillation, a teacher's outputs as targets",
}
_OF = {name.lower(): name for name in MEANINGS}
_WORD = re.compile(r"[^\W_]+")
_BIDI = {"R", "AL", "AN", "RLE", "LRE", "RLO", "LRO", "RLI", "LRI", "FSI", "PDF", "PDI"}
_ISOLATE, _END = "\u2068", "\u2069"


def glossary(texts: Iterable[str]) -> str:
    """The short names in ``texts``, spelt out; empty where there are none.

    >>> glossary(["PG", "EISL after CE", "a teacher"])
    'PG: policy gradient; EISL: Edit-Invariant Sequence Loss; CE: cross entropy'
    """
    words = [_OF.get(word.lower()) for text in texts for word in _WORD.findall(text)]
    return "; ".join(f"{name}: {MEANINGS[name]}" for name in dict.fromkeys(words) if name)


def shown(text: str, most: int = 90) -> str:
    """A name on one line of at most ``most`` characters, cut in the middle.

    Characters that only control a terminal or a printer become spaces.

    >>> shown("a\\nrather long name", 10)
    'a rat…name'
    """
    plain = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)
    plain = " ".join(plain.split())
    if len(plain) <= most:
        return plain
    tail = (most - 1) // 2
    return plain[: most - 1 - tail].rstrip() + "…" + plain[len(plain) - tail :].lstrip()


def spoken(name: str) -> str:
    """The name of a column or noise as words.

    >>> spoken("length_candidates"), spoken("_own")
    ('length candidates', '_own')
    """
    return re.sub(r"(?<=[^\W_])_(?=[^\W_])", " ", name)


def columns_of(text: str) -> int:
    """About how wide a text is, in small letters: East Asian writing and emoji take two."""
    return math.ceil(sum(map(_width, text)))


def _width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 2.0
    if character in "mwMW@%":
        return 1.6
    return 1.2 if character.isupper() else 1.0


def isolated(text: str) -> str:
    """A name to be put into a sentence: written from right to left, it moves nothing else."""
    if any(unicodedata.bidirectional(c) in _BIDI for c in text):
        return f"{_ISOLATE}{text}{_END}"
    return text
