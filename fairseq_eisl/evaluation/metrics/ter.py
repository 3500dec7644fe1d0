"""Translation edit rate by sacrebleu."""

from typing import Dict, Sequence

from sacrebleu.metrics import TER

from .registry import Column, Job, Metric, Signature, register
from .texts import Score, corpus_score


def ter(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Score:
    """Corpus translation edit rate by sacrebleu, in percent: lower is better, over 100 occurs.

    Case counts unless ``lowercase``, as in the other scores; sacrebleu's own command
    lower-cases for TER alone, and its signature says so.

    Raises:
        ValueError: unequal counts, or no sentences.

    >>> round(ter(["a man rides bike ."], ["a man rides a bike ."]).score, 1)
    16.7
    """
    return corpus_score(TER(case_sensitive=not lowercase), hypotheses, references)


def _compute(job: Job) -> Dict[str, str]:
    found = ter(job.hypotheses, job.references, job.options.lowercase)
    return {"ter": f"{found.score:.2f}", "ter_signature": found.signature}


register(
    Metric(
        "ter",
        (Column("ter", "TER (lower is better)"),),
        _compute,
        Signature("ter_signature"),
        said="TER {ter} ({ter_signature})",
        place=30,
    )
)
