"""Random numbers that belong to a sentence, not to its place in a batch.

Every number is a hash of (the sentence's seed, its coordinates). Padding a
batch, splitting it over updates or workers, or moving it to another device
therefore changes no number, which a stream drawn over a whole tensor cannot give.
"""

from typing import Union

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
# Odd constants that spread neighbouring coordinates over 32 bits (golden ratio and the like).
_STEPS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)

Seeds = Union[torch.Generator, Tensor, None]


def _mix(x: Tensor) -> Tensor:
    """A 32-bit finaliser (two rounds of xor-shift and multiplication), held in int64."""
    x = x ^ (x >> 16)  # a new tensor, which the rest may overwrite
    x.bitwise_and_(_MASK).mul_(0x7FEB352D).bitwise_and_(_MASK)
    x.bitwise_xor_(x >> 15).mul_(0x846CA68B).bitwise_and_(_MASK)
    return x.bitwise_xor_(x >> 16)


def fold(seeds: Tensor, *values: int) -> Tensor:
    """New seeds from (B,) int64 ``seeds`` and some integers."""
    out = _mix(_mix(seeds & _MASK) + ((seeds >> 32) & _MASK))
    for value in values:
        out = _mix(out + (value & _MASK) * _STEPS[0])
    return out


def sentence_seeds(generator: Seeds, batch: int, device) -> Tensor:
    """(B,) int64 seeds, one a sentence.

    ``generator``: a ``torch.Generator`` that they are drawn from, ``None`` for
    torch's global one, or the seeds themselves as an int64 tensor of shape (B,).
    """
    if isinstance(generator, Tensor):
        if generator.dtype != torch.int64 or tuple(generator.shape) != (batch,):
            raise ValueError(
                f"generator: seeds must be int64 of shape ({batch},), one a sentence, "
                f"not {generator.dtype} of shape {tuple(generator.shape)}"
            )
        return generator.to(device)
    where = device if generator is None else generator.device
    seeds = torch.randint(2**62, (batch,), generator=generator, device=where)
    return seeds.to(device)


def uniform(seeds: Tensor, *sizes: int) -> Tensor:
    """Uniform numbers in the open interval (0, 1), float32 of shape (B, *sizes).

    The number at given coordinates depends on the seed and the coordinates alone.

    >>> a, b = uniform(torch.tensor([5]), 2, 3), uniform(torch.tensor([5]), 4, 9)
    >>> torch.equal(a, b[:, :2, :3])
    True
    """
    state = fold(seeds)
    for size, step in zip(sizes, _STEPS):
        place = torch.arange(1, size + 1, device=seeds.device) * step
        state = _mix(state.unsqueeze(-1) + place)
    # 23 bits and a half: the largest value is 1 - 2**-24, which float32 still tells from 1.
    return (state >> 9).to(torch.float32).add_(0.5).mul_(2.0**-23)


def gumbel(seeds: Tensor, *sizes: int) -> Tensor:
    """Standard Gumbel numbers, always finite; shape and seeding as :func:`uniform`."""
    return uniform(seeds, *sizes).log_().neg_().log_().neg_()
