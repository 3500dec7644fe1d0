"""What the metrics share: checks of their texts, and the measures over words."""

import math
from importlib import metadata
from typing import Any, List, NamedTuple, Sequence

from ... import __version__
from .registry import Signature

UNKNOWN = "<unk>"
WORD_SIGNATURE = (
    f"words|split:space|case:mixed|dedup:no|mean:corpus|unk:{UNKNOWN}|version:{__version__}"
)
WORDS = Signature("words_signature", "words and lengths")


class Score(NamedTuple):
    """A number, and how it was computed."""

    score: float
    signature: str


def corpus_score(metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Of one of sacrebleu's metrics, with its signature; one reference a sentence.

    Raises:
        ValueError: unequal counts, or no sentences.
    """
    check_pairs(hypotheses, references)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(result.score, str(metric.get_signature()))


def words_of(texts: Sequence[str]) -> List[List[str]]:
    """Raises ValueError: one string instead of a list."""
    if isinstance(texts, str):
        raise ValueError("a list of sentences is needed, not one string")
    return [text.split() for text in texts]


def percentage(part: int, whole: int) -> float:
    """NaN of nothing."""
    return 100.0 * part / whole if whole else math.nan


def check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Raises ValueError: unequal counts, no sentences, or one string instead of a list."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("lists of sentences are needed, not one string")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses for {len(references)} references: one for each is needed"
        )
    if not hypotheses:
        raise ValueError("no sentences to score (0 hypotheses, 0 references)")


def installed_version(package: str) -> str:
    """Of a package, for a signature."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
