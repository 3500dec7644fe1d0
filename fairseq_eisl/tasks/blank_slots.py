"""Flags for models whose slots may say a blank (AXE): the symbol, and room for it."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass import FairseqDataclass
from fairseq.models.nat import CMLMNATransformerModel, NACRFTransformerModel, NATransformerModel

from ..decoding.fairseq.blanks import BLANK, check_length_factor, find_blank
from ..decoding.fairseq.refinement import is_one_pass


@dataclass
class BlankSlotsConfig(FairseqDataclass):
    axe_blank: str = field(
        default=BLANK,
        metadata={
            "help": "dictionary symbol that a slot without a word says (--criterion axe); whatever "
            "a model was trained with, this one is deleted from what it decodes"
        },
    )
    axe_length_factor: float = field(
        default=1.0,
        metadata={
            "help": "slots for each target word in the training of --criterion axe, rounded by the "
            "sentence; above 1 with --noise full_mask only"
        },
    )
    length_factor: float = field(
        default=1.0,
        metadata={
            "help": "slots for each predicted word in decoding, rounded; 1 or above, as blanks "
            "need room"
        },
    )


def blank_of(cfg: BlankSlotsConfig, dictionary) -> Optional[int]:
    """The id of what decoding deletes; None where the dictionary lacks the default.

    Raises:
        ValueError: it lacks the symbol that was asked for.
    """
    if cfg.axe_blank == BLANK and BLANK not in dictionary:
        return None
    return find_blank(dictionary, cfg.axe_blank)


def check_flags(cfg: Any):
    """ValueError for a factor out of range, or one that the masks leave no meaning."""
    check_length_factor("--length-factor", cfg.length_factor)
    check_length_factor("--axe-length-factor", cfg.axe_length_factor)
    if cfg.axe_length_factor > 1 and str(cfg.noise) != "full_mask":
        raise ValueError(
            f"--axe-length-factor {cfg.axe_length_factor} goes with --noise full_mask, not with "
            f"{cfg.noise}: words that are shown have no place of their own among more slots"
        )


def check_trained_model(cfg: Any, model: Any):
    """ValueError for a model whose forward needs a slot for every target word."""
    right = isinstance(model, CMLMNATransformerModel) or (
        is_one_pass(model)
        and not isinstance(model, NACRFTransformerModel)
        and not getattr(model, "alignment", "")  # has slots of its own
    )
    if cfg.axe_length_factor > 1 and not right:
        fitting = f"{NATransformerModel.__name__} and {CMLMNATransformerModel.__name__}"
        raise ValueError(
            f"--axe-length-factor {cfg.axe_length_factor} is for {fitting}; "
            f"{type(model).__name__} needs as many slots as target words"
        )


def check_criterion(cfg: Any, criterion: Any):
    """ValueError for a loss that needs a slot for every target word."""
    factor, name = cfg.axe_length_factor, criterion._name
    if factor == 1:
        return
    if not getattr(CRITERION_REGISTRY[name], "takes_more_slots", False):
        raise ValueError(
            f"--axe-length-factor {factor} is for --criterion axe; {name} needs as many slots as "
            "target words"
        )
    if criterion.ce_factor > 0:
        raise ValueError(
            f"--ce-factor {criterion.ce_factor}: cross entropy needs as many slots as target "
            f"words, and --axe-length-factor {factor} gives more; leave one of them away"
        )
