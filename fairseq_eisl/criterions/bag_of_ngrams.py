"""``--criterion bag_of_ngrams``: the expected n-grams of a non-autoregressive model."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion

from ..losses import token_log_probs
from ..losses.bag_of_ngrams import FLOOR, bag_of_ngrams_loss
from ..losses.nat_slots import pin_observed
from .base import NON_AUTOREGRESSIVE, SequenceCriterion
from .candidate_flags import SequenceCriterionConfig
from .idle_flags import FlagGroups
from .sequence_output import SequenceOutput


@dataclass
class BagOfNgramsConfig(SequenceCriterionConfig):
    bag_ngram: int = field(default=2, metadata={"help": "order of the n-grams"})
    bag_factor: float = field(
        default=1.0,
        metadata={
            "help": "factor of the bag of n-grams in the loss; joint training has 0.9 beside "
            "--ce-factor 0.1"
        },
    )


@register_criterion("bag_of_ngrams", dataclass=BagOfNgramsConfig)
class BagOfNgramsCriterion(SequenceCriterion):
    """The distance between the expected n-grams of the slots and the target's.

    Start and end symbols are words, as in the authors' code; a slot that the model is shown holds
    its own token for sure.
    """

    kinds = (NON_AUTOREGRESSIVE,)
    flag_groups = FlagGroups(sequence=("bag_ngram",), factor="bag_factor")

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        if cfg.bag_ngram < 1:
            raise ValueError(f"--bag-ngram must be 1 or more, not {cfg.bag_ngram}")

    def sequence_losses(self, output: SequenceOutput):
        """(B,) distances between 0 and 1; nothing more to log."""
        output.need_slots(self.name())
        assert output.scores is not None and output.slots is not None
        targets = output.targets.masked_fill(~output.target_mask, 0)
        predicted = output.slots.predicted
        found = token_log_probs(output.scores.values, targets, predicted, output.overwritable)
        loss = bag_of_ngrams_loss(
            pin_observed(found, targets, predicted, FLOOR),
            targets,
            output_mask=output.mask,
            target_mask=output.target_mask,
            n=self.cfg.bag_ngram,
        )
        return loss, {}
