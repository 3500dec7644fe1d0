"""Scores by packages that are not installed along: sacremoses, bleurt."""

import os
from importlib import metadata
from typing import List, Sequence

from .metrics import Score, bleu, check_pairs

_BLEURT_CONFIG = "bleurt_config.json"


def detokenize(texts: Sequence[str], language: str = "en") -> List[str]:
    """Moses-tokenised text to plain text, by sacremoses.

    :raises ValueError: sacremoses is not installed.
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

    :raises ValueError: sacremoses is not installed, unequal counts, or no sentences.
    """
    check_pairs(hypotheses, references)
    result = bleu(detokenize(hypotheses, language), references, "13a", lowercase)
    how = f"detok:sacremoses-{language}-{_version('sacremoses')}"
    return Score(result.score, f"{result.signature}|{how}")


def bleurt(hypotheses: Sequence[str], references: Sequence[str], checkpoint: str) -> Score:
    """Mean over the sentences of BLEURT, as the checkpoint gives it (not times 100).

    ``checkpoint``: an unpacked folder such as BLEURT-20. The scores of two checkpoints
    are not comparable; the signature names the folder.

    :raises ValueError: no such folder or no checkpoint in it, bleurt is not installed or fails,
        unequal counts, or no sentences.
    """
    check_pairs(hypotheses, references)
    if not os.path.isdir(checkpoint):
        raise ValueError(f"{checkpoint}: no folder with a BLEURT checkpoint")
    try:
        from bleurt.score import BleurtScorer
    except ImportError:
        raise ValueError(
            "BLEURT needs the package bleurt, which brings TensorFlow: "
            "pip install git+https://github.com/google-research/bleurt"
        ) from None
    try:
        scorer = BleurtScorer(checkpoint)
        scores = scorer.score(references=list(references), candidates=list(hypotheses))
    except Exception as err:  # whatever TensorFlow raises: a broken checkpoint, no memory, ...
        if not os.path.isfile(os.path.join(checkpoint, _BLEURT_CONFIG)):
            raise ValueError(
                f"{checkpoint}: no BLEURT checkpoint: there is no {_BLEURT_CONFIG} in it (give the "
                "unpacked folder itself, such as BLEURT-20)"
            ) from err
        reason = (str(err).strip().splitlines() or ["no message"])[0][:200]
        raise ValueError(f"{checkpoint}: BLEURT failed: {type(err).__name__}: {reason}") from err
    if len(scores) != len(hypotheses):
        raise ValueError(f"{checkpoint}: BLEURT gave {len(scores)} scores for {len(hypotheses)}")
    name = os.path.basename(os.path.normpath(os.path.abspath(checkpoint)))
    signature = f"bleurt|checkpoint:{name}|mean:sentences|version:{_version('BLEURT')}"
    return Score(float(sum(scores)) / len(scores), signature)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"
