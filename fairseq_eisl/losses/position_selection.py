"""Position selection: where in the candidate a target n-gram is matched (Eq. 6)."""

from typing import Optional, Tuple

import torch
from torch import Tensor

SELECTIONS = ("gumbel", "softmax", "uniform", "hard", "sinkhorn")
COUNT = "count"
"""In place of one: no position is chosen, see :func:`clipped_log_counts`."""
CHOICES = (*SELECTIONS, COUNT)
SELECTION_ON = ("log_prob", "prob")
SINKHORN_ROUNDS = 5


def select_positions(
    scores: Tensor,
    valid: Tensor,
    selection: str,
    *,
    temperature: float = 1.0,
    selection_on: str = "log_prob",
    noise: Optional[Tensor] = None,
    multiplicity: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:
    """Weights over candidate positions for every target n-gram.

    Args:
        scores: (B, T', S') log-probabilities of the n-grams in nats.
        valid: (B, T') bool, the candidate windows of real tokens.
        selection: ``gumbel`` and ``softmax`` (softmax over positions with and
            without the Gumbel ``noise``), ``uniform`` (all positions alike: the
            upper bound of Eq. 3), ``hard`` (the best position, straight through
            to the softmax in the backward), ``sinkhorn`` (a softmax whose positions
            serve one n-gram each, see :func:`_sinkhorn`).
        temperature: divides the selection's logits, after the noise.
        selection_on: ``log_prob`` takes log g as logits (the authors' code),
            ``prob`` takes g (the paper's wording).
        noise: (B, T', S') Gumbel noise, for ``gumbel``.
        multiplicity: (B, S') how often each n-gram stands in the target, 0 for what is none, for
            ``sinkhorn``; once each, if None.

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
        if selection == "sinkhorn":
            weights = _sinkhorn(logits, multiplicity).masked_fill(~valid, 0.0)
        else:
            weights = logits.softmax(1).masked_fill(~valid, 0.0)
    with torch.no_grad():
        entropy = torch.special.entr(weights).sum(1)
    if selection == "hard":
        best = logits.argmax(1, keepdim=True)
        onehot = torch.zeros_like(weights).scatter_(1, best, 1.0).masked_fill(~valid, 0.0)
        weights = onehot + weights - weights.detach()
    return weights, entropy


def clipped_log_counts(
    log_probs: Tensor, valid: Tensor, multiplicity: Tensor
) -> Tuple[Tensor, Tensor]:
    """Logarithm of how often each n-gram is expected, which no position is chosen for (``count``).

    With q the softmax of the log-probabilities over positions, ``-sum q log p`` is the entropy of
    q minus this logarithm: other selections pay for a match that is spread out, this one does not.

    Args:
        log_probs: (B, T', S') log-probabilities of the n-grams in nats, not divided by n.
        valid: (B, T') bool, the candidate windows of real tokens.
        multiplicity: (B, S') how often each n-gram stands in the target; more of it in the output
            is worth nothing.

    Returns:
        (B, S') logarithms, at most that of the multiplicity, and the entropy of q (B, S') in nats,
        without gradient.
    """
    found = log_probs.masked_fill(~valid.unsqueeze(2), torch.finfo(log_probs.dtype).min / 2)
    with torch.no_grad():
        entropy = torch.special.entr(found.softmax(1)).sum(1)
    most = multiplicity.to(found.dtype).clamp(min=1).log()
    return torch.minimum(found.logsumexp(1), most), entropy


def _sinkhorn(logits: Tensor, multiplicity: Optional[Tensor]) -> Tensor:
    """Softmax over positions (dimension 1), then normalised in turns (Sinkhorn and Knopp, 1967):
    at each position the weights of the n-grams are scaled down to a sum of 1 where they are
    above it, then each n-gram's weights to a sum of 1. ``m`` copies of an n-gram count as one,
    as their mean.

    Without it one position can be the match of every n-gram, and a model whose order is lost
    learns to say the same words everywhere. Copies may share a position: an output need not
    repeat what the target repeats.
    """
    weights = logits.log_softmax(1)
    low = torch.finfo(weights.dtype).min
    for _ in range(SINKHORN_ROUNDS):
        counted = weights
        if multiplicity is not None:
            share = multiplicity.to(weights.dtype).clamp(min=1).log().unsqueeze(1)
            counted = (weights - share).masked_fill(multiplicity.eq(0).unsqueeze(1), low)
        weights = weights - counted.logsumexp(2, keepdim=True).clamp(min=0)
        weights = weights.log_softmax(1)
    return weights.exp()
