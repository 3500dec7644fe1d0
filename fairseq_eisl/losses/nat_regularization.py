"""The similarity term of NAT-REG (Wang et al., AAAI 2019, arXiv 1902.10245).

Non-autoregressive decoders repeat words where the states of two neighbours are alike. The term
punishes alike neighbours, the more the less alike the words that they are to say.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from .ngrams import check_mask

_LEAST_NORM = 1e-8


def similarity_loss(states: Tensor, embeddings: Tensor, mask: Tensor) -> Tensor:
    """(1 + cosine of neighbouring states) x (1 - cosine of their target words), its mean.

    Args:
        states: (B, T, C) top states of the decoder.
        embeddings: (B, T, E) embeddings of the target words of the same places; constants, no
            gradient gets into them.
        mask: (B, T) bool, the real places.

    Returns:
        (B,) without unit, between 0 and 4, in float32 at least: the mean over the pairs of
        neighbours that are both real; a zero of the graph where there is none. (The paper has
        the sum.)

    Raises:
        ValueError: shapes that do not fit.

    >>> states = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    >>> words = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    >>> loss = similarity_loss(states, words, torch.tensor([[True, True]]))
    >>> round(loss.item(), 6)  # (1 + 0.707107) (1 - 0)
    1.707107
    """
    if states.dim() != 3 or embeddings.dim() != 3 or states.shape[:2] != embeddings.shape[:2]:
        raise ValueError(
            f"states (B, T, C) beside embeddings (B, T, E) are needed, not "
            f"{tuple(states.shape)} beside {tuple(embeddings.shape)}"
        )
    mask = check_mask("mask", mask, tuple(states.shape[:2]), states.device)
    with torch.autocast(states.device.type, enabled=False):
        alike, same = (_neighbour_cosines(x, mask) for x in (states, embeddings.detach()))
        terms = (1 + alike) * (1 - same)
        both = mask[:, 1:] & mask[:, :-1]
        total = terms.masked_fill(~both, 0.0).sum(1)
        return total / both.sum(1).clamp(min=1)


def unit_vectors(vectors: Tensor, mask: Tensor) -> Tensor:
    """(B, T, C) vectors at length 1, in float32 at least; zeros where the (B, T) mask is False."""
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return F.normalize(wide.masked_fill(~mask.unsqueeze(2), 0.0), dim=2, eps=_LEAST_NORM)


def _neighbour_cosines(vectors: Tensor, mask: Tensor) -> Tensor:
    """(B, T, C) vectors to the (B, T - 1) cosines of each and the next."""
    unit = unit_vectors(vectors, mask)
    return (unit[:, 1:] * unit[:, :-1]).sum(2)
