"""The arguments that both trainers add to those of the trainers that they extend."""

import math
from dataclasses import dataclass, field
from typing import List, Optional

from ...losses import EISLOptions

DECODINGS = ("greedy", "sample", "teacher-forcing")
# The argument that each option of the loss comes from.
_ARGUMENTS = {
    "ngrams": "ngram",
    "weights": "ngram_weight",
    "selection": "position_selection",
    "temperature": "gumbel_temperature",
    "floor": "log_prob_floor",
}


@dataclass
class EISLArguments:
    """Named as the flags of ``--criterion eisl``."""

    ngram: List[int] = field(
        default_factory=lambda: [2, 3, 4],
        metadata={"help": "n-gram orders; 0 stands for the target's length, -1 for one less"},
    )
    ngram_weight: Optional[List[float]] = field(
        default=None, metadata={"help": "a weight for each order (default: equal, summing to 1)"}
    )
    ngram_factor: float = field(
        default=1.0,
        metadata={"help": "factor of EISL in the loss; 0: cross entropy alone, nothing is decoded"},
    )
    ce_factor: float = field(
        default=0.0, metadata={"help": "factor of the teacher-forced cross entropy in the loss"}
    )
    position_selection: str = field(
        default="gumbel",
        metadata={"help": "gumbel (without noise in evaluation), softmax, uniform, hard, sinkhorn"},
    )
    gumbel_temperature: float = field(
        default=1.0, metadata={"help": "temperature of the position selection"}
    )
    selection_on: str = field(
        default="log_prob", metadata={"help": "logits of the selection: log_prob or prob"}
    )
    log_prob_floor: float = field(
        default=-20.0, metadata={"help": "log-probabilities (nats) are clamped from below to this"}
    )
    ngram_sum: bool = field(
        default=False,
        metadata={"help": "sum an n-gram's log-probabilities instead of averaging them"},
    )
    train_decoding: str = field(
        default="greedy",
        metadata={
            "help": "where the candidate comes from: the model's own greedy output, a sample from "
            "it (greedy in evaluation), or the target (teacher-forcing)"
        },
    )
    candidate_after_eos: bool = field(
        default=False,
        metadata={
            "help": "count positions after the candidate's own end symbol, up to the target's "
            "length, as candidate positions"
        },
    )
    candidate_avoid_eos: bool = field(
        default=False,
        metadata={
            "help": "say no end symbol before the target's last position: the candidate is as long "
            "as the target"
        },
    )
    decoding_interval: int = field(
        default=1,
        metadata={
            "help": "decode candidates in every k-th update; in the others, which cost no "
            "decoding, the candidate is the target"
        },
    )

    def check_eisl(self):
        """Raise ValueError, which names the argument, for what cannot be meant."""
        loss_options(self)
        for name in ("ngram_factor", "ce_factor"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number, 0 or above, not {value}")
        if self.ngram_factor == self.ce_factor == 0:
            raise ValueError("ngram_factor and ce_factor are both 0: nothing to train on")
        if self.train_decoding not in DECODINGS:
            choices = ", ".join(DECODINGS)
            raise ValueError(
                f"train_decoding={self.train_decoding!r} is unknown; choose from {choices}"
            )
        ends = [n for n in ("candidate_after_eos", "candidate_avoid_eos") if getattr(self, n)]
        if len(ends) > 1:
            raise ValueError(
                f"{' and '.join(ends)}: there is no end symbol to go on after; leave one away"
            )
        if ends and self.train_decoding == "teacher-forcing":
            raise ValueError(
                f"{ends[0]} is of a candidate that is decoded; train_decoding='teacher-forcing' "
                "decodes none"
            )
        if self.decoding_interval < 1:
            raise ValueError(f"decoding_interval must be 1 or more, not {self.decoding_interval}")
        smoothing = getattr(self, "label_smoothing_factor", 0)
        if smoothing and self.ce_factor == 0:
            raise ValueError(
                f"label_smoothing_factor={smoothing} is of the cross entropy, which ce_factor=0 "
                "leaves out"
            )


def at_eos(args: EISLArguments) -> str:
    """What a candidate's own end symbol does, see :data:`fairseq_eisl.decoding.AT_EOS`."""
    if args.candidate_avoid_eos:
        return "avoid"
    return "go_on" if args.candidate_after_eos else "end"


def loss_options(args: EISLArguments) -> EISLOptions:
    """Checked options of the loss; errors name the argument.

    >>> loss_options(EISLArguments(ngram=[1, 2], ngram_weight=[0.8, 0.2])).order_weights
    (0.8, 0.2)
    """
    try:
        return EISLOptions(
            args.ngram,
            args.ngram_weight,
            selection=args.position_selection,
            temperature=args.gumbel_temperature,
            selection_on=args.selection_on,
            floor=args.log_prob_floor,
            normalize=not args.ngram_sum,
        )
    except ValueError as err:
        option = str(err).replace("=", " ").split()[0]
        argument = _ARGUMENTS.get(option, option)
        text = str(err).replace(option, argument, 1)
        text = text if text.startswith(argument) else f"{argument}: {text}"
        raise ValueError(text) from None
