r"""EISL over CTC: outputs whose slots are merged where they repeat, and lose their blanks.

With P_t the distribution of slot t and b_t its blank, an n-gram of the target is said once for each
run of slots that holds its first token. It is counted at the last slot of that run:

.. math::
    c_1[t, s] = P_t(y_s) (1 - P_{t+1}(y_s)), \qquad
    c_n[t, s] = P_t(y_s) \sum_{u > t} \Big( \prod_{t < i < u} b_i \Big) F_{n-1}[u, s+1]

where F_k[u, s] is the probability that a run which begins at u says the k-gram at s,

.. math:: F_1[u, s] = P_u(y_s), \qquad F_k[u, s] = c_k[u, s] + P_u(y_s) F_k[u+1, s],

and the slot u = t + 1 does not count where y_s = y_{s+1}, as the two would be merged. Both sums are
scans from the right; counting bigrams in this way is Shao and Feng (NeurIPS 2022, arXiv
2210.03953).
"""

from typing import Any, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..eisl_options import DEFAULTS, EISLOptions
from ..eisl_terms import EISLTerms, NGramLogProbs, eisl_from_ngram_log_probs
from ..ngrams import checked_ids, window_mask
from ..token_log_probs import token_log_probs
from .ctc_likelihood import check_columns
from .scaled import checked, doublings, later, log1mexp, scaled, suffix_sums, working


def ctc_ngram_log_probs(
    log_probs: Tensor,
    blank_log_probs: Tensor,
    targets: Tensor,
    *,
    output_mask: Tensor,
    orders: Sequence[int],
) -> Iterator[NGramLogProbs]:
    """Log-probabilities of the target's n-grams from every slot on.

    Args:
        log_probs: (B, L, S) log-probability in nats of ``targets[b, s]`` at slot t, float32 or
            float64. Slots that are not real may hold anything finite.
        blank_log_probs: (B, L) those of the blank.
        targets: (B, S) int64, none of them the blank; only equality of neighbours is looked at.
        output_mask: (B, L) bool, True for real slots, which come first.
        orders: n, rising. Those above 4 are computed in float64.

    Yields:
        For each order that fits (B, L - n + 1, S - n + 1) log-probabilities; what is impossible is
        a large negative number. The sum of their exponentials over slots is the expected number of
        the n-gram in the output. Work grows as n L S log L.

    Raises:
        ValueError: wrong shapes.

    Two slots, each of them "a" or the blank with probability 1/2; "a" is said once in three of the
    four outputs:

    >>> half = torch.full((1, 2, 1), 0.5).log()
    >>> found = ctc_ngram_log_probs(half, half[:, :, 0], torch.tensor([[7]]),
    ...                             output_mask=torch.tensor([[True, True]]), orders=[1])
    >>> round(next(found).log_probs.exp().sum().item(), 6)
    0.75
    """
    _, slots, length = checked(log_probs, targets, output_mask, output_mask.new_ones(targets.shape))
    if tuple(blank_log_probs.shape) != (len(log_probs), slots):
        raise ValueError(
            f"blank_log_probs must have shape (B, L) = {(len(log_probs), slots)}, not "
            f"{tuple(blank_log_probs.shape)}"
        )
    orders = [n for n in orders if n <= min(slots, length)]
    log_probs = working(log_probs, orders)
    if 1 in orders:
        real = output_mask.unsqueeze(2)
        # Behind the last slot nothing repeats; the logarithm's slope there is not for slots of 0.
        next_ones = log1mexp(later(log_probs.masked_fill(~real, -1e4)).clamp(max=0.0))
        ends = later(real)
        yield NGramLogProbs(1, log_probs + torch.where(ends, next_ones, 0.0), output_mask)
    if max(orders, default=0) < 2:
        return
    parts = scaled(log_probs, output_mask)
    runs = doublings(log_probs.exp().masked_fill(~output_mask.unsqueeze(2), 0.0))
    blanks = working(blank_log_probs, orders).exp().masked_fill(~output_mask, 0.0)
    next_blank = later(blanks).unsqueeze(2)
    gaps = doublings(next_blank)
    same = targets[:, 1:].eq(targets[:, :-1]).unsqueeze(1)
    begun = parts.probs
    for n in range(2, orders[-1] + 1):
        width = length - n + 1
        following = later(begun[:, :, 1:])
        reached = suffix_sums(following, gaps)
        apart = next_blank * later(reached)  # a blank at least
        reached = torch.where(same[:, :, :width], apart, reached)
        counted = parts.probs[:, :, :width] * reached
        if n in orders:
            places = window_mask(output_mask, n)
            yield NGramLogProbs(n, parts.log_of(counted[:, : slots - n + 1], n), places)
        if n < orders[-1]:
            begun = suffix_sums(counted, [run[:, :, :width] for run in runs])


