"""Probabilities over slots that neither underflow where they matter nor need a logarithm a step.

The probabilities of n-grams are sums of products over many slots. In the log domain each sum would
be a ``logsumexp`` of a tensor as large as slots x slots x tokens; as plain numbers they are scans
and matrix products. So each target token's probabilities are divided by their largest one over the
slots, which the logarithm gets back at the end.
"""

from typing import List, NamedTuple, Sequence, Tuple

import torch
from torch import Tensor

from ..ngrams import check_mask

LONG = 4
"""Orders above it are computed in float64: an n-gram may be as unlikely as ``n * floor`` says, and
float32 ends at -87 nats."""


class Scaled(NamedTuple):
    """(B, L, S) probabilities of target tokens at slots, over their largest ones."""

    probs: Tensor
    """(B, L, S) in [0, 1]; 0 at slots that are not real."""
    largest: Tensor
    """(B, 1, S) logarithm of what they were divided by, without gradient."""

    def log_of(self, sums: Tensor, n: int) -> Tensor:
        """Log-probabilities in nats of n-grams, from (B, L', S - n + 1) sums of products of ``n``
        scaled probabilities. Sums too small for the dtype are raised to the smallest that is not,
        without gradient."""
        return floored_log(sums) + window_sums(self.largest, n)


def scaled(log_probs: Tensor, mask: Tensor) -> Scaled:
    """(B, L, S) log-probabilities in nats of target tokens, (B, L) bool the real slots."""
    real = mask.unsqueeze(2)
    largest = log_probs.new_zeros(len(log_probs), 1, log_probs.size(2))
    if log_probs.size(1):
        low = torch.finfo(log_probs.dtype).min
        found = log_probs.detach().masked_fill(~real, low).amax(1, keepdim=True)
        largest = torch.where(found > low, found, 0.0)  # no real slot, or none that may say it
    return Scaled((log_probs - largest).exp().masked_fill(~real, 0.0), largest)


def floored_log(probs: Tensor) -> Tensor:
    """Logarithm of what is not negative; far below what matters it is a constant."""
    return probs.clamp(min=1e-35 if probs.dtype == torch.float32 else 1e-300).log()


def window_sums(values: Tensor, n: int) -> Tensor:
    """(B, 1, S) to the (B, 1, S - n + 1) sums of ``n`` neighbours."""
    length = values.size(2) - n + 1
    return torch.stack([values[:, :, j : j + length] for j in range(n)]).sum(0)


def log1mexp(log_probs: Tensor) -> Tensor:
    """``log(1 - exp(x))`` of log-probabilities ``x``, exact near 0 and near 1."""
    return floored_log(-torch.expm1(log_probs))


def working(log_probs: Tensor, orders: Sequence[int]) -> Tensor:
    """In the dtype in which these orders are computed."""
    dtype = torch.promote_types(log_probs.dtype, torch.float32)
    return log_probs.to(torch.float64 if max(orders, default=0) > LONG else dtype)


def later(values: Tensor, steps: int = 1) -> Tensor:
    """(B, L, ...) values ``steps`` slots further on; 0 behind the last slot."""
    steps = min(steps, values.size(1))
    return torch.cat([values[:, steps:], torch.zeros_like(values[:, :steps])], 1)


def doublings(factors: Tensor) -> List[Tensor]:
    """Products of 1, 2, 4, ... neighbouring factors (B, L, ...), for :func:`suffix_sums`."""
    found, steps = [factors], 1
    while 2 * steps < factors.size(1):
        found.append(found[-1] * later(found[-1], steps))
        steps *= 2
    return found


def suffix_sums(values: Tensor, factors: Sequence[Tensor]) -> Tensor:
    """``x[t] = values[t] + f[t] x[t + 1]`` from the right, in as many steps as L has binary digits.

    Args:
        values: (B, L, S).
        factors: the :func:`doublings` of f (B, L, S) or (B, L, 1). Nothing is subtracted, so that
            what is small stays exact.
    """
    for i, factor in enumerate(factors):
        values = values + factor * later(values, 2**i)
    return values


def checked(log_probs: Tensor, targets: Tensor, output_mask: Tensor, target_mask: Tensor) -> Tuple:
    """Batch, slots and tokens of (B, L, S) log-probabilities whose companions fit.

    Raises:
        ValueError: wrong shapes.
    """
    if log_probs.dim() != 3 or not log_probs.is_floating_point():
        raise ValueError(
            f"log_probs must be a floating-point tensor of shape (B, L, S), not "
            f"{log_probs.dtype} of shape {tuple(log_probs.shape)}"
        )
    batch, slots, length = log_probs.shape
    if tuple(targets.shape) != (batch, length):
        raise ValueError(
            f"targets must have shape (B, S) for log_probs of shape (B, L, S) = "
            f"{tuple(log_probs.shape)}, not {tuple(targets.shape)}"
        )
    check_mask("output_mask", output_mask, (batch, slots), log_probs.device)
    check_mask("target_mask", target_mask, (batch, length), log_probs.device)
    return batch, slots, length
