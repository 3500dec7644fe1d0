"""Lengths, masks and n-grams over (B, T, S) log-probabilities."""

from typing import Optional, Sequence, Tuple

import torch
from torch import Tensor


def window_mask(mask: Tensor, n: int) -> Tensor:
    """(B, L) token mask to the (B, L - n + 1) mask of windows that hold tokens only.

    >>> window_mask(torch.tensor([[True, True, False]]), 2).tolist()
    [[True, False]]
    """
    length = mask.size(1) - n + 1
    out = mask[:, :length]
    for j in range(1, n):
        out = out & mask[:, j : j + length]
    return out


def word_beginnings(starts: Tensor, apart: Tensor) -> Tensor:
    """(B, S) where a word begins: at ``starts``, and at and after tokens that are no part of any
    (``apart``: padding, symbols), and at the first token."""
    before = torch.cat([torch.ones_like(apart[:, :1]), apart[:, :-1]], 1)
    return starts | apart | before


def whole_words(grams: Tensor, starts: Tensor, n: int) -> Tensor:
    """The windows among ``grams`` that tear no word in pieces.

    Such a window begins and ends where words do, or lies within one long word. A sentence that
    has none of them keeps all its windows.

    Args:
        grams: (B, S - n + 1) bool, the windows of n tokens that count.
        starts: (B, S) bool, as of :func:`word_beginnings`.

    Two words of two tokens each, the second bigram lies across both:

    >>> starts = torch.tensor([[True, False, True, False]])
    >>> whole_words(torch.tensor([[True, True, True]]), starts, 2).tolist()
    [[True, False, True]]
    """
    length = grams.size(1)
    after = torch.cat([starts[:, 1:], torch.ones_like(starts[:, :1])], 1)
    within = torch.ones_like(grams)
    for j in range(1, n):
        within = within & ~starts[:, j : j + length]
    whole = grams & (starts[:, :length] & after[:, n - 1 :] | within)
    return torch.where(whole.any(1, keepdim=True), whole, grams)


def widen(sums: Tensor, log_probs: Tensor, n: int) -> Tensor:
    """Window sums of order ``n - 1`` to those of order ``n``.

    ``sums[b, t, s]`` is the sum of ``log_probs[b, t+j, s+j]`` over ``j < n - 1``; one
    shifted addition a step is the convolution of the paper's Eq. 7 with an
    identity kernel.

    Shapes: log_probs (B, T, S); sums (B, T-n+2, S-n+2); result (B, T-n+1, S-n+1).
    """
    return sums[:, :-1, :-1] + log_probs[:, n - 1 :, n - 1 :]


def multiplicity(ids: Tensor, grams: Tensor, n: int) -> Tensor:
    """How often the n-gram at each place of ``ids`` (B, S) occurs among ``grams``.

    ``grams`` (B, S - n + 1) bool says which n-grams count; 0 where it is False.

    >>> grams = torch.tensor([[True, True, True, True, True, False]])
    >>> multiplicity(torch.tensor([[5, 6, 5, 7, 5, 6, 6]]), grams, 2)
    tensor([[2, 1, 1, 1, 2, 0]])
    """
    same = ids.unsqueeze(2).eq(ids.unsqueeze(1))
    length = max(0, ids.size(1) - n + 1)
    equal = grams.unsqueeze(2) & grams.unsqueeze(1)
    for j in range(n):
        equal = equal & same[:, j : j + length, j : j + length]
    return equal.sum(2)


def longest_run(mask: Tensor) -> Tensor:
    """(B, L) mask to the (B,) length of its longest run of True: the longest window that fits.

    For a mask of real tokens, which has one run, this is the number of tokens.

    >>> longest_run(torch.tensor([[False, True, True, False, True]])).tolist()
    [2]
    """
    if mask.size(1) == 0:
        return mask.new_zeros(mask.size(0), dtype=torch.long)
    place = torch.arange(1, mask.size(1) + 1, device=mask.device).expand(mask.shape)
    last_gap = place.masked_fill(mask, 0).cummax(1).values
    return (place - last_gap).max(1).values


def resolve_orders(
    ngrams: Sequence[int],
    weights: Sequence[float],
    *,
    output_length: Tensor,
    target_length: Tensor,
) -> Tuple[Tensor, Tensor]:
    """Which n-gram orders each sentence uses, and with what weight.

    Orders ``n <= 0`` stand for ``target_length + n``. An order that does not fit
    into a sentence's candidate or target is dropped there, and the weights of
    the others are scaled so that their sum stays. If none is left, the last
    column takes it all: the longest order that fits. A sentence without tokens
    has no weights.

    Returns:
        orders (B, K + 1) int64 and weights (B, K + 1) float64, for K given orders
        and the fallback; the weights of a sentence sum to ``sum(weights)`` or 0.

    >>> lengths = {"output_length": torch.tensor([2, 1]), "target_length": torch.tensor([9, 9])}
    >>> orders, share = resolve_orders((2, 3), (0.5, 0.5), **lengths)
    >>> orders.tolist(), share.tolist()
    ([[2, 3, 2], [2, 3, 1]], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    """
    room = torch.minimum(output_length, target_length).unsqueeze(1)
    # Filled on the device: a tensor made of a list would be copied there, and waited for.
    columns = [torch.full_like(target_length, n) if n > 0 else target_length + n for n in ngrams]
    orders = torch.stack(columns, 1)
    shares = [torch.full_like(target_length, w, dtype=torch.float64) for w in weights]
    share = torch.stack(shares, 1)
    share = share.masked_fill((orders < 1) | (orders > room), 0.0)
    total, kept = float(sum(weights)), share.sum(1, keepdim=True)
    share = torch.where(kept > 0, share * (total / kept), 0.0)
    fallback = ((kept == 0) & (room > 0)).to(share.dtype) * total
    return torch.cat([orders, room], 1), torch.cat([share, fallback], 1)


def check_mask(name: str, mask, shape: Sequence[int], device) -> Tensor:
    """A boolean mask of the given shape; ``None`` means every position is real."""
    if mask is None:
        return torch.ones(shape, dtype=torch.bool, device=device)
    if mask.dtype != torch.bool or tuple(mask.shape) != shape:
        raise ValueError(
            f"{name} must be a boolean tensor of shape {shape} (True = a real token), "
            f"not {mask.dtype} of shape {tuple(mask.shape)}"
        )
    return mask


def checked_ids(
    name: str, ids: Tensor, mask: Optional[Tensor], batch: int, vocabulary: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    """Token ids (B, L) with 0 where the mask is False, and their mask.

    Padding may be any id, -100 included; a real token must be in [0, vocabulary)
    (looked at on the CPU only: on CUDA, looking would make the host wait).
    """
    letter = "S" if name == "targets" else "T"
    if ids.dim() != 2 or ids.size(0) != batch or ids.dtype != torch.int64:
        raise ValueError(
            f"{name} must be int64 ids of shape (B, {letter}) with B = {batch}, "
            f"not {ids.dtype} of shape {tuple(ids.shape)}"
        )
    mask_name = "target_mask" if name == "targets" else "output_mask"
    mask = check_mask(mask_name, mask, tuple(ids.shape), ids.device)
    ids = ids.masked_fill(~mask, 0)
    if vocabulary is not None and not ids.is_cuda and ids.numel():
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= vocabulary:
            raise ValueError(
                f"{name} must be ids in [0, {vocabulary}) where {mask_name} is True, "
                f"but hold {low if low < 0 else high}"
            )
    return ids, mask
