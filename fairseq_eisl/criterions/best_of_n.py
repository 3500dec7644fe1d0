"""``--criterion best_of_n``: cross entropy on the model's own output that scores best."""

from dataclasses import dataclass, field

import torch
from fairseq.criterions import register_criterion

from .averages import Sums
from .idle_flags import FlagGroups
from .rewarded import REWARD_FLAGS, HypothesesConfig, RewardedCriterion, check_hypotheses


@dataclass
class BestOfNConfig(HypothesesConfig):
    best_of_factor: float = field(
        default=1.0, metadata={"help": "factor of the cross entropy on the best output"}
    )


@register_criterion("best_of_n", dataclass=BestOfNConfig)
class BestOfNCriterion(RewardedCriterion):
    """Of the outputs of a beam the one with the highest BLEU against the target is the target.

    This is what the runs of the authors of EISL do that are called policy gradient: nothing
    becomes less likely for a low reward. The loss of a sentence is the mean NLL of its tokens.
    """

    flag_groups = FlagGroups(
        sequence=("hypotheses", "hypotheses_from", *REWARD_FLAGS), factor="best_of_factor"
    )

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_hypotheses(cfg, least=1)

    def reward_losses(self, model, sample):
        """(B,) mean NLL of a token of the best output, in nats; the first of equals."""
        found = self.hypotheses(model, sample)
        rewards = self.rewards_of(found, sample["target"])
        best = rewards.argmax(1, keepdim=True)
        chosen = found.chosen(best)
        own, forced = self.on_outputs(model, sample, chosen)
        losses = -own.sum((1, 2)) / chosen.mask.sum((1, 2)).clamp(min=1)
        with torch.no_grad():
            log = {"rewards": rewards.sum(), "hypotheses": rewards.numel()}
            log.update(rewards_best=rewards.gather(1, best).sum(), best=len(best))
        return losses, log, forced

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """Rewards (0 to 1) of all outputs and of the best."""
        sums.average_if_any("reward", sums.total("rewards"), sums.total("hypotheses"), round=4)
        sums.average_if_any("reward_best", sums.total("rewards_best"), sums.total("best"), round=4)
