"""Cross entropy whose tokens are weighted by how likely the model finds them.

Each weight is a constant to the gradient. What most have in common: a token that the model gives
no chance, as one that noise has put into a target, teaches little or nothing.

Sources: TaiLr (Ji et al., ICLR 2023, arXiv 2302.13344), the likelihood itself as weight (Wu et al.,
2025, arXiv 2508.05629: dynamic fine-tuning), MixCE (Zhang et al., ACL 2023, arXiv 2305.16958), GOLD
(Pang and He, ICLR 2021, arXiv 2009.07839), error norm truncation (Li et al., ICLR 2024, arXiv
2310.00840) and the convex function of likelihood (Shao et al., NeurIPS 2023, arXiv 2310.17217).
"""

import math
from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor

from .token_log_probs import token_log_probs

WEIGHTINGS = ("tailr", "dft", "mixce", "gold", "error_norm", "convex", "none")


@dataclass(frozen=True)
class TokenWeighting:
    """Which weights, and their numbers.

    ``tailr``: p / (g + (1 - g) p), clamped to ``tailr_min`` from below; g = 0 is cross entropy.
    ``dft``: p. ``mixce``: e + (1 - e) p. ``gold``: max(p, u). ``error_norm``: 1 where the
    Euclidean norm of (probabilities - one-hot target) is below the threshold, else 0; the norm is
    between 0 and the square root of 2. ``convex``: the loss of a sentence is -exp(k mean log p).
    ``none``: 1, plain cross entropy.
    """

    kind: str = "tailr"
    tailr_gamma: float = 0.1
    tailr_min: float = 0.3
    mixce_factor: float = 0.5
    gold_min: float = 0.1
    error_norm_threshold: float = 1.3
    convex_power: float = 3.0

    def __post_init__(self):
        if self.kind not in WEIGHTINGS:
            raise ValueError(f"kind={self.kind!r} is unknown; choose from {', '.join(WEIGHTINGS)}")
        for name in ("tailr_gamma", "tailr_min", "mixce_factor", "gold_min"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], not {getattr(self, name)}")
        for name in ("error_norm_threshold", "convex_power"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a finite number above 0, not {value}")


def own_log_probs(logits: Tensor, targets: Tensor, used: Tensor) -> Tensor:
    """Log-probability of each position's own token.

    Args:
        logits: (B, T, V), any floating dtype.
        targets: (B, T) int64; anything where ``used`` is False.
        used: (B, T) bool.

    Returns:
        (B, T) in nats, float32 at least; 0 where ``used`` is False.
    """
    rows = targets.masked_fill(~used, 0).reshape(-1, 1)
    found = token_log_probs(logits.flatten(0, 1).unsqueeze(1), rows, used.reshape(-1, 1))
    return found.view(targets.shape)


@torch.no_grad()
def error_norms(logits: Tensor, log_probs: Tensor) -> Tensor:
    """Euclidean norm of (probabilities - one-hot target): the root of 1 - 2 p + sum of squares.

    Args:
        logits: (B, T, V).
        log_probs: (B, T) log-probabilities of the targets in nats.

    >>> error_norms(torch.zeros(1, 1, 4), torch.tensor([[0.25]]).log()).item()
    0.8660253882408142
    """
    logits = logits.to(log_probs.dtype)
    squares = (2 * logits).logsumexp(2) - 2 * logits.logsumexp(2)
    return (1 - 2 * log_probs.exp() + squares.exp()).clamp(min=0).sqrt()


@torch.no_grad()
def token_weights(
    log_probs: Tensor, weighting: TokenWeighting, norms: Optional[Tensor] = None
) -> Tensor:
    """The weight of each token, in [0, 1]; ``norms`` (:func:`error_norms`) for ``error_norm``.

    >>> p = torch.tensor([0.9, 0.05])
    >>> [round(w, 4) for w in token_weights(p.log(), TokenWeighting("tailr")).tolist()]
    [0.989, 0.3448]
    """
    p = log_probs.exp()
    if weighting.kind == "tailr":
        g = weighting.tailr_gamma
        # Of a token without any chance 0 / g, which is 1 for g = 0: plain cross entropy.
        ratio = torch.ones_like(p) if g == 0 else p / (g + (1 - g) * p)
        return ratio.clamp(min=weighting.tailr_min)
    if weighting.kind == "dft":
        return p
    if weighting.kind == "none":
        return torch.ones_like(p)
    if weighting.kind == "mixce":
        return weighting.mixce_factor + (1 - weighting.mixce_factor) * p
    if weighting.kind == "gold":
        return p.clamp(min=weighting.gold_min)
    assert weighting.kind == "error_norm" and norms is not None
    return norms.lt(weighting.error_norm_threshold).to(p.dtype)


def token_weighted_loss(
    logits: Tensor,
    targets: Tensor,
    mask: Tensor,
    weighting: TokenWeighting,
    also: Optional[Tensor] = None,
) -> Tensor:
    """Weighted NLL per token of each sentence, or the convex function of its likelihood.

    Args:
        logits: (B, T, V), of which position t predicts ``targets[:, t]``.
        targets: (B, T) int64; anything where the mask is False.
        mask: (B, T) bool, the tokens that count.
        also: (B, T) further weights, by which log-probabilities are multiplied.

    Returns:
        (B,) in nats (``convex``: between -1 and 0); a zero of the graph without tokens.

    Raises:
        ValueError: wrong shapes.

    >>> logits = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
    >>> target, mask = torch.tensor([[0, 1]]), torch.tensor([[True, True]])
    >>> weighting = TokenWeighting("tailr", tailr_gamma=0.0)  # cross entropy
    >>> round(token_weighted_loss(logits, target, mask, weighting).item(), 4)
    0.2201
    """
    if logits.dim() != 3 or logits.shape[:2] != targets.shape or mask.shape != targets.shape:
        raise ValueError(
            f"logits (B, T, V), targets (B, T) and mask (B, T) are needed, not "
            f"{tuple(logits.shape)}, {tuple(targets.shape)} and {tuple(mask.shape)}"
        )
    log_probs = own_log_probs(logits, targets, mask)
    return weighted_loss(log_probs, mask, weighting, logits, also)


def weighted_loss(
    log_probs: Tensor,
    mask: Tensor,
    weighting: TokenWeighting,
    logits: Optional[Tensor] = None,
    also: Optional[Tensor] = None,
) -> Tensor:
    """:func:`token_weighted_loss` of (B, T) log-probabilities of the targets, 0 where the mask is
    False. ``logits`` (or log-probabilities of all tokens): for ``error_norm`` alone."""
    count = mask.sum(1).clamp(min=1)
    plain = log_probs.detach()
    if also is not None:
        if also.shape != log_probs.shape:
            raise ValueError(
                f"also must have shape {tuple(log_probs.shape)}, not {tuple(also.shape)}"
            )
        log_probs = log_probs * also.detach().to(log_probs.dtype).masked_fill(~mask, 0.0)
    if weighting.kind == "convex":
        likelihood = (weighting.convex_power * log_probs.sum(1) / count).exp()
        # Without tokens there is no likelihood: 0, which is still attached to the graph.
        return -likelihood * mask.any(1)
    norms = None
    if weighting.kind == "error_norm":
        if logits is None:
            raise ValueError("kind='error_norm' needs the logits of all tokens")
        norms = error_norms(logits.detach(), plain)
    weights = token_weights(plain, weighting, norms)
    return -(weights * log_probs).masked_fill(~mask, 0.0).sum(1) / count
