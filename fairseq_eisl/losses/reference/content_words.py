"""The content loss of style transfer, one word and one position at a time."""

import torch
from torch import Tensor


def content_loss(soft: Tensor, mask: Tensor, content: Tensor, content_mask: Tensor) -> Tensor:
    """(B,) float64 means over content words.

    Shapes: soft (B, T, E), mask (B, T), content (B, S, E), content_mask (B, S).
    """
    losses = []
    for places, real, words, chosen in zip(soft.double(), mask, content.double(), content_mask):
        distances = []
        for word, counts in zip(words.detach(), chosen):
            to = [(place - word).square().sum().sqrt() for place, ok in zip(places, real) if ok]
            if counts and to:
                distances.append(torch.stack(to).min())
        zero = places[:0].sum()
        losses.append(zero + sum(distances) / len(distances) if distances else zero)
    return torch.stack(losses)
