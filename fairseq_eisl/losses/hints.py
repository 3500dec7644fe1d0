"""Hints of an autoregressive teacher (Li et al., EMNLP 2019, arXiv 1909.06708).

A student that decodes all positions at once learns from the states and from the encoder-decoder
attention of a teacher that reads the same target: positions that the teacher tells apart are not to
be alike, and each position is to look where the teacher's looks.
"""

from typing import Sequence

import torch
from torch import Tensor

from .nat_regularization import unit_vectors
from .ngrams import check_mask

LEAST_DISTANCE = 1e-6
"""Of ``1 - cosine`` in the logarithm."""
LEAST_ATTENTION = 1e-9
"""Of an attention weight in the logarithm."""


def hidden_hint_loss(
    student: Sequence[Tensor],
    teacher: Sequence[Tensor],
    mask: Tensor,
    *,
    student_threshold: float = 0.1,
    teacher_threshold: float = 0.9,
) -> Tensor:
    """-log(1 - cosine) of the student's pairs of states that are alike and the teacher's are not.

    Args:
        student: (B, T, C) states of each layer.
        teacher: (B, T, D) states of the same layers at the same places; constants.
        mask: (B, T) bool, the real places.
        student_threshold: cosines of the student from this on count.
        teacher_threshold: where those of the teacher are this or less.

    Returns:
        (B,) without unit, in float32 at least: the mean over the T (T - 1) / 2 pairs of real
        places (those that do not count are zeros) and over the layers; a zero of the graph where
        there is no pair.

    Raises:
        ValueError: shapes or numbers of layers that do not fit.

    Cosines of 0.6 and 0.2:

    >>> student = torch.tensor([[[1.0, 0.0], [0.6, 0.8]]])
    >>> teacher = torch.tensor([[[1.0, 0.0], [0.2, 0.96**0.5]]])
    >>> loss = hidden_hint_loss([student], [teacher], torch.tensor([[True, True]]))
    >>> round(loss.item(), 4)  # -ln 0.4
    0.9163
    """
    _check_layers(student, teacher, "(B, T, C)", same=2)
    mask = check_mask("mask", mask, tuple(student[0].shape[:2]), student[0].device)
    pairs = (mask.unsqueeze(1) & mask.unsqueeze(2)).tril(-1)
    total = student[0].new_zeros((), dtype=torch.float32)
    with torch.autocast(mask.device.type, enabled=False):
        for ours, theirs in zip(student, teacher):
            alike, known = _cosines(ours, mask), _cosines(theirs.detach(), mask)
            # In these words NaN counts, and that of the teacher is not lost, either.
            counts = ~(alike.detach() < student_threshold) & ~(known > teacher_threshold)
            losses = 0 * known - (1 - alike).clamp(min=LEAST_DISTANCE).log()
            total = total + losses.masked_fill(~(counts & pairs), 0.0).sum((1, 2))
        return total / (len(student) * pairs.sum((1, 2)).clamp(min=1))


def align_hint_loss(
    student: Sequence[Tensor], teacher: Sequence[Tensor], mask: Tensor, source_mask: Tensor
) -> Tensor:
    """Kullback-Leibler divergence of the student's attention from the teacher's.

    Args:
        student: (B, H, T, S) attention weights of each layer.
        teacher: the same of the teacher, at the same places; constants.
        mask: (B, T) bool, the real places.
        source_mask: (B, S) bool, the real places of the source.

    Returns:
        (B,) in nats, in float32 at least: KL(teacher || student), the mean over the real places,
        heads and layers; a zero of the graph where there is no place.

    Raises:
        ValueError: shapes or numbers of layers that do not fit.

    >>> student, teacher = torch.tensor([[[[0.75, 0.25]]]]), torch.tensor([[[[0.5, 0.5]]]])
    >>> loss = align_hint_loss(
    ...     [student], [teacher], torch.tensor([[True]]), torch.tensor([[True, True]])
    ... )
    >>> round(loss.item(), 6)  # 0.5 ln (0.5 / 0.75) + 0.5 ln (0.5 / 0.25)
    0.143841
    """
    _check_layers(student, teacher, "(B, H, T, S)", same=4)
    batch, heads, length, sources = student[0].shape
    mask = check_mask("mask", mask, (batch, length), student[0].device)
    source_mask = check_mask("source_mask", source_mask, (batch, sources), student[0].device)
    # Equal where they do not count: no difference there, and no gradient.
    idle = ~(mask[:, None, :, None] & source_mask[:, None, None, :])
    total = student[0].new_zeros((), dtype=torch.float32)
    with torch.autocast(mask.device.type, enabled=False):
        for ours, theirs in zip(student, teacher):
            ours, theirs = (
                weights.to(torch.promote_types(weights.dtype, torch.float32)).masked_fill(idle, 1.0)
                for weights in (ours, theirs.detach())
            )
            log_ours, log_theirs = (w.clamp(min=LEAST_ATTENTION).log() for w in (ours, theirs))
            total = total + (theirs * (log_theirs - log_ours)).sum((1, 2, 3))
        return total / (len(student) * heads * mask.sum(1).clamp(min=1))


def _cosines(states: Tensor, mask: Tensor) -> Tensor:
    """(B, T, C) to the (B, T, T) cosines of every two."""
    unit = unit_vectors(states, mask)
    return unit @ unit.transpose(1, 2)


def _check_layers(student: Sequence[Tensor], teacher: Sequence[Tensor], wanted: str, same: int):
    """As many layers of either, all of one shape but for what lies behind the first ``same``
    sizes."""
    if not student or len(student) != len(teacher):
        raise ValueError(
            f"as many layers of the teacher as of the student are needed, at least one, not "
            f"{len(teacher)} and {len(student)}"
        )
    dims = wanted.count(",") + 1
    shape = student[0].shape[:same]
    for layer in (*student, *teacher):
        if layer.dim() != dims or layer.shape[:same] != shape:
            raise ValueError(
                f"layers {wanted} of equal shapes are needed, not {tuple(student[0].shape)} and "
                f"{tuple(layer.shape)}"
            )
