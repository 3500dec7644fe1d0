"""Order-agnostic cross entropy (OAXE; Du et al., ICML 2021, arXiv 2106.05093).

The cross entropy of the best order of the target: each token is matched to one slot so that the sum
of their negative log-probabilities is the least (Hungarian algorithm, on a CPU, by scipy).
"""

import math
from typing import List

import torch
from torch import Tensor

from .ngrams import check_mask

# Of an impossible token, so that the sums that are compared stay finite.
_IMPOSSIBLE = 1e4


def best_matching(nll: Tensor, mask: Tensor) -> Tensor:
    """The slot of each target token.

    Args:
        nll: (B, T, T) negative log-probability in nats of token s at slot t.
        mask: (B, T) bool, the slots that are matched to the tokens of the same places.

    Returns:
        (B, T) int64; a token that is not matched has its own slot.

    >>> costs = torch.tensor([[[2.0, 1.0], [1.0, 3.0]]])
    >>> best_matching(costs, torch.tensor([[True, True]])).tolist()
    [[1, 0]]
    """
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        raise ValueError("the matching of OAXE needs scipy: pip install scipy") from None
    places = torch.arange(mask.size(1)).repeat(len(mask), 1)
    # One copy to the host for all sentences. NaN has no order: such a row stays as it is, and NaN.
    nll, real = nll.detach().float().cpu(), mask.cpu()
    found: List[Tensor] = list(places)
    for b in range(len(mask)):
        slots = real[b].nonzero().squeeze(1)
        costs = nll[b][slots][:, slots].clamp(max=_IMPOSSIBLE)
        if len(slots) and not costs.isnan().any():
            rows, columns = linear_sum_assignment(costs.numpy())
            found[b][slots[torch.as_tensor(columns)]] = slots[torch.as_tensor(rows)]
    return torch.stack(found).to(mask.device) if found else places.to(mask.device)


def oaxe_loss(log_probs: Tensor, mask: Tensor, *, skip: float = 0.15) -> Tensor:
    """OAXE of each sentence.

    Args:
        log_probs: (B, T, T) log-probability in nats of token s at slot t, float32 or float64.
        mask: (B, T) bool, the slots and tokens that are matched.
        skip: loss truncation: matched tokens whose probability is below it count nothing, in
            [0, 1). The authors' code compares nats with a margin in bits, which is a
            probability of 0.0648 where they say 0.15; this one does what is said.

    Returns:
        (B,) in nats per token that counts; a zero of the graph where there is none.

    Raises:
        ValueError: wrong shapes, or ``skip`` out of range.

    The best order of two words whose slots are swapped:

    >>> log_probs = torch.tensor([[[0.1, 0.8], [0.7, 0.2]]]).log()
    >>> loss = oaxe_loss(log_probs, torch.tensor([[True, True]]))
    >>> round(loss.item(), 4)  # -(ln 0.7 + ln 0.8) / 2
    0.2899
    """
    total, count = oaxe_sums(log_probs, mask, skip=skip)
    return total / count.clamp(min=1)


def oaxe_sums(log_probs: Tensor, mask: Tensor, *, skip: float = 0.15):
    """(B,) the sum of :func:`oaxe_loss` over the tokens that count, and their number."""
    if not 0 <= skip < 1:
        raise ValueError(f"skip must be in [0, 1), not {skip}")
    batch, length = mask.shape
    if log_probs.shape != (batch, length, length):
        raise ValueError(
            f"log_probs (B, T, T) are needed for a mask of shape {(batch, length)}, not "
            f"{tuple(log_probs.shape)}"
        )
    mask = check_mask("mask", mask, (batch, length), log_probs.device)
    slots = best_matching(-log_probs, mask)
    matched = log_probs.gather(1, slots.unsqueeze(1)).squeeze(1)
    kept = mask
    if skip > 0:
        kept = mask & ~matched.detach().lt(math.log(skip))  # NaN is kept
    zero = log_probs[:, :0].sum((1, 2))
    return zero - torch.where(kept, matched, 0.0).sum(1), kept.sum(1)
