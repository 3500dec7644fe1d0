"""chrF by sacrebleu."""

from typing import Dict, Sequence

from sacrebleu.metrics import CHRF

from .registry import Column, Job, Metric, Signature, register
from .texts import Score, corpus_score


def chrf(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Score:
    """Corpus chrF2 by sacrebleu, 0 to 100: characters up to order 6, whitespace left out.

    Raises:
        ValueError: unequal counts, or no sentences.

    >>> round(chrf(["a man rides a bike ."], ["a man rides a bike ."]).score, 1)
    100.0
    """
    return corpus_score(CHRF(lowercase=lowercase), hypotheses, references)


def _compute(job: Job) -> Dict[str, str]:
    found = chrf(job.hypotheses, job.references, job.options.lowercase)
    return {"chrf": f"{found.score:.2f}", "chrf_signature": found.signature}


register(
    Metric(
        "chrf",
        (Column("chrf", "chrF"),),
        _compute,
        Signature("chrf_signature"),
        said="chrF {chrf} ({chrf_signature})",
        place=20,
    )
)
