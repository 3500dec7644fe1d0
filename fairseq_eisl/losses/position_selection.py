"""Position selection: where in the candidate a target n-gram is matched (Eq. 6)."""

from typing import Optional, Tuple

import torch
from torch import Tensor

SELECTIONS = ("gumbel", "softmax", "uniform", "hard")
SELECTION_ON = ("log_prob", "prob")


def select_positions(
    scores: Tensor,
    valid: Tensor,
    selection: str,
    temperature: float,
    selection_on: str,
    noise: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """Weights over candidate positions for every target n-gram.

    Args:
        scores: (B, T', S') log-probabilities of the n-grams in nats.
        valid: (B, T') bool, the candidate windows of real tokens.
        selection: ``gumbel`` and ``softmax`` (softmax over positions with and
            without the Gumbel ``noise``), ``uniform`` (all positions alike: the
            upper bound of Eq. 3), ``hard`` (the best position, straight through
            to the softmax in the backward).
        temperature: divides the selection's logits, after the noise.
        selection_on: ``log_prob`` takes log g as logits (the authors' code),
            ``prob`` takes g (the paper's wording).
        noise: (B, T', S') Gumbel noise, for ``gumbel``.

    Returns:
        weights (B, T', S') that sum to one over T' (zeros where no window is
        valid), and their entropy (B, S') in nats, without gradient.
    """
    valid = valid.unsqueeze(2)
    if selection == "uniform":
        weights = valid.to(scores.dtype) / valid.sum(1, keepdim=True).clamp(min=1)
        weights = weights.expand_as(scores)
    else:
        logits = scores.exp() if selection_on == "prob" else scores
        if noise is not None:
            logits = logits + noise.to(scores.dtype)
        logits = (logits / temperature).masked_fill(~valid, torch.finfo(scores.dtype).min)
        weights = logits.softmax(1).masked_fill(~valid, 0.0)
    with torch.no_grad():
        entropy = torch.special.entr(weights).sum(1)
    if selection == "hard":
        best = logits.argmax(1, keepdim=True)
        onehot = torch.zeros_like(weights).scatter_(1, best, 1.0).masked_fill(~valid, 0.0)
        weights = onehot + weights - weights.detach()
    return weights, entropy
