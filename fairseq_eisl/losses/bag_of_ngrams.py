r"""Bag of n-grams (Shao et al., AAAI 2020, arXiv 1911.09320): expected counts against the target's.

A model whose positions are independent is expected to say the n-gram g

.. math:: E(g) = \sum_t \prod_{j<n} p_{t+j}(g_j)

times. The loss is the distance of these counts to those of the target, over all n-grams, divided by
the number of n-grams of both: one minus the share of n-grams that they have in common. Only
n-grams of the target need to be looked at.
"""

import torch
from torch import Tensor

from .ngrams import check_mask, checked_ids, multiplicity, widen, window_mask

# Log-probabilities in nats below it are this: their probability is 0 in float32, and no sum of
# them is infinite.
FLOOR = -200.0


def bag_of_ngrams_loss(
    log_probs: Tensor, targets: Tensor, *, output_mask: Tensor, target_mask: Tensor, n: int = 2
) -> Tensor:
    """The distance of each sentence's bags.

    Args:
        log_probs: (B, T, S) log-probability in nats of ``targets[b, s]`` at output position t,
            float32 or float64.
        targets: (B, S) int64; only equality of tokens is looked at.
        output_mask: (B, T) bool, True for real positions.
        target_mask: (B, S) bool, True for real tokens.
        n: the order, 1 or more.

    Returns:
        (B,) between 0 and 1: ``1 - 2 match / (n-grams of output and target)``, where ``match`` is
        the sum over the target's different n-grams of min(E, their count). With as many outputs as
        targets, this is the loss of the paper. A zero of the graph where the target or the output
        is shorter than n.

    Raises:
        ValueError: wrong shapes, or n below 1.

    Two positions that know their word for sure, in the wrong order:

    >>> log_probs = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]).log()
    >>> mask, target = torch.tensor([[True, True]]), torch.tensor([[7, 8]])
    >>> masks = {"output_mask": mask, "target_mask": mask}
    >>> [bag_of_ngrams_loss(log_probs, target, **masks, n=n).item() for n in (1, 2)]
    [0.0, 1.0]
    """
    if n < 1:
        raise ValueError(f"n must be 1 or more, not {n}")
    if log_probs.dim() != 3 or targets.shape != log_probs.shape[::2]:
        raise ValueError(
            f"log_probs (B, T, S) and targets (B, S) are needed, not {tuple(log_probs.shape)} and "
            f"{tuple(targets.shape)}"
        )
    output_mask = check_mask("output_mask", output_mask, log_probs.shape[:2], log_probs.device)
    targets, target_mask = checked_ids("targets", targets, target_mask, len(targets))
    zero = log_probs[:, :0].sum((1, 2))
    if n > min(log_probs.shape[1:]):
        return zero
    log_probs = log_probs.clamp(min=FLOOR)
    sums = log_probs
    for order in range(2, n + 1):
        sums = widen(sums, log_probs, order)
    places, grams = window_mask(output_mask, n), window_mask(target_mask, n)
    real = places.unsqueeze(2) & grams.unsqueeze(1)
    expected = sums.exp().masked_fill(~real, 0.0).sum(1)
    counts = multiplicity(targets, grams, n).to(expected.dtype)
    # An n-gram that stands c times in the target is met c times here, each time as a c-th part.
    match = (torch.minimum(expected, counts) / counts.clamp(min=1)).sum(1)
    both = (places.sum(1) + grams.sum(1)).to(expected.dtype)
    fits = places.any(1) & grams.any(1)
    return zero + torch.where(fits, 1 - 2 * match / both.clamp(min=1), 0.0)
