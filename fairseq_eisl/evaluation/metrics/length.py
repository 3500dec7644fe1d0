"""Lengths in words, beside those of the references."""

import math
from typing import Dict, Sequence

from .registry import Column, Job, Metric, register
from .texts import WORD_SIGNATURE, WORDS, check_pairs, words_of


def length_ratio(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Words of all hypotheses divided by words of all references; NaN if those have none.

    Raises:
        ValueError: unequal counts, or no sentences.

    >>> length_ratio(["a b c"], ["a b"])
    1.5
    """
    check_pairs(hypotheses, references)
    words = sum(map(len, words_of(references)))
    return sum(map(len, words_of(hypotheses))) / words if words else math.nan


def length_error(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Mean over the sentences of the absolute difference in length to the reference, in words.

    What is too short here and too long there does not cancel, as in :func:`length_ratio`.

    Raises:
        ValueError: unequal counts, or no sentences.

    >>> length_error(["a b c", "a"], ["a b", "a b c"])
    1.5
    """
    check_pairs(hypotheses, references)
    pairs = zip(words_of(hypotheses), words_of(references))
    return sum(abs(len(ours) - len(theirs)) for ours, theirs in pairs) / len(hypotheses)


def _compute(job: Job) -> Dict[str, str]:
    return {
        "length_ratio": f"{length_ratio(job.hypotheses, job.references):.3f}",
        "length_error": f"{length_error(job.hypotheses, job.references):.2f}",
        WORDS.column: WORD_SIGNATURE,
    }


register(
    Metric(
        "length",
        (Column("length_ratio"), Column("length_error", "length error, words")),
        _compute,
        WORDS,
        said="length ratio {length_ratio}, error {length_error} words",
        place=80,
    )
)
