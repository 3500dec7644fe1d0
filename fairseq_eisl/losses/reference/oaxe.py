"""Order-agnostic cross entropy by trying every order."""

import itertools
import math

import torch
from torch import Tensor

from .sentence import log_softmax


def oaxe_loss(logits: Tensor, targets: Tensor, mask: Tensor, skip: float = 0.15) -> Tensor:
    """(B,) float64: the least sum over all orders of the target, its unlikely tokens left out,
    per token that is left.

    Shapes: logits (B, T, V), targets and mask (B, T).
    """
    losses = []
    for b in range(len(targets)):
        places = [t for t in range(targets.size(1)) if mask[b, t]]
        log_probs = {t: log_softmax(logits[b, t].double()) for t in places}
        orders = [
            [log_probs[t][targets[b, s]] for t, s in zip(places, order)]
            for order in itertools.permutations(places)
        ]
        best = min(orders, key=lambda terms: float(-sum(terms))) if places else []
        kept = [term for term in best if skip == 0 or float(term) >= math.log(skip)]
        zero = logits[b, :0].double().sum()
        losses.append(zero - sum(kept) / len(kept) if kept else zero)
    return torch.stack(losses)
