"""Exact EISL of an autoregressive model, for evaluation (paper, App. A.7)."""

from typing import Callable, Optional, Sequence

import torch
from torch import Tensor, nn

from . import random_numbers
from .eisl import EISLOptions, check_reduction, eisl_terms, reduce_sentences
from .masking import check_mask, checked_ids, longest_run
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
    ngrams: Sequence[int] = (2, 3, 4),
    weights: Optional[Sequence[float]] = None,
    selection: str = "softmax",
    temperature: float = 1.0,
    selection_on: str = "log_prob",
    floor: float = -20.0,
    normalize: bool = True,
    reduction: str = "mean",
    generator: Seeds = None,
    batch: int = 256,
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

    The other options, the result (here float64) and the errors are those of
    :func:`fairseq_eisl.losses.eisl_loss`.

    >>> logits_of = lambda tokens, sentences: torch.zeros(*tokens.shape, 2)
    >>> target = torch.tensor([[0, 1]])
    >>> round(exact_autoregressive_eisl(logits_of, target, target, ngrams=(2,)).item(), 4)
    0.6931
    """
    check_reduction(reduction)
    if batch < 1:
        raise ValueError(f"batch must be 1 or more sequences, not {batch}")
    options = EISLOptions(ngrams, weights, selection, temperature, selection_on, floor, normalize)
    device, size = candidates.device, len(targets)
    output_mask = check_mask("output_mask", output_mask, tuple(candidates.shape), device)
    checked_ids("candidates", candidates, output_mask, size)  # a prefix may hold any of them
    targets, target_mask = checked_ids("targets", targets, target_mask, size)
    positions, length = candidates.size(1), targets.size(1)
    rooms = torch.minimum(longest_run(output_mask), longest_run(target_mask))
    room = int(rooms.max()) if size else 0
    orders = options.possible_orders(room)
    longest = max(orders, default=0)
    # cost[b, t, s, j]: log-probability of target token s + j after candidate_{<t} and s .. s+j-1
    cost = torch.zeros((size, positions, length, longest), dtype=torch.float64, device=device)
    real = output_mask.unsqueeze(2) & target_mask.unsqueeze(1)
    pairs = real.nonzero()
    # Sequences of one start position share their length: no padding between prefix and n-gram.
    for t in range(positions if longest else 0):
        rows = pairs[pairs[:, 1] == t]
        for start in range(0, len(rows), batch):
            b, _, s = rows[start : start + batch].unbind(1)
            place = s.unsqueeze(1) + torch.arange(longest, device=device)
            # Past the target's end stands 0: no valid window reaches there.
            grams = nn.functional.pad(targets, (0, longest))[b.unsqueeze(1), place]
            logits = logits_of(torch.cat([candidates[b, :t], grams], 1), b)[:, t:]
            scored = token_log_probs(logits.flatten(0, 1).unsqueeze(1), grams.view(-1, 1))
            cost[b, t, s] = scored.view(grams.shape).to(cost.dtype).clamp(min=floor)
    totals = cost.cumsum(3)
    sums = ((n, totals[:, : positions - n + 1, : length - n + 1, n - 1]) for n in orders)
    seeds = None
    if options.selection == "gumbel":  # the others draw nothing
        seeds = random_numbers.sentence_seeds(generator, size, device)
    zero = cost.new_zeros(size)
    terms = eisl_terms(sums, zero, output_mask, target_mask, options, seeds, targets=targets)
    return reduce_sentences(terms.total(), reduction)