def eisl_ctc_terms(
    logits: Tensor,
    targets: Tensor,
    blank: int,
    *,
    output_mask: Tensor,
    target_mask: Tensor,
    options: EISLOptions = DEFAULTS,
    in_place: bool = False,
    **matching: Any,
) -> EISLTerms:
    """EISL of a CTC model.

    Args:
        logits: (B, L, V) of the slots, any floating dtype.
        targets: (B, S) int64.
        blank: the id of the blank, in [0, V).
        output_mask: (B, L) bool, True for real slots, which come first.
        target_mask: (B, S) bool, True for real tokens.
        options: of the loss.
        in_place: the backward may overwrite the logits.
        matching: ``word_starts``, ``ngram_weights``, ``generator`` of
            :func:`fairseq_eisl.losses.eisl_from_ngram_log_probs`.

    Raises:
        ValueError: wrong shapes, or ids out of range.

    >>> even = torch.zeros(1, 2, 2)  # of "a" (0) and the blank (1)
    >>> mask = torch.tensor([[True, True]])
    >>> options = EISLOptions((1,), selection="count")
    >>> terms = eisl_ctc_terms(even, torch.tensor([[0]]), 1, output_mask=mask,
    ...                        target_mask=mask[:, :1], options=options)
    >>> round(terms.total().exp().item(), 4), round(1 / 0.75, 4)
    (1.3333, 1.3333)
    """
    if not 0 <= blank < logits.size(2):
        raise ValueError(f"blank must be an id in [0, {logits.size(2)}), not {blank}")
    targets, target_mask = checked_ids("targets", targets, target_mask, len(logits), logits.size(2))
    with torch.autocast(logits.device.type, enabled=False):
        columns = F.pad(targets, (0, 1), value=blank)
        found = token_log_probs(logits, columns, output_mask, in_place)
    masks = {"output_mask": output_mask, "target_mask": target_mask}
    return eisl_ctc_log_prob_terms(found, targets, **masks, options=options, **matching)


def eisl_ctc_log_prob_terms(
    log_probs: Tensor,
    targets: Tensor,
    *,
    output_mask: Tensor,
    target_mask: Tensor,
    options: EISLOptions = DEFAULTS,
    **matching: Any,
) -> EISLTerms:
    """EISL of a CTC model, from log-probabilities of the target's tokens and the blank.

    Args:
        log_probs: (B, L, S + 1) log-probability in nats of ``targets[b, s]`` at slot t, and behind
            them of the blank, float32 or float64, as :func:`fairseq_eisl.losses.token_log_probs`
            gives them. Slots that are not real may hold anything finite.

    The others are those of :func:`eisl_ctc_terms`.

    Raises:
        ValueError: wrong shapes.

    >>> mask = torch.tensor([[True, True]])
    >>> options = EISLOptions((1,), selection="count")
    >>> terms = eisl_ctc_log_prob_terms(
    ...     torch.full((1, 2, 2), 0.5).log(), torch.tensor([[0]]), output_mask=mask,
    ...     target_mask=mask[:, :1], options=options)
    >>> round(terms.total().exp().item(), 4)
    1.3333
    """
    check_columns(log_probs, targets)
    with torch.autocast(log_probs.device.type, enabled=False):
        ngrams = ctc_ngram_log_probs(
            log_probs[:, :, :-1],
            log_probs[:, :, -1],
            targets,
            output_mask=output_mask,
            orders=options.possible_orders(min(log_probs.size(1), targets.size(1))),
        )
        return eisl_from_ngram_log_probs(
            ngrams,
            targets,
            attached_zero=log_probs[:, :0].sum((1, 2)),
            output_length=output_mask.sum(1),
            target_mask=target_mask,
            options=options,
            **matching,
        )


def ctc_expected_ngrams(
    log_probs: Tensor, blank: int, *, output_mask: Tensor, n: int = 1
) -> Tensor:
    """(B,) the expected number of n-grams in the output; with ``n = 1``, its expected length.

    Args:
        log_probs: (B, L, V) log-probabilities in nats of all symbols.
        blank: the id of the blank.
        output_mask: (B, L) bool, True for real slots.
        n: the order, 1 or more.

    >>> half = torch.full((1, 2, 2), 0.5).log()
    >>> ctc_expected_ngrams(half, 1, output_mask=torch.tensor([[True, True]])).item()
    0.75
    """
    real = output_mask.unsqueeze(2)
    probs = log_probs.double().exp().masked_fill(~real, 0.0)
    blanks = probs[:, :, blank : blank + 1]
    keep = torch.ones(probs.size(2), dtype=torch.bool, device=probs.device)
    keep[blank] = False
    words = probs * keep
    runs, gaps = doublings(words), doublings(later(blanks))
    # How likely it is that a run of each word begins (or ends) here with n - 1 tokens behind it.
    counted = words * (1 - later(words))
    begun = words
    for _ in range(n - 1):
        behind = later(begun)
        reached = suffix_sums(behind.sum(2, keepdim=True), gaps)
        counted = words * (reached - behind)  # the same word right behind would be merged
        begun = suffix_sums(counted, runs)
    return counted.sum((1, 2)).to(torch.promote_types(log_probs.dtype, torch.float32))
