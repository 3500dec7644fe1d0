"""BLEU of detokenised hypotheses; needs sacremoses, which is not installed along."""

from typing import Dict, List, Sequence

from ...common.files import read_lines
from .bleu import bleu
from .registry import Column, Flag, Job, Metric, Signature, register
from .texts import Score, check_pairs, installed_version

_REFERENCE = Flag(
    "--detokenized-reference",
    "FILE",
    "the same sentences as plain text that was never tokenised: adds bleu_detok, BLEU "
    "(13a) of the hypotheses after sacremoses has detokenised them",
)
_LANGUAGE = Flag(
    "--detokenize-language",
    "LANG",
    "whose rules sacremoses uses (default: %(default)s)",
    default="en",
)


def detokenize(texts: Sequence[str], language: str = "en") -> List[str]:
    """Moses-tokenised text to plain text, by sacremoses.

    Raises:
        ValueError: sacremoses is not installed.
    """
    try:
        from sacremoses import MosesDetokenizer
    except ImportError:
        raise ValueError("detokenising needs sacremoses: pip install sacremoses") from None
    detokenizer = MosesDetokenizer(lang=language)
    return [detokenizer.detokenize(text.split()) for text in texts]


def detokenized_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    language: str = "en",
    lowercase: bool = False,
) -> Score:
    """BLEU (``13a``) of detokenised hypotheses against a plain text that was never tokenised.

    The signature goes on with who detokenised: ``|detok:sacremoses-en-0.2.0``.

    Raises:
        ValueError: sacremoses is not installed, unequal counts, or no sentences.
    """
    check_pairs(hypotheses, references)
    result = bleu(detokenize(hypotheses, language), references, "13a", lowercase)
    how = f"detok:sacremoses-{language}-{installed_version('sacremoses')}"
    return Score(result.score, f"{result.signature}|{how}")


def _compute(job: Job) -> Dict[str, str]:
    plain = read_lines(_REFERENCE.value(job.options) or "")
    if len(plain) != len(job.references):
        raise ValueError(
            f"{len(plain)} lines for the {len(job.references)} of "
            f"--reference {job.options.reference}"
        )
    language = _LANGUAGE.value(job.options) or "en"
    found = detokenized_bleu(job.hypotheses, plain, language, job.options.lowercase)
    return {"bleu_detok": f"{found.score:.2f}", "bleu_detok_signature": found.signature}


register(
    Metric(
        "bleu_detok",
        (Column("bleu_detok", "BLEU, detok.", after="brevity_penalty"),),
        _compute,
        Signature("bleu_detok_signature"),
        said="BLEU detokenised {bleu_detok} ({bleu_detok_signature})",
        flags=(_REFERENCE, _LANGUAGE),
        place=50,
    )
)
