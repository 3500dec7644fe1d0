"""Words that a model chooses with a gradient: the Gumbel-softmax (Jang et al., Maddison et al.,
both ICLR 2017, arXiv 1611.01144 and 1611.00712)."""

from typing import Optional

import torch
from torch import Tensor

FEEDBACKS = ("straight-through", "soft", "argmax")
"""What a decoder can read after a soft word: the likeliest word with the soft word's gradient, the
soft word itself, or the likeliest word without gradient."""


def soft_tokens(logits: Tensor, temperature: float, noise: Optional[Tensor] = None) -> Tensor:
    """softmax((logits + noise) / temperature): a word that is nearly chosen.

    Args:
        logits: (..., V) unnormalised scores, floating point.
        temperature: above 0; near 0 all weight is on one word.
        noise: (..., V) standard Gumbel numbers, which make the word a sample; none, if None.

    Returns:
        (..., V) weights that sum to 1, with a gradient in the logits; float32 at least.

    Raises:
        ValueError: a temperature that is not above 0.

    >>> logits = torch.tensor([0.0, 1.0])
    >>> [round(x, 4) for x in soft_tokens(logits, 0.5).tolist()]
    [0.1192, 0.8808]
    """
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, not {temperature}")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if noise is not None:
        logits = logits + noise.to(logits.dtype)
    return (logits / temperature).softmax(-1)


def expected_nll(weights: Tensor, log_probs: Tensor, mask: Tensor) -> Tensor:
    """Mean over the real positions of the expected negative log-probability of a soft word.

    Args:
        weights: (B, T, V), at each position summing to 1 (see :func:`soft_tokens`).
        log_probs: (B, T, V) log-probabilities in nats of the words there.
        mask: (B, T) bool, the real positions.

    Returns:
        (B,) nats per position; a zero of the graph for a sentence without positions.

    >>> weights, half = torch.tensor([[[0.25, 0.75]]]), torch.full((1, 1, 2), 0.5)
    >>> round(expected_nll(weights, half.log(), torch.tensor([[True]])).item(), 4)
    0.6931
    """
    each = -(weights * log_probs).sum(2).masked_fill(~mask, 0.0)
    return each.sum(1) / mask.sum(1).clamp(min=1)
