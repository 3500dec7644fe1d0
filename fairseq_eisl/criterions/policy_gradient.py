"""``--criterion policy_gradient``: sampled sequences and the BLEU of each as its reward."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum
from torch import Tensor

from ..decoding.fairseq.candidates import decode
from ..losses.policy_gradient import (
    BASELINES,
    NORMS,
    RunningMean,
    baselines,
    policy_gradient_loss,
)
from .averages import Sums
from .base import Log
from .candidate_flags import check_choices
from .idle_flags import FlagGroups
from .rewarded import REWARD_FLAGS, Outputs, RewardedConfig, RewardedCriterion
from .workers import gathered


@dataclass
class PolicyGradientConfig(RewardedConfig):
    pg_factor: float = field(
        default=1.0, metadata={"help": "factor of the policy gradient in the loss"}
    )
    pg_samples: int = field(default=1, metadata={"help": "samples of each sentence"})
    pg_baseline: ChoiceEnum(BASELINES) = field(  # type: ignore[valid-type]
        default="self_critical",
        metadata={
            "help": "what is taken from a reward: that of the greedy output, the mean of the "
            "sentence's other samples (rloo) or of all of them, a running mean of all rewards "
            "(ema), or nothing"
        },
    )
    pg_ema_decay: float = field(
        default=0.99, metadata={"help": "of --pg-baseline ema, at each batch, in [0, 1)"}
    )
    pg_norm: ChoiceEnum(NORMS) = field(  # type: ignore[valid-type]
        default="sequence",
        metadata={"help": "sum (sequence) or mean (token) of a sample's log-probabilities"},
    )


@register_criterion("policy_gradient", dataclass=PolicyGradientConfig)
class PolicyGradientCriterion(RewardedCriterion):
    """REINFORCE: samples that score better than a baseline become more likely."""

    flag_groups = FlagGroups(
        sequence=("pg_samples", "pg_baseline", "pg_ema_decay", "pg_norm", *REWARD_FLAGS),
        factor="pg_factor",
    )

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.count = cfg.pg_samples
        self.baseline, self.norm = str(cfg.pg_baseline), str(cfg.pg_norm)
        self.average = RunningMean(cfg.pg_ema_decay)

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_choices(cfg, (("pg_baseline", BASELINES), ("pg_norm", NORMS)))
        least = 2 if str(cfg.pg_baseline) == "rloo" else 1
        if cfg.pg_samples < least:
            raise ValueError(
                f"--pg-samples must be {least} or more with --pg-baseline {cfg.pg_baseline}, "
                f"not {cfg.pg_samples}"
            )
        if not 0 <= cfg.pg_ema_decay < 1:
            raise ValueError(f"--pg-ema-decay must be in [0, 1), not {cfg.pg_ema_decay}")

    def idle_lines(self):
        """The decay, where there is no running mean."""
        if self.baseline != "ema":
            yield from self.given.lines(["pg_ema_decay"], f"with --pg-baseline {self.baseline}")

    def reward_losses(self, model, sample):
        """(B,) losses whose gradient is that of the expected reward, with its sign turned."""
        samples = self.samples(model, sample, self.count)
        rewards = self.rewards_of(samples, sample["target"])
        greedy = None
        if self.baseline == "self_critical":
            limit = self.limit(model, sample)
            best = decode(model, sample, self.padding_idx, self.eos_idx, limit=limit)
            greedy = self.rewards(best.tokens, sample["target"])
        advantages = rewards - self._baselines(rewards, greedy)
        own, forced = self.on_outputs(model, sample, samples)
        losses = policy_gradient_loss(own, samples.mask, advantages, self.norm)
        return losses, self._statistics(rewards, greedy, advantages, samples), forced

    def _baselines(self, rewards: Tensor, greedy: Optional[Tensor]) -> Tensor:
        average = None
        if self.baseline == "ema":  # of what came before, on all workers
            own = rewards.flatten()
            every = gathered(own[:0] if self.is_dummy else own)
            average = self.average.before(every)
        return baselines(rewards, self.baseline, greedy, average)

    @torch.no_grad()
    def _statistics(
        self, rewards: Tensor, greedy: Optional[Tensor], advantages: Tensor, samples: Outputs
    ) -> Log:
        """Sums over samples."""
        ends = samples.tokens.eq(self.eos_idx).any(2)
        log: Dict[str, Any] = {
            "rewards": rewards.sum(),
            "samples": rewards.numel(),
            "advantages": advantages.sum(),
            "advantage_squares": advantages.square().sum(),
            "sample_tokens": samples.mask.sum(),
            "samples_cut": (~ends).sum(),
        }
        if greedy is not None:
            log["rewards_greedy"], log["greedy"] = greedy.sum(), greedy.numel()
        return log

    def kept_state(self) -> Dict[str, Any]:
        """What checkpoints keep of it."""
        return self.average.state_dict()

    def load_kept_state(self, state: Dict[str, Any]):
        """Go on from :meth:`kept_state`."""
        self.average.load_state_dict(state)

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """Rewards (0 to 1), the spread of the advantages, lengths in tokens, and the percentage
        of samples that were cut at the most tokens."""
        count = sums.total("samples")
        sums.average_if_any("reward", sums.total("rewards"), count, round=4)
        greedy = sums.total("rewards_greedy")
        sums.average_if_any("reward_greedy", greedy, sums.total("greedy"), round=4)
        if count > 0:
            mean = float(sums.total("advantages")) / count
            variance = float(sums.total("advantage_squares")) / count - mean**2
            sums.average("advantage_std", math.sqrt(max(0.0, variance)) * count, count, round=4)
            sums.average("sample_length", sums.total("sample_tokens"), count, round=2)
            sums.average("cut", 100.0 * sums.total("samples_cut"), count, round=2)
