"""EISL of what paths are made of, without keeping what lies between.

From transitions to log-probabilities of n-grams there are several matrices of slots x slots, each
as large as the transitions. They are cheap to compute and large to keep: so some sentences are
computed at a time, nothing of them is kept, and the backward computes them again. What follows,
where n-grams may stand and what they cost, is a fraction of that size and computed once.
"""

from typing import Any, Callable, Iterator, Sequence, Tuple

import torch
from torch import Tensor

from ..eisl_options import EISLOptions
from ..eisl_terms import EISLTerms, NGramLogProbs, checked_sentences, ngram_terms
from ..ngrams import window_mask
from ..worker_threads import over_sentences


def terms_over_sentences(
    ngram_log_probs: Callable[..., Iterator[NGramLogProbs]],
    inputs: Sequence[Tensor],
    targets: Tensor,
    *,
    output_mask: Tensor,
    options: EISLOptions,
    **matching: Any,
) -> EISLTerms:
    """EISL of n-grams whose log-probabilities are computed some sentences at a time.

    Args:
        ngram_log_probs: of parts of the inputs, then the targets, ``output_mask`` and ``orders``
            of these sentences; a place is a slot.
        inputs: (B, L, ...) tensors, the first one in the dtype of the loss.
        targets: (B, S) int64.
        output_mask: (B, L) bool, True for real slots.
        options: of the loss.
        matching: ``target_mask``, ``word_starts``, ``ngram_weights``, ``generator`` of
            :func:`fairseq_eisl.losses.eisl_from_ngram_log_probs`.
    """
    first = inputs[0]
    sentences = checked_sentences(
        targets, len(first), output_length=output_mask.sum(1), options=options, **matching
    )
    orders = options.possible_orders(min(first.size(1), targets.size(1)))

    def log_probs(*parts_and_rows: Any) -> Tuple[Tensor, ...]:
        *parts, rows = parts_and_rows
        given = *parts, sentences.targets[rows]
        found = ngram_log_probs(*given, output_mask=output_mask[rows], orders=orders)
        return tuple(order.log_probs for order in found)

    with torch.autocast(first.device.type, enabled=False):
        zero = torch.stack([x[:, :0].to(first.dtype).flatten(1).sum(1) for x in inputs]).sum(0)
        found = over_sentences(log_probs, *inputs, recompute=True) if len(orders) else ()
        ngrams = (NGramLogProbs(n, x, window_mask(output_mask, n)) for n, x in zip(orders, found))
        return ngram_terms(ngrams, sentences, options, zero)
