"""Exact EISL of an autoregressive model, for evaluation (paper, App. A.7)."""

from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn

from .eisl_options import EISLOptions, check_reduction, reduce_sentences
from .eisl_terms import NGramLogProbs, eisl_from_ngram_log_probs
from .ngrams import check_mask, checked_ids, longest_run, window_mask
from .random_numbers import Seeds
from .token_log_probs import token_log_probs


@torch.no_grad()
def exact_autoregressive_eisl(
    logits_of: Callable[[Tensor, Tensor], Tensor],
    candidates: Tensor,
    targets: Tensor,
    *,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    reduction: str = "mean",
    generator: Seeds = None,
    batch: int = 256,
    **options: Any,
) -> Tensor:
    """EISL whose n-gram probabilities are conditioned on the n-gram itself.

    Training scores a target n-gram at position t with one forward over the
    candidate: ``p(y*_{s+j} | candidate_{<t+j})``. The exact value feeds the
    n-gram as prefix: ``p(y*_{s+j} | candidate_{<t}, y*_s .. y*_{s+j-1})``. It takes
    T x S decoder runs a sentence: slow, for evaluation only, no gradient.

    Args:
        logits_of: ``(tokens (N, L), sentences (N,)) -> (N, L, V)`` logits, where
            position l predicts ``tokens[:, l]`` from ``tokens[:, :l]`` and the source of
            the given sentences (indices into the batch).
        candidates: (B, T) int64, the model's own output.
        targets: (B, S) int64.
        batch: sequences scored at a time.
        options: of :class:`EISLOptions` by name; the selection is ``softmax`` if none is given.

    The others, the result (here float64) and the errors are those of
    :func:`fairseq_eisl.losses.eisl_loss`.

    >>> logits_of = lambda tokens, sentences: torch.zeros(*tokens.shape, 2)
    >>> target = torch.tensor([[0, 1]])
    >>> round(exact_autoregressive_eisl(logits_of, target, target, ngrams=(2,)).item(), 4)
    0.6931
    """
    check_reduction(reduction)
    if batch < 1:
        raise ValueError(f"batch must be 1 or more sequences, not {batch}")
    chosen = EISLOptions(**{"selection": "softmax", **options})
    size = len(targets)
    output_mask = check_mask("output_mask", output_mask, tuple(candidates.shape), candidates.device)
    checked_ids("candidates", candidates, output_mask, size)  # a prefix may hold any of them
    targets, target_mask = checked_ids("targets", targets, target_mask, size)
    rooms = torch.minimum(longest_run(output_mask), longest_run(target_mask))
    orders = chosen.possible_orders(int(rooms.max()) if size else 0)
    real = output_mask.unsqueeze(2) & target_mask.unsqueeze(1)
    log_probs = _conditional_log_probs(
        logits_of,
        candidates=candidates,
        targets=targets,
        real=real,
        longest=max(orders, default=0),
        floor=chosen.floor,
        batch=batch,
    )
    totals = log_probs.cumsum(3)
    ends = candidates.size(1) + 1, targets.size(1) + 1
    terms = eisl_from_ngram_log_probs(
        [
            NGramLogProbs(
                n, totals[:, : ends[0] - n, : ends[1] - n, n - 1], window_mask(output_mask, n)
            )
            for n in orders
        ],
        targets,
        attached_zero=log_probs.new_zeros(size),
        output_length=longest_run(output_mask),
        target_mask=target_mask,
        options=chosen,
        generator=generator,
    )
    return reduce_sentences(terms.total(), reduction)


def _conditional_log_probs(
    logits_of: Callable[[Tensor, Tensor], Tensor],
    candidates: Tensor,
    targets: Tensor,
    real: Tensor,
    *,
    longest: int,
    floor: float,
    batch: int,
) -> Tensor:
    """(B, T, S, ``longest``) float64: the log-probability in nats of target token s + j after
    ``candidate_{<t}`` and the target tokens s .. s + j - 1, where (B, T, S) ``real`` is True."""
    log_probs = torch.zeros((*real.shape, longest), dtype=torch.float64, device=real.device)
    pairs = real.nonzero()
    # Sequences of one start position share their length: no padding between prefix and n-gram.
    for t in range(candidates.size(1) if longest else 0):
        rows = pairs[pairs[:, 1] == t]
        for start in range(0, len(rows), batch):
            b, _, s = rows[start : start + batch].unbind(1)
            place = s.unsqueeze(1) + torch.arange(longest, device=real.device)
            # Past the target's end stands 0: no valid window reaches there.
            grams = nn.functional.pad(targets, (0, longest))[b.unsqueeze(1), place]
            logits = logits_of(torch.cat([candidates[b, :t], grams], 1), b)[:, t:]
            scored = token_log_probs(logits.flatten(0, 1).unsqueeze(1), grams.view(-1, 1))
            log_probs[b, t, s] = scored.view(grams.shape).to(log_probs.dtype).clamp(min=floor)
    return log_probs
