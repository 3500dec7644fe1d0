"""BLEU against what people have written, beside that against the source."""

from typing import Dict

from ...common.files import read_lines
from .bleu import bleu
from .registry import Column, Flag, Job, Metric, Signature, register

_REFERENCE = Flag(
    "--human-reference",
    "FILE",
    "the sentences as people have rewritten them, one a line: adds bleu_human; --reference has the "
    "sources then",
)


def _compute(job: Job) -> Dict[str, str]:
    references = read_lines(_REFERENCE.value(job.options) or "")
    if len(references) != len(job.hypotheses):
        raise ValueError(f"{len(references)} lines for the {len(job.hypotheses)} hypotheses")
    found = bleu(job.hypotheses, references, job.options.tokenize, job.options.lowercase)
    return {"bleu_human": f"{found.score:.2f}", "bleu_human_signature": found.signature}


register(
    Metric(
        "bleu_human",
        (Column("bleu_human", "BLEU, human"),),
        _compute,
        Signature("bleu_human_signature"),
        said="BLEU human {bleu_human} ({bleu_human_signature})",
        flags=(_REFERENCE,),
        place=14,
    )
)
