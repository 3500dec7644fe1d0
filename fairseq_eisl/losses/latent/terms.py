"""EISL of some sentences at a time, from what alignments are made of.

What lies between the inputs of :func:`dag_ngram_log_probs` or :func:`ctc_ngram_log_probs` and the
loss is many times as large as they are: matrices of slots x slots, n-grams of every order, where
each may stand and how likely. It is cheap beside a likelihood, too. So each block of sentences is
computed on its own, nothing of it is kept, and the backward computes it again.
"""

from typing import Any, Callable, Iterator, Sequence

import torch
from torch import Tensor

from ..eisl_options import EISLOptions
from ..eisl_terms import EISLTerms, NGramLogProbs, checked_sentences, ngram_terms
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
    """EISL of n-grams that each sentence's inputs give.

    Args:
        ngram_log_probs: of parts of the inputs, then the targets, ``output_mask`` and ``orders``
            of these sentences.
        inputs: (B, L, ...) tensors, the first one in the dtype of the loss.
        targets: (B, S) int64.
        output_mask: (B, L) bool, True for real slots.
        options: of the loss.
        matching: ``target_mask``, ``learned``, ``word_starts``, ``generator`` of
            :func:`fairseq_eisl.losses.eisl_from_ngram_log_probs`.
    """
    first = inputs[0]
    sentences = checked_sentences(
        targets, len(first), output_length=output_mask.sum(1), options=options, **matching
    )
    orders = options.possible_orders(min(first.size(1), targets.size(1)))

    def terms(*parts_and_rows: Any) -> EISLTerms:
        *parts, rows = parts_and_rows
        chosen = sentences.rows(rows)
        found = ngram_log_probs(
            *parts, chosen.targets, output_mask=output_mask[rows], orders=orders
        )
        zero = torch.stack([part[:, :0].to(first.dtype).flatten(1).sum(1) for part in parts]).sum(0)
        return ngram_terms(found, chosen, options, zero)

    with torch.autocast(first.device.type, enabled=False):
        return EISLTerms(*over_sentences(terms, *inputs, recompute=True))
