"""Cross entropy with weighted tokens, one token at a time."""

from typing import Any, Optional

import torch
from torch import Tensor

from .sentence import log_softmax


def token_weighted_loss(
    logits: Tensor,
    targets: Tensor,
    mask: Tensor,
    kind: str,
    also: Optional[Tensor] = None,
    **numbers: Any,
) -> Tensor:
    """(B,) float64 losses of sentences; ``numbers`` by the names of the implementation, and
    ``also`` (B, T) further weights.

    >>> uniform = torch.zeros(1, 2, 2)
    >>> mask = torch.tensor([[True, True]])
    >>> token_weighted_loss(uniform, torch.tensor([[0, 1]]), mask, "dft").tolist()
    [0.34657359027997264]
    """
    losses = []
    for b in range(len(targets)):
        terms, all_log_probs = [], []
        for t in range(targets.size(1)):
            if not mask[b, t]:
                continue
            log_probs = log_softmax(logits[b, t].double())
            log_p = log_probs[targets[b, t]]
            p = float(log_p.detach().exp())
            if kind == "tailr":
                g = numbers.get("tailr_gamma", 0.1)
                weight = max(p / (g + (1 - g) * p), numbers.get("tailr_min", 0.3)) if g else 1.0
            elif kind == "mixce":
                e = numbers.get("mixce_factor", 0.5)
                weight = e + (1 - e) * p
            elif kind == "gold":
                weight = max(p, numbers.get("gold_min", 0.1))
            elif kind == "error_norm":
                error = log_probs.detach().exp()
                error[targets[b, t]] -= 1
                norm = float(error.square().sum().sqrt())
                weight = float(norm < numbers.get("error_norm_threshold", 1.3))
            else:
                weight = 1.0 if kind == "none" else p
            counts = 1.0 if also is None else float(also[b, t])
            terms.append(-weight * counts * log_p)
            all_log_probs.append(counts * log_p)
        zero = logits[b, :0].double().sum()
        if not terms:
            losses.append(zero)
        elif kind == "convex":
            mean = sum(all_log_probs) / len(all_log_probs)
            losses.append(-(numbers.get("convex_power", 3.0) * mean).exp())
        else:
            losses.append(zero + sum(terms) / len(terms))
    return torch.stack(losses)
