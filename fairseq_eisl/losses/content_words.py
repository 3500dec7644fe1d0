"""Content words of a source that a rewritten sentence must keep, with a gradient.

The POS distance (Tian, Hu and Yu, 2018, arXiv 1810.06526) of two texts is one between vectors of
their nouns. As a part of a loss it has to know where in the output a noun will stand, which a soft
output does not say: here each noun of the source is held against the position nearest to it.
"""

import torch
from torch import Tensor

from .ngrams import check_mask

_NO_ROOT_OF_ZERO = 1e-12


def content_loss(soft: Tensor, mask: Tensor, content: Tensor, content_mask: Tensor) -> Tensor:
    """Mean over the content words of the distance to the nearest vector of the output.

    Args:
        soft: (B, T, E) vectors of the output's positions: sums of word vectors with the weights of
            a soft word.
        mask: (B, T) bool, the real positions.
        content: (B, S, E) vectors of the source's words; constants, no gradient gets into them.
        content_mask: (B, S) bool, those that are content words.

    Returns:
        (B,) Euclidean distances in the unit of the vectors, float32 at least; a zero of the graph
        where there is no content word, or no position.

    Raises:
        ValueError: shapes that do not fit.

    >>> soft = torch.tensor([[[0.0, 1.0], [3.0, 3.0]]])
    >>> nouns = torch.tensor([[[0.0, 0.0], [3.0, 4.0]]])
    >>> all_of_them = torch.tensor([[True, True]])
    >>> content_loss(soft, all_of_them, nouns, all_of_them).item()
    1.0
    """
    if soft.dim() != 3 or content.dim() != 3 or soft.shape[::2] != content.shape[::2]:
        raise ValueError(
            f"soft (B, T, E) beside content (B, S, E) are needed, not {tuple(soft.shape)} beside "
            f"{tuple(content.shape)}"
        )
    mask = check_mask("mask", mask, tuple(soft.shape[:2]), soft.device)
    content_mask = check_mask("content_mask", content_mask, tuple(content.shape[:2]), soft.device)
    wide = torch.promote_types(soft.dtype, torch.float32)
    # What stands outside the masks may be anything, and must not reach a gradient.
    soft = soft.to(wide).masked_fill(~mask.unsqueeze(2), 0.0)
    content = content.detach().to(wide).masked_fill(~content_mask.unsqueeze(2), 0.0)
    squares = (content.unsqueeze(2) - soft.unsqueeze(1)).square().sum(3)  # (B, S, T)
    squares = squares.masked_fill(~mask.unsqueeze(1), torch.finfo(wide).max)
    nearest = squares.min(2).values if soft.size(1) else squares.sum(2)
    counted = content_mask & mask.any(1, keepdim=True)
    nearest = nearest.masked_fill(~counted, 0.0)
    # The root of 0 has no gradient.
    distances = nearest.clamp(min=_NO_ROOT_OF_ZERO).sqrt().masked_fill(~counted, 0.0)
    return distances.sum(1) / counted.sum(1).clamp(min=1)
