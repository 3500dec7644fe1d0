"""BLEU by sacrebleu."""

from typing import Dict, NamedTuple, Sequence

from sacrebleu.metrics import BLEU

from .registry import Column, Job, Metric, Signature, register
from .texts import check_pairs

TOKENIZERS = ("none", "13a", "intl", "zh", "char")  # those that need no download


class Bleu(NamedTuple):
    """score: 0 to 100. brevity_penalty: 0 to 1. Lengths: tokens of the whole corpus."""

    score: float
    brevity_penalty: float
    system_length: int
    reference_length: int
    signature: str


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "none",
    lowercase: bool = False,
) -> Bleu:
    """Corpus BLEU by sacrebleu, one reference a sentence.

    ``tokenize="none"`` is for text that is tokenised already, on both sides, as in
    the Multi30k experiments; for plain text use ``13a``. The two are different
    scores and never compared.

    Raises:
        ValueError: unequal counts, no sentences, or an unknown tokenizer.

    >>> score = bleu(["a man rides a bike ."], ["a man rides a bike ."])
    >>> round(score.score, 1), score.signature.split("|version")[0]
    (100.0, 'nrefs:1|case:mixed|eff:no|tok:none|smooth:exp')
    """
    check_pairs(hypotheses, references)
    if tokenize not in TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(TOKENIZERS)}, not {tokenize!r}")
    # force: no warning about tokenised text where the caller says that it is tokenised.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Bleu(
        score=result.score,
        brevity_penalty=result.bp,
        system_length=result.sys_len,
        reference_length=result.ref_len,
        signature=str(metric.get_signature()),
    )


def _compute(job: Job) -> Dict[str, str]:
    found = bleu(job.hypotheses, job.references, job.options.tokenize, job.options.lowercase)
    return {
        "bleu": f"{found.score:.2f}",
        "bleu_signature": found.signature,
        "brevity_penalty": f"{found.brevity_penalty:.3f}",
    }


register(
    Metric(
        "bleu",
        (Column("bleu", "BLEU"), Column("brevity_penalty", in_table=False)),
        _compute,
        Signature("bleu_signature"),
        said="BLEU {bleu} ({bleu_signature}) | brevity penalty {brevity_penalty}",
        place=10,
    )
)
