"""``--criterion axe``: cross entropy of the best alignment, for non-autoregressive models."""

from dataclasses import dataclass, field

import torch
from fairseq.criterions import register_criterion
from torch import Tensor

from ..decoding.fairseq.blanks import BLANK, check_length_factor, find_blank
from ..losses import token_log_probs
from ..losses.axe import axe_terms, pin_in_place
from .base import NON_AUTOREGRESSIVE, SequenceCriterion
from .candidate_flags import SequenceCriterionConfig
from .idle_flags import FlagGroups
from .sequence_output import SequenceOutput


@dataclass
class AXEConfig(SequenceCriterionConfig):
    axe_skip_penalty: float = field(
        default=1.0,
        metadata={"help": "factor of the cost of a word that shares the slot of another, from 1"},
    )
    axe_blank: str = field(
        default=BLANK, metadata={"help": "dictionary symbol that a slot without a word says"}
    )
    axe_factor: float = field(default=1.0, metadata={"help": "factor of AXE in the loss"})


@register_criterion("axe", dataclass=AXEConfig)
class AXECriterion(SequenceCriterion):
    """The target's words are aligned to the slots of words; slots without one say the blank.

    Start and end symbols that the model predicts have cross entropy at their own slots. A word
    that the model is shown (``--noise random_mask``, Levenshtein) stays in its slot and costs
    nothing, so that the words on either side are aligned to the slots of that side.

    There are as many slots as target tokens, unless ``--axe-length-factor`` of the task
    ``noisy_translation_lev`` gives more; the length that is predicted is the target's own.
    """

    kinds = (NON_AUTOREGRESSIVE,)
    flag_groups = FlagGroups(sequence=("axe_skip_penalty", "axe_blank"), factor="axe_factor")
    own_averages = ("blanks", "skipped")
    takes_more_slots = True

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.blank = find_blank(task.target_dictionary, cfg.axe_blank)

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_length_factor("--axe-skip-penalty", cfg.axe_skip_penalty)

    def sequence_losses(self, output: SequenceOutput):
        """(B,) NLL per predicted token in nats, and how many slots and words were skipped."""
        assert output.scores is not None and output.slots is not None
        predicted, special = output.slots
        if predicted.shape != output.mask.shape:
            output.need_slots(self.name())
        targets = output.targets.masked_fill(~output.target_mask, 0)
        marks = output.target_mask & self.symbols.special(output.targets)
        words, slots = output.target_mask & ~marks, output.mask & ~special
        columns = torch.nn.functional.pad(targets, (0, 1), value=self.blank)
        found = token_log_probs(output.scores.values, columns, predicted, output.overwritable)
        log_probs, blank = found[:, :, :-1], found[:, :, -1]
        own = _in_order(log_probs, special, marks)
        learned = words
        if output.as_long_as_target:
            learned = words & predicted
            log_probs, blank = pin_in_place(log_probs, blank, slots & ~predicted)
        axe = axe_terms(log_probs, blank, words, slots, skip_penalty=self.cfg.axe_skip_penalty)
        anchored = special & predicted
        total = axe.total - own.masked_fill(~anchored, 0.0).sum(1)
        with torch.no_grad():
            skipped, blanks = axe.alignment.skipped & learned, axe.alignment.blank
            log = {"skipped": skipped.sum(), "blanks": blanks.sum()}
            log.update(axe_words=learned.sum(), axe_slots=(slots & predicted).sum())
        return total / (learned.sum(1) + anchored.sum(1)).clamp(min=1), log

    @classmethod
    def log_own_averages(cls, sums):
        """Percentages of slots that are left to the blank, and of words that share a slot."""
        for name, every in (("blanks", "axe_slots"), ("skipped", "axe_words")):
            sums.average_if_any(name, 100.0 * sums.total(name), sums.total(every), round=2)


def _in_order(log_probs: Tensor, slots: Tensor, tokens: Tensor) -> Tensor:
    """(B, T) log-probability at the k-th slot of a mask (B, T) of the k-th token of another (B, S);
    0 for the other slots."""
    pairs = slots.unsqueeze(2) & tokens.unsqueeze(1)
    pairs = pairs & slots.cumsum(1).unsqueeze(2).eq(tokens.cumsum(1).unsqueeze(1))
    return torch.where(pairs, log_probs, 0.0).sum(2)
