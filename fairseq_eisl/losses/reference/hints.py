"""Hints of an autoregressive teacher, one pair of places, or one attention weight, at a time."""

import math
from typing import Sequence

import torch
from torch import Tensor

from .nat_regularization import cosine


def hidden_hint_loss(
    student: Sequence[Tensor],
    teacher: Sequence[Tensor],
    mask: Tensor,
    student_threshold: float = 0.1,
    teacher_threshold: float = 0.9,
) -> Tensor:
    """(B,) float64. Shapes: (B, T, C) states of each layer, mask (B, T)."""
    losses = []
    for b in range(len(mask)):
        places = [t for t in range(mask.size(1)) if mask[b, t]]
        pairs = [(s, t) for t in places for s in places if s < t]
        total = student[0][b, :0].double().sum()
        for ours, theirs in zip(student, teacher):
            for s, t in pairs:
                alike = cosine(ours[b, s].double(), ours[b, t].double())
                known = float(cosine(theirs[b, s].double(), theirs[b, t].double()))
                if float(alike) >= student_threshold and known <= teacher_threshold:
                    total = total - (1 - alike).clamp(min=1e-6).log() / len(pairs) / len(student)
        losses.append(total)
    return torch.stack(losses)


def align_hint_loss(
    student: Sequence[Tensor], teacher: Sequence[Tensor], mask: Tensor, source_mask: Tensor
) -> Tensor:
    """(B,) float64. Shapes: (B, H, T, S) weights of each layer, mask (B, T), source_mask (B, S)."""
    losses = []
    for b in range(len(mask)):
        places = [t for t in range(mask.size(1)) if mask[b, t]]
        sources = [s for s in range(source_mask.size(1)) if source_mask[b, s]]
        total = student[0][b, :0].double().sum()
        for ours, theirs in zip(student, teacher):
            heads = ours.size(1)
            for h in range(heads):
                for t in places:
                    for s in sources:
                        p = float(theirs[b, h, t, s])
                        q = ours[b, h, t, s].double().clamp(min=1e-9)
                        term = p * (math.log(max(p, 1e-9)) - q.log())
                        total = total + term / (len(places) * heads * len(student))
        losses.append(total)
    return torch.stack(losses)
