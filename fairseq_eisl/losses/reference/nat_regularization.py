"""The similarity term of NAT-REG, one pair of neighbours at a time."""

import torch
from torch import Tensor


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Of two vectors."""
    return (a * b).sum() / ((a * a).sum().sqrt() * (b * b).sum().sqrt())


def similarity_loss(states: Tensor, embeddings: Tensor, mask: Tensor) -> Tensor:
    """(B,) float64 means over neighbours.

    Shapes: states (B, T, C), embeddings (B, T, E), mask (B, T).
    """
    losses = []
    for h, e, real in zip(states.double(), embeddings.double().detach(), mask):
        terms = [
            (1 + cosine(h[t], h[t + 1])) * (1 - cosine(e[t], e[t + 1]))
            for t in range(len(h) - 1)
            if real[t] and real[t + 1]
        ]
        zero = h[:0].sum()
        losses.append(zero + sum(terms) / len(terms) if terms else zero)
    return torch.stack(losses)
