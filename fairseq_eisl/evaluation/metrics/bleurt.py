"""BLEURT; needs the package bleurt, which is not installed along."""

import os
from typing import Dict, Sequence

from .registry import Column, Flag, Job, Metric, Signature, register
from .texts import Score, check_pairs, installed_version

_CONFIG = "bleurt_config.json"
_CHECKPOINT = Flag("--bleurt", "CHECKPOINT_DIR", "adds bleurt; needs the package bleurt")


def bleurt(hypotheses: Sequence[str], references: Sequence[str], checkpoint: str) -> Score:
    """Mean over the sentences of BLEURT, as the checkpoint gives it (not times 100).

    ``checkpoint``: an unpacked folder such as BLEURT-20. The scores of two checkpoints
    are not comparable; the signature names the folder.

    Raises:
        ValueError: no such folder or no checkpoint in it, bleurt is not installed or fails,
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
        if not os.path.isfile(os.path.join(checkpoint, _CONFIG)):
            raise ValueError(
                f"{checkpoint}: no BLEURT checkpoint: there is no {_CONFIG} in it (give the "
                "unpacked folder itself, such as BLEURT-20)"
            ) from err
        reason = (str(err).strip().splitlines() or ["no message"])[0][:200]
        raise ValueError(f"{checkpoint}: BLEURT failed: {type(err).__name__}: {reason}") from err
    if len(scores) != len(hypotheses):
        raise ValueError(f"{checkpoint}: BLEURT gave {len(scores)} scores for {len(hypotheses)}")
    name = os.path.basename(os.path.normpath(os.path.abspath(checkpoint)))
    signature = f"bleurt|checkpoint:{name}|mean:sentences|version:{installed_version('BLEURT')}"
    return Score(float(sum(scores)) / len(scores), signature)


def _compute(job: Job) -> Dict[str, str]:
    found = bleurt(job.hypotheses, job.references, _CHECKPOINT.value(job.options) or "")
    return {"bleurt": f"{found.score:.4f}", "bleurt_signature": found.signature}


register(
    Metric(
        "bleurt",
        (Column("bleurt", "BLEURT"),),
        _compute,
        Signature("bleurt_signature"),
        flags=(_CHECKPOINT,),
        place=60,
    )
)
