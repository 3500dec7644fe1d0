"""``--criterion oaxe``: cross entropy of the best order, for non-autoregressive models."""

from dataclasses import dataclass, field

import torch
from fairseq.criterions import register_criterion

from ..losses import token_log_probs
from ..losses.oaxe import oaxe_sums
from .base import NON_AUTOREGRESSIVE, SequenceCriterion
from .candidate_flags import SequenceCriterionConfig
from .idle_flags import FlagGroups
from .sequence_output import SequenceOutput


@dataclass
class OAXEConfig(SequenceCriterionConfig):
    oaxe_skip: float = field(
        default=0.15,
        metadata={"help": "matched tokens of a probability below it count nothing, in [0, 1)"},
    )
    oaxe_factor: float = field(default=1.0, metadata={"help": "factor of OAXE in the loss"})


@register_criterion("oaxe", dataclass=OAXEConfig)
class OAXECriterion(SequenceCriterion):
    """The words that the model fills in are matched to the slots it fills; the start and end
    symbols that it predicts have cross entropy at their own slots."""

    kinds = (NON_AUTOREGRESSIVE,)
    flag_groups = FlagGroups(sequence=("oaxe_skip",), factor="oaxe_factor")
    own_averages = ("skipped",)

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        if not 0 <= cfg.oaxe_skip < 1:
            raise ValueError(f"--oaxe-skip must be in [0, 1), not {cfg.oaxe_skip}")

    def sequence_losses(self, output: SequenceOutput):
        """(B,) NLL per token that counts in nats, and how many words were skipped."""
        output.need_slots(self.name())
        assert output.scores is not None and output.slots is not None
        targets = output.targets.masked_fill(~output.target_mask, 0)
        predicted, special = output.slots.predicted, output.slots.special
        found = token_log_probs(output.scores.values, targets, predicted, output.overwritable)
        words, anchored = predicted & ~special, predicted & special
        total, count = oaxe_sums(found, words, skip=self.cfg.oaxe_skip)
        own = found.diagonal(dim1=1, dim2=2).masked_fill(~anchored, 0.0)
        every = (count + anchored.sum(1)).clamp(min=1)
        with torch.no_grad():
            log = {"skipped": (words.sum(1) - count).sum(), "skippable": words.sum()}
        return (total - own.sum(1)) / every, log

    @classmethod
    def log_own_averages(cls, sums):
        """Percentage of words that the truncation skipped."""
        skipped = 100.0 * sums.total("skipped")
        sums.average_if_any("skipped", skipped, sums.total("skippable"), round=2)
