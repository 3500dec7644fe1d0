"""The flags that sequence criterions share, and their check: those of every one, and those of the
ones that decode candidates."""

import argparse
import math
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional, Sequence, Tuple

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

DECODINGS = ("greedy", "sample", "teacher-forcing")
PART_FACTORS = {
    "word_crf": "crf_loss_factor",
    "mask_ins": "mask_ins_loss_factor",
    "word_del": "word_del_loss_factor",
}
"""The factor of each part of the loss that some non-autoregressive models have, by the name that
fairseq logs the part under."""


@dataclass
class SequenceCriterionConfig(FairseqDataclass):
    ce_factor: float = field(
        default=0.0, metadata={"help": "factor of the teacher-forced cross entropy in the loss"}
    )
    label_smoothing: float = field(
        default=0.0, metadata={"help": "label smoothing of the cross entropy part"}
    )
    # -- non-autoregressive models only --
    crf_loss_factor: float = field(
        default=1.0, metadata={"help": "factor of the CRF's likelihood (NAT-CRF)"}
    )
    mask_ins_loss_factor: float = field(
        default=1.0, metadata={"help": "factor of the placeholder insertion (Levenshtein)"}
    )
    word_del_loss_factor: float = field(
        default=1.0, metadata={"help": "factor of the word deletion (Levenshtein)"}
    )
    nat_reg_factor: float = field(
        default=0.0,
        metadata={
            "help": "factor of NAT-REG's similarity term: neighbouring decoder states must not be "
            "more alike than their words"
        },
    )
    hint_teacher: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoint of an autoregressive Transformer with the same dictionaries and "
            "as many decoder layers, whose states and attention the hints are of"
        },
    )
    hint_hidden_factor: float = field(
        default=0.0,
        metadata={
            "help": "factor of the hints on states: positions that the teacher tells apart must "
            "not be alike"
        },
    )
    hint_align_factor: float = field(
        default=0.0,
        metadata={
            "help": "factor of the hints on encoder-decoder attention: to look where the "
            "teacher looks"
        },
    )
    hint_student_threshold: float = field(
        default=0.1, metadata={"help": "states of the student are alike from this cosine on"}
    )
    hint_teacher_threshold: float = field(
        default=0.9, metadata={"help": "the teacher tells states apart up to this cosine"}
    )


@dataclass
class CandidateCriterionConfig(SequenceCriterionConfig):
    train_decoding: ChoiceEnum(DECODINGS) = field(  # type: ignore[valid-type]
        default="greedy",
        metadata={
            "help": "where the candidate comes from: the model's own greedy output, a "
            "sample from it, or the target (teacher forcing)"
        },
    )
    candidate_after_eos: bool = field(
        default=False,
        metadata={
            "help": "count positions after the candidate's own EOS, up to the target's "
            "length, as candidate positions"
        },
    )
    candidate_avoid_eos: bool = field(
        default=False,
        metadata={
            "help": "say no EOS before the target's last position: the candidate is as long as the "
            "target, without words after an EOS, which no decoding would say"
        },
    )
    parallel_decoding: bool = field(
        default=False,
        metadata={
            "help": "decode the greedy candidate at all positions at once until nothing changes "
            "(Jacobi iterations), instead of token by token with cached keys"
        },
    )
    share_encoder_output: bool = field(
        default=False,
        metadata={
            "help": "decode the candidate from the encoder's output of the training forward, with "
            "its dropout, as the authors' code does, so that the encoder runs once a step"
        },
    )


def check_factors(cfg: Any, *names: str):
    """ValueError for a factor that is no finite number, 0 or above."""
    for name in names:
        value = getattr(cfg, name)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{flag_of(name)} must be a finite number, 0 or above, not {value}")


def check_choices(cfg: Any, choices_of: Iterable[Tuple[str, Sequence[str]]]):
    """ValueError for an unknown choice (hydra and YAML check none)."""
    for name, choices in choices_of:
        value = str(getattr(cfg, name))
        if value not in choices:
            raise ValueError(
                f"{flag_of(name)}: {value!r} is unknown; choose from {', '.join(choices)}"
            )


def check_candidate_flags(cfg: Any):
    """ValueError for a number that cannot be meant, or an unknown choice."""
    check_factors(
        cfg, "ce_factor", "crf_loss_factor", "mask_ins_loss_factor", "word_del_loss_factor"
    )
    if not 0 <= cfg.label_smoothing < 1:
        raise ValueError(f"--label-smoothing must be in [0, 1), not {cfg.label_smoothing}")
    _check_terms(cfg)
    if not hasattr(cfg, "train_decoding"):
        return
    check_choices(cfg, [("train_decoding", DECODINGS)])
    if cfg.candidate_after_eos and cfg.candidate_avoid_eos:
        raise ValueError(
            "--candidate-after-eos and --candidate-avoid-eos: there is no EOS to go on after; "
            "leave one of them away"
        )
    if cfg.parallel_decoding and str(cfg.train_decoding) != "greedy":
        raise ValueError(
            f"--parallel-decoding is for --train-decoding greedy, not {cfg.train_decoding}"
        )


def _check_terms(cfg: Any):
    """The same for the terms of non-autoregressive models."""
    hints = "hint_hidden_factor", "hint_align_factor"
    check_factors(cfg, "nat_reg_factor", *hints)
    for name in hints:
        if getattr(cfg, name) > 0 and not cfg.hint_teacher:
            raise ValueError(
                f"{flag_of(name)} {getattr(cfg, name)} needs --hint-teacher: a checkpoint of an "
                "autoregressive Transformer"
            )
    for name in ("hint_student_threshold", "hint_teacher_threshold"):
        if not -1 <= getattr(cfg, name) <= 1:
            raise ValueError(f"{flag_of(name)} is a cosine, in [-1, 1], not {getattr(cfg, name)}")


def at_eos(cfg: Any) -> str:
    """What a candidate's own EOS does, see :data:`fairseq_eisl.decoding.AT_EOS`. Criterions without
    candidates have no such flags."""
    if getattr(cfg, "candidate_avoid_eos", False):
        return "avoid"
    return "go_on" if getattr(cfg, "candidate_after_eos", False) else "end"


def flag_of(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


_NEGATIVE = re.compile(r"^-(\d|\.\d|inf|nan)", re.IGNORECASE)


def allow_negative_values(parser: argparse.ArgumentParser):
    """Let ``--ngram -1,2`` and ``--log-prob-floor -2e1`` be flags with values.

    argparse takes ``-1`` and ``-0.5`` for values, where no flag looks like a number, but a list
    of them or an exponent for a flag, and then misses the value.
    """
    # Its one place for that: it has no public name.
    parser._negative_number_matcher = _NEGATIVE
