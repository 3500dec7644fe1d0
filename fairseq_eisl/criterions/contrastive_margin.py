"""``--criterion contrastive_margin``: the best of the model's outputs against the worst."""

from dataclasses import dataclass, field

import torch
from fairseq.criterions import register_criterion

from ..losses.contrastive_margin import contrastive_margin_loss
from .averages import Sums
from .candidate_flags import check_factors
from .idle_flags import FlagGroups
from .rewarded import REWARD_FLAGS, HypothesesConfig, RewardedCriterion, check_hypotheses


@dataclass
class ContrastiveMarginConfig(HypothesesConfig):
    margin: float = field(default=10.0, metadata={"help": "by which they differ, per reward of 1"})
    margin_factor: float = field(default=1.0, metadata={"help": "factor of it in the loss"})


@register_criterion("contrastive_margin", dataclass=ContrastiveMarginConfig)
class ContrastiveMarginCriterion(RewardedCriterion):
    """The output of the highest BLEU is to be likelier than that of the lowest, by a margin."""

    flag_groups = FlagGroups(
        sequence=("hypotheses", "hypotheses_from", "margin", *REWARD_FLAGS),
        factor="margin_factor",
    )

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_hypotheses(cfg, least=2)
        check_factors(cfg, "margin")

    def reward_losses(self, model, sample):
        """(B,) losses; among equals the first is the best, and the last the worst."""
        found = self.hypotheses(model, sample)
        rewards = self.rewards_of(found, sample["target"])
        last = rewards.size(1) - 1
        worst = last - rewards.flip(1).argmin(1, keepdim=True)
        places = torch.cat([rewards.argmax(1, keepdim=True), worst], 1)
        chosen, theirs = found.chosen(places), rewards.gather(1, places)
        own, forced = self.on_outputs(model, sample, chosen)
        nll = -own.sum(2) / chosen.mask.sum(2).clamp(min=1)
        losses = contrastive_margin_loss(nll[:, 0], nll[:, 1], theirs, margin=self.cfg.margin)
        with torch.no_grad():
            best, worst = theirs.unbind(1)
            log = {"rewards_best": best.sum(), "rewards_worst": worst.sum(), "pairs": len(theirs)}
            log["margins_kept"] = losses.le(0).sum()
        return losses, log, forced

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """Rewards (0 to 1) of the best and worst outputs, and the percentage of sentences whose
        margin is kept."""
        count = sums.total("pairs")
        for name in ("best", "worst"):
            sums.average_if_any(f"reward_{name}", sums.total(f"rewards_{name}"), count, round=4)
        sums.average_if_any("kept", 100.0 * sums.total("margins_kept"), count, round=2)
