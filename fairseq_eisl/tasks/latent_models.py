"""Flags and checks for models with latent alignments (``ctc_transformer``, ``dag_transformer``)."""

import logging
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Tuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..decoding.latent import SEARCHES

logger = logging.getLogger(__name__)

# What trains them, by the kind of alignment.
_CRITERIONS: Dict[str, Tuple[str, ...]] = {"ctc": ("ctc_loss", "eisl"), "dag": ("dag_loss", "eisl")}


@dataclass
class LatentModelsConfig(FairseqDataclass):
    dag_search: ChoiceEnum(SEARCHES) = field(  # type: ignore[valid-type]
        default="lookahead",
        metadata={
            "help": "how dag_transformer finds a path: greedy (the most likely transition), "
            "lookahead (transition and token together), or viterbi (the best path of all)"
        },
    )
    dag_length_penalty: float = field(
        default=1.0,
        metadata={
            "help": "--dag-search viterbi divides log-probabilities of paths by the number of "
            "tokens to the power of this; 0 prefers short outputs"
        },
    )


def kind_of(model: Any) -> str:
    """The kind of alignment, ctc or dag; empty for models with a slot for every target token."""
    return getattr(model, "alignment", "")


def search_of(cfg: Any, model: Any) -> Dict[str, Any]:
    """How the model is decoded, for its ``forward_decoder``; one line on flags without effect."""
    searches = kind_of(model) == "dag"
    idle = (
        ("dag_search", not searches),
        ("dag_length_penalty", not searches or str(cfg.dag_search) != "viterbi"),
    )
    fields = LatentModelsConfig.__dataclass_fields__
    for name, unused in idle:
        value = getattr(cfg, name)
        if unused and str(value) != str(fields[name].default):
            flag = "--" + name.replace("_", "-")
            why = f"--dag-search {cfg.dag_search}" if searches else type(model).__name__
            logger.warning(f"{flag} {value}: no effect with {why}")
    if not searches:
        return {}
    return {"search": str(cfg.dag_search), "length_penalty": cfg.dag_length_penalty}


def check_flags(cfg: Any):
    """ValueError for a number or choice that cannot be meant."""
    if str(cfg.dag_search) not in SEARCHES:
        raise ValueError(
            f"--dag-search: {str(cfg.dag_search)!r} is unknown; choose from {', '.join(SEARCHES)}"
        )
    if not (math.isfinite(cfg.dag_length_penalty) and cfg.dag_length_penalty >= 0):
        raise ValueError(
            f"--dag-length-penalty must be a finite number, 0 or above, not "
            f"{cfg.dag_length_penalty}"
        )


def check_trained_model(cfg: Any, model: Any):
    """ValueError for what the task would show to a decoder that makes its own slots."""
    if kind_of(model) and str(cfg.noise) != "full_mask":
        raise ValueError(
            f"--noise {cfg.noise} does not fit {type(model).__name__}, whose slots are its own; it "
            "needs --noise full_mask (see --glancing-ratio)"
        )


def check_criterion(kind: str, name: str):
    """ValueError for a loss that does not fit the kind of alignment of the model."""
    if kind and name not in _CRITERIONS[kind]:
        raise ValueError(
            f"--criterion {name} needs a slot for every target token; with --arch "
            f"{kind}_transformer choose from {', '.join(_CRITERIONS[kind])}"
        )
    for other, (own, *_) in _CRITERIONS.items():
        if name == own and kind != other:
            raise ValueError(f"--criterion {name} is for --arch {other}_transformer alone")
