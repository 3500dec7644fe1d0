"""Words that the model did not know."""

from typing import Dict, Sequence

from .registry import Column, Job, Metric, register
from .texts import UNKNOWN, WORD_SIGNATURE, WORDS, percentage, words_of


def unk_rate(texts: Sequence[str], unknown: str = UNKNOWN) -> float:
    """Percentage (0 to 100) of words that hold the unknown symbol; NaN if there are no words.

    Hold, not equal: removing sentencepieces glues ``<unk>`` to its neighbour.

    >>> unk_rate(["a <unk> b c"])
    25.0
    """
    words = [word for sentence in words_of(texts) for word in sentence]
    return percentage(sum(unknown in word for word in words), len(words))


def _compute(job: Job) -> Dict[str, str]:
    return {"unk_rate": f"{unk_rate(job.hypotheses):.2f}", WORDS.column: WORD_SIGNATURE}


register(
    Metric(
        "unk",
        (Column("unk_rate", "unknown words, %"),),
        _compute,
        WORDS,
        said="unknown words {unk_rate} %",
        place=90,
    )
)
