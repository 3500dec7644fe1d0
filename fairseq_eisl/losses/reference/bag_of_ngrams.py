"""Bags of n-grams, counted one by one over the whole vocabulary."""

import itertools
from collections import Counter
from typing import Optional

import torch
from torch import Tensor

from .sentence import log_softmax, truth


def bag_of_ngrams_loss(
    logits: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    *,
    n: int = 2,
) -> Tensor:
    """(B,) float64: the L1 distance of expected and real counts over all V^n n-grams, divided by
    the number of n-grams of output and target; 0 where one of them has none.

    Shapes: logits (B, T, V), targets (B, S), masks (B, T) and (B, S).
    """
    losses = []
    for b in range(len(targets)):
        zero = logits[b, :0].double().sum()
        at = truth(output_mask, b, logits.size(1))
        real = truth(target_mask, b, targets.size(1))
        probs = [log_softmax(row.double()).exp() for row in logits[b]]
        starts = [t for t in range(len(at) - n + 1) if all(at[t : t + n])]
        tokens = targets[b].tolist()
        grams = [tuple(tokens[s : s + n]) for s in range(len(real) - n + 1) if all(real[s : s + n])]
        if not starts or not grams:
            losses.append(zero)
            continue
        counts, distance = Counter(grams), zero
        for gram in itertools.product(range(logits.size(2)), repeat=n):
            expected = zero
            for t in starts:
                product = torch.ones((), dtype=torch.float64)
                for j, token in enumerate(gram):
                    product = product * probs[t + j][token]
                expected = expected + product
            distance = distance + (expected - counts[gram]).abs()
        losses.append(distance / (len(starts) + len(grams)))
    return torch.stack(losses)
