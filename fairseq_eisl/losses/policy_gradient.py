"""Policy gradient over sampled sequences (REINFORCE; Williams, 1992), and its baselines."""

from typing import Any, Dict, Optional

import torch
from torch import Tensor

BASELINES = ("self_critical", "rloo", "mean", "ema", "none")
NORMS = ("sequence", "token")


def policy_gradient_loss(
    log_probs: Tensor, mask: Tensor, advantages: Tensor, norm: str = "sequence"
) -> Tensor:
    """The loss whose gradient is that of the expected reward, of each sentence.

    Args:
        log_probs: (B, K, L) log-probability in nats of each token of K samples a sentence.
        mask: (B, K, L) bool, the tokens of the samples, their end included.
        advantages: (B, K) reward minus baseline; constants to the gradient.
        norm: ``sequence`` sums the log-probabilities of a sample, ``token`` takes their mean,
            which prefers no length but is no gradient of the expected reward.

    Returns:
        (B,) means over the samples.

    Raises:
        ValueError: wrong shapes or an unknown norm.

    >>> log_probs = torch.tensor([[[0.5, 0.25, 0.8]]]).log()
    >>> mask, advantage = torch.ones(1, 1, 3, dtype=torch.bool), torch.tensor([[0.7 - 0.4]])
    >>> round(policy_gradient_loss(log_probs, mask, advantage).item(), 6)
    0.690776
    """
    if norm not in NORMS:
        raise ValueError(f"norm={norm!r} is unknown; choose from {', '.join(NORMS)}")
    if log_probs.shape != mask.shape or advantages.shape != mask.shape[:2]:
        raise ValueError(
            f"log_probs and mask (B, K, L) and advantages (B, K) are needed, not "
            f"{tuple(log_probs.shape)}, {tuple(mask.shape)} and {tuple(advantages.shape)}"
        )
    sums = torch.where(mask, log_probs, 0.0).sum(2)
    if norm == "token":
        sums = sums / mask.sum(2).clamp(min=1)
    return -(advantages.detach().to(sums.dtype) * sums).sum(1) / max(1, mask.size(1))


def baselines(
    rewards: Tensor, kind: str, greedy: Optional[Tensor] = None, average: Optional[float] = None
) -> Tensor:
    """What is taken from the (B, K) rewards of K samples.

    Args:
        kind: ``self_critical`` (Rennie et al., CVPR 2017): the reward of the greedy output, (B,)
            ``greedy``; ``rloo`` (Kool et al., 2019): the mean of the sentence's other samples;
            ``mean``: of all its samples; ``ema``: ``average``, a running mean of all rewards; or
            ``none``: 0.

    Raises:
        ValueError: an unknown kind, ``rloo`` of one sample, or what the kind needs is missing.

    >>> baselines(torch.tensor([[0.75, 0.25]]), "rloo").tolist()
    [[0.25, 0.75]]
    """
    if kind not in BASELINES:
        raise ValueError(f"kind={kind!r} is unknown; choose from {', '.join(BASELINES)}")
    if kind == "none":
        return torch.zeros_like(rewards)
    if kind == "self_critical":
        if greedy is None or greedy.shape != rewards.shape[:1]:
            raise ValueError("kind='self_critical' needs the (B,) rewards of the greedy outputs")
        return greedy.unsqueeze(1).expand_as(rewards)
    if kind == "ema":
        if average is None:
            raise ValueError("kind='ema' needs the running average of the rewards")
        return torch.full_like(rewards, average)
    total, count = rewards.sum(1, keepdim=True), rewards.size(1)
    if kind == "mean":
        return (total / max(1, count)).expand_as(rewards)
    if count < 2:
        raise ValueError(f"kind='rloo' needs two samples or more, not {count}")
    return (total - rewards) / (count - 1)


class RunningMean:
    """An exponential mean of rewards, corrected for its start at zero.

    Args:
        decay: of the mean at each batch, in [0, 1).

    >>> mean = RunningMean(0.5)
    >>> [round(mean.before(torch.tensor(batch)), 4) for batch in ([1.0], [0.0], [0.5])]
    [1.0, 1.0, 0.3333]
    """

    def __init__(self, decay: float):
        self.decay = decay
        self.total = self.weight = 0.0

    def before(self, rewards: Tensor) -> float:
        """The mean of the batches before this one (of this one where it is the first), which is
        taken note of; one without rewards says nothing."""
        if not len(rewards):
            return self.total / self.weight if self.weight else 0.0
        own = rewards.double().mean().item()
        found = self.total / self.weight if self.weight else own
        self.total = self.decay * self.total + (1 - self.decay) * own
        self.weight = self.decay * self.weight + 1 - self.decay
        return found

    def state_dict(self) -> Dict[str, Any]:
        """What a checkpoint keeps."""
        return {"total": self.total, "weight": self.weight}

    def load_state_dict(self, state: Dict[str, Any]):
        """Go on from :meth:`state_dict`."""
        self.total, self.weight = float(state["total"]), float(state["weight"])
