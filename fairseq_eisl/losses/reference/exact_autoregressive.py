"""Exact EISL of an autoregressive model (App. A.7), one model call a token."""

from typing import Any, Callable, Dict, Optional

import torch
from torch import Tensor

from .sentence import Options, log_softmax, noise_of, raised, sentence_loss, truth


def exact_autoregressive_eisl(
    logits_of: Callable[[Tensor, Tensor], Tensor],
    candidates: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    *,
    noise: Optional[Dict[int, Tensor]] = None,
    **options: Any,
) -> Tensor:
    """Exact EISL of an autoregressive model (App. A.7), one model call a token.

    The n-gram at s, placed at t, has the log-probability
    ``sum_j log p(y*_{s+j} | candidate_{<t}, y*_s .. y*_{s+j-1})``.

    Args:
        logits_of: ``(tokens (N, L), sentences (N,)) -> (N, L, V)``; position l
            predicts ``tokens[:, l]`` from ``tokens[:, :l]``.
        candidates: (B, T) int64, the prefixes.

    The others, and the result, are those of :func:`eisl_loss`.

    >>> logits_of = lambda tokens, sentences: torch.zeros(*tokens.shape, 2)
    >>> exact_autoregressive_eisl(logits_of, *torch.tensor([[[0, 1]], [[1, 1]]])).tolist()
    [0.6931471805599453]
    """
    chosen = Options(**options)
    (size, positions), length = candidates.shape, targets.size(1)
    losses = []
    for b in range(size):

        def window(n: int, t: int, s: int, b: int = b) -> Tensor:
            total = torch.zeros((), dtype=torch.float64)
            for j in range(n):
                tokens = torch.cat([candidates[b, :t], targets[b, s : s + j + 1]])
                logits = logits_of(tokens.unsqueeze(0), torch.tensor([b]))[0, t + j].double()
                total = total + raised(log_softmax(logits)[targets[b, s + j]], chosen.floor)
            return total

        losses.append(
            sentence_loss(
                window,
                truth(output_mask, b, positions),
                truth(target_mask, b, length),
                targets[b].tolist(),
                chosen,
                noise_of(noise, b),
            )
        )
    return torch.stack(losses)
