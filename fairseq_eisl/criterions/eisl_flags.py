"""The flags of ``--criterion eisl``, and the options of the loss that they make."""

from dataclasses import dataclass, field
from typing import Any, List

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..losses import SPECIALS, EISLOptions
from ..losses.position_selection import CHOICES, SELECTION_ON
from .candidate_flags import (
    CandidateCriterionConfig,
    check_choices,
)
from .clean_text import FLAGS as CLEAN_TEXT_FLAGS
from .clean_text import CleanTextConfig, check_clean_text_flags
from .idle_flags import FlagGroups

OUTPUT_LAYERS = ("auto", "whole", "blocks")
STEPS = ("all", "first")
UNITS = ("pieces", "words")
COMPATIBILITIES = ("none", "released")
# The flag of each option of the loss that has another name.
_FLAGS = {
    "ngrams": "--ngram",
    "weights": "--ngram-weight",
    "selection": "--position-selection",
    "temperature": "--gumbel-temperature",
    "selection_on": "--selection-on",
    "floor": "--log-prob-floor",
}
FLAG_GROUPS = FlagGroups(
    sequence=(
        "ngram",
        "ngram_weight",
        "position_selection",
        "gumbel_temperature",
        "selection_on",
        "log_prob_floor",
        "ngram_sum",
        "ngram_units",
    ),
    autoregressive=("output_layer",),
    slots=("eisl_special",),
    slot_steps=("eisl_steps",),
    weights=CLEAN_TEXT_FLAGS,
    factor="ngram_factor",
)


@dataclass
class EISLLossConfig(FairseqDataclass):
    """The options of the loss itself, for every criterion that has EISL as a part."""

    # Any, not str: hydra and YAML have lists of numbers.
    ngram: Any = field(
        default="2,3,4",
        metadata={
            "help": "n-gram orders, e.g. 1,2; 0 stands for the target's length, -1 for one less"
        },
    )
    ngram_weight: Any = field(
        default=None,
        metadata={"help": "a weight for each order, e.g. 0.8,0.2 (default: equal, summing to 1)"},
    )
    position_selection: ChoiceEnum(CHOICES) = field(  # type: ignore[valid-type]
        default="gumbel",
        metadata={
            "help": "weights over candidate positions: gumbel (softmax with Gumbel noise; no noise "
            "in validation), softmax, uniform, hard (the best position), sinkhorn (a position "
            "serves one n-gram; equal ones count as one); or none: count (minus log of the "
            "expected count, clipped at the target's own)"
        },
    )
    gumbel_temperature: float = field(
        default=1.0, metadata={"help": "temperature of the position selection"}
    )
    selection_on: ChoiceEnum(SELECTION_ON) = field(  # type: ignore[valid-type]
        default="log_prob",
        metadata={"help": "logits of the selection: log g (authors' code) or g (paper's wording)"},
    )
    log_prob_floor: float = field(
        default=-20.0, metadata={"help": "log-probabilities (nats) are clamped from below to this"}
    )
    ngram_sum: bool = field(
        default=False,
        metadata={"help": "sum an n-gram's log-probabilities instead of averaging them"},
    )


@dataclass
class EISLCriterionConfig(EISLLossConfig, CleanTextConfig, CandidateCriterionConfig):
    ngram_factor: float = field(default=1.0, metadata={"help": "factor of EISL in the loss"})
    ngram_units: ChoiceEnum(UNITS) = field(  # type: ignore[valid-type]
        default="pieces",
        metadata={
            "help": "words: n-grams that tear a word in pieces do not count, unless the word is "
            "longer than the n-gram (needs a task noisy_translation...)"
        },
    )
    output_layer: ChoiceEnum(OUTPUT_LAYERS) = field(  # type: ignore[valid-type]
        default="auto",
        metadata={
            "help": "logits of a Transformer's output layer: whole; in blocks that are computed "
            "again in the backward, with a fraction of the memory; or blocks where whole ones "
            "would be large (auto)"
        },
    )
    # -- non-autoregressive models only --
    eisl_special: ChoiceEnum(SPECIALS) = field(  # type: ignore[valid-type]
        default="anchor",
        metadata={
            "help": "start and end symbols that a non-autoregressive model predicts: anchor "
            "(cross entropy at their own slots), include (like words), exclude (no loss)"
        },
    )
    eisl_steps: ChoiceEnum(STEPS) = field(  # type: ignore[valid-type]
        default="first",
        metadata={
            "help": "refinement steps of iNAT's training that EISL is for; the others keep the "
            "cross entropy"
        },
    )
    eisl_compat: ChoiceEnum(COMPATIBILITIES) = field(  # type: ignore[valid-type]
        default="none",
        metadata={
            "help": "released: the loss of the authors' code on non-autoregressive models, for "
            "comparison (no masks, special symbols like words, noise in validation, batch means)"
        },
    )


def _numbers(flag: str, given: Any, kind) -> list:
    """A flag's numbers: a comma-separated text, a number, or a list of them (hydra, YAML)."""
    several = (
        hasattr(given, "__iter__") and not isinstance(given, str) and not hasattr(given, "keys")
    )
    parts: List[Any] = list(given) if several else str(given).split(",")
    try:
        if any(isinstance(part, bool) or not isinstance(part, (str, int, float)) for part in parts):
            raise ValueError
        numbers = [kind(str(part)) for part in parts]
    except ValueError:
        numbers = []
    if not numbers:
        name = "whole numbers" if kind is int else "numbers"
        shown = repr(parts) if several else repr(str(given))
        raise ValueError(f"{flag} must be {name} separated by commas, not {shown}")
    return numbers


def loss_options(cfg: EISLLossConfig) -> EISLOptions:
    """Checked loss options; errors name the flags."""
    ngrams = _numbers("--ngram", cfg.ngram, int)
    weights = None
    if cfg.ngram_weight is not None:
        weights = _numbers("--ngram-weight", cfg.ngram_weight, float)
        if len(weights) != len(ngrams):
            raise ValueError(
                f"--ngram-weight {cfg.ngram_weight}: {len(weights)} weights for the "
                f"{len(ngrams)} orders of --ngram {cfg.ngram}; one for each is needed"
            )
    try:
        return EISLOptions(
            ngrams,
            weights,
            selection=str(cfg.position_selection),
            temperature=cfg.gumbel_temperature,
            selection_on=str(cfg.selection_on),
            floor=cfg.log_prob_floor,
            normalize=not cfg.ngram_sum,
        )
    except ValueError as err:
        option = str(err).replace("=", " ").split()[0]
        raise ValueError(f"{_FLAGS.get(option, option)}: {err}") from None


def check_flags(cfg: EISLCriterionConfig):
    """Raise ValueError for an unknown choice among the flags of EISL alone, or two that exclude
    each other."""
    check_choices(
        cfg,
        (
            ("ngram_units", UNITS),
            ("output_layer", OUTPUT_LAYERS),
            ("eisl_special", SPECIALS),
            ("eisl_steps", STEPS),
            ("eisl_compat", COMPATIBILITIES),
        ),
    )
    check_clean_text_flags(cfg)
    if str(cfg.eisl_compat) != "released":
        return
    if str(cfg.ngram_units) == "words":
        raise ValueError("--ngram-units words: --eisl-compat released knows pieces only")
    if cfg.clean_text is not None:
        raise ValueError(
            f"--clean-text {cfg.clean_text}: to --eisl-compat released all n-grams count alike"
        )
