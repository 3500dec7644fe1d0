"""Words that equal the word before them."""

from typing import Dict, Sequence

from .registry import Column, Job, Metric, register
from .texts import WORD_SIGNATURE, WORDS, percentage, words_of


def repetition_rate(texts: Sequence[str]) -> float:
    """Percentage (0 to 100) of words that equal the word before them, over the corpus.

    The first word of a sentence repeats nothing. NaN when there are no words.

    >>> repetition_rate(["a a b b b c"])
    50.0
    """
    sentences = words_of(texts)
    repeated = sum(a == b for words in sentences for a, b in zip(words, words[1:]))
    return percentage(repeated, sum(map(len, sentences)))


def _compute(job: Job) -> Dict[str, str]:
    return {
        "repetition": f"{repetition_rate(job.hypotheses):.2f}",
        "repetition_reference": f"{repetition_rate(job.references):.2f}",
        WORDS.column: WORD_SIGNATURE,
    }


register(
    Metric(
        "repetition",
        (
            Column("repetition", "repeated words, %"),
            Column("repetition_reference", "repeated words of the reference, %", of_reference=True),
        ),
        _compute,
        WORDS,
        said="repeated words {repetition} % (reference {repetition_reference} %)",
        place=70,
    )
)
