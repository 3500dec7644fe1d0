"""The seam of EISL: log-probabilities of the target's tokens or n-grams at the output's positions.

Whatever gives (B, T, S) log-probabilities of tokens (:func:`eisl_from_log_probs`), or those of
n-grams at some places (:func:`eisl_from_ngram_log_probs`), has the loss from here: which n-grams
count, where they are matched (Eq. 6), the mean over them and the weighted sum over orders (Eq. 4).
"""

from typing import Iterable, Iterator, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from . import random_numbers
from .eisl_options import DEFAULTS, EISLOptions
from .ngram_weights import NGramWeights, check_ngram_weights
from .ngrams import (
    check_mask,
    checked_ids,
    longest_run,
    multiplicity,
    resolve_orders,
    whole_words,
    widen,
    window_mask,
    word_beginnings,
)
from .position_selection import COUNT, clipped_log_counts, select_positions
from .random_numbers import Seeds
from .worker_threads import over_sentences


class EISLTerms(NamedTuple):
    """EISL by sentence (B) and by order (K given orders, then the fallback order)."""

    losses: Tensor
    """(B, K + 1) L_n in nats; zero where a sentence does not use the order."""
    weights: Tensor
    """(B, K + 1) the weight of each order, zero where it is not used."""
    entropy: Tensor
    """(B, K + 1) mean entropy of the position selection in nats, without gradient."""

    def total(self) -> Tensor:
        """(B,) the loss of each sentence."""
        return (self.losses * self.weights).sum(1)


class NGramLogProbs(NamedTuple):
    """The target's n-grams of one order, at every place of the output."""

    n: int
    log_probs: Tensor
    """(B, P, S - n + 1) log-probability in nats of the n-gram that starts at target position
    s, at output place p: the whole n-gram's, not divided by n."""
    places: Tensor
    """(B, P) bool, the places where an n-gram may stand."""


class NGramPositions(NamedTuple):
    """Where the target's n-grams of one order are matched: P places, S' n-grams."""

    scores: Tensor
    """(B, P, S') log g in nats; 0 where either is not real."""
    weights: Tensor
    """(B, P, S') q, which sums to one over the real places."""
    places: Tensor
    """(B, P) bool, the places where an n-gram may stand."""
    grams: Tensor
    """(B, S') bool, the n-grams that count."""
    entropy: Tensor
    """(B, S') of q in nats, without gradient."""


class Sentences(NamedTuple):
    """A batch of targets, checked, and what else is known of each sentence."""

    targets: Tensor
    target_mask: Tensor
    output_length: Tensor
    """(B,) the longest n-gram that fits into the output, in tokens."""
    learned: Optional[Tensor]
    """(B, S) bool; only n-grams that hold at least one such token count."""
    seeds: Optional[Tensor]
    """(B,) int64 of the Gumbel noise."""
    word_starts: Optional[Tensor] = None
    """(B, S) bool, as of :func:`word_beginnings`; only n-grams that tear no word count."""
    ngram_weights: Optional[NGramWeights] = None
    """How much n-grams count; all alike, if None."""

    def rows(self, rows: slice) -> "Sentences":
        """Some of them."""
        return Sentences(
            self.targets[rows],
            self.target_mask[rows],
            self.output_length[rows],
            learned=None if self.learned is None else self.learned[rows],
            seeds=None if self.seeds is None else self.seeds[rows],
            word_starts=None if self.word_starts is None else self.word_starts[rows],
            ngram_weights=None if self.ngram_weights is None else self.ngram_weights.rows(rows),
        )


def eisl_from_ngram_log_probs(
    ngram_log_probs: Iterable[NGramLogProbs],
    targets: Tensor,
    *,
    attached_zero: Tensor,
    output_length: Tensor,
    target_mask: Optional[Tensor] = None,
    options: EISLOptions = DEFAULTS,
    word_starts: Optional[Tensor] = None,
    ngram_weights: Optional[NGramWeights] = None,
    generator: Seeds = None,
) -> EISLTerms:
    """EISL of models whose n-grams are no products of neighbouring positions.

    Such a model sums over the ways in which it may say an n-gram from some place on, as
    decoders with latent alignments do.

    Args:
        ngram_log_probs: with n rising. Orders that no sentence uses may be missing; those
            that some sentence may use are ``options.possible_orders(longest)``.
        targets: (B, S) int64.
        attached_zero: (B,) zeros that belong to the graph: the loss of sentences without
            tokens. float32 or float64: the dtype of the result.
        output_length: (B,) int64, the longest n-gram that fits into the output, in tokens.
        target_mask: (B, S) bool, True for real tokens; all, if None.
        options: orders, their weights, position selection. Log-probabilities of n-grams
            below ``n * options.floor`` are raised to it, and get no gradient.
        word_starts: (B, S) bool, the target tokens that begin a word: only n-grams that tear no
            word in pieces count (see :func:`fairseq_eisl.losses.ngrams.whole_words`).
        ngram_weights: how much each n-gram counts in the mean over them; alike, if None.
        generator: of the Gumbel noise, as for :func:`eisl_loss`.

    Raises:
        ValueError: wrong shapes.

    One bigram, of probability 1/4 at the first of two places and impossible at the second:

    >>> log_probs = torch.tensor([[[0.25], [0.0]]]).log()
    >>> bigrams = NGramLogProbs(2, log_probs, torch.tensor([[True, True]]))
    >>> terms = eisl_from_ngram_log_probs(
    ...     [bigrams], torch.tensor([[7, 8]]), attached_zero=torch.zeros(1),
    ...     output_length=torch.tensor([3]), options=EISLOptions((2,), selection="softmax"))
    >>> round(terms.total().item(), 4)
    0.6931
    """
    sentences = checked_sentences(
        targets,
        len(attached_zero),
        output_length=output_length,
        target_mask=target_mask,
        options=options,
        word_starts=word_starts,
        ngram_weights=ngram_weights,
        generator=generator,
    )
    with torch.autocast(targets.device.type, enabled=False):
        return ngram_terms(ngram_log_probs, sentences, options, attached_zero)


def checked_sentences(
    targets: Tensor,
    batch: int,
    *,
    output_length: Tensor,
    target_mask: Optional[Tensor] = None,
    options: EISLOptions = DEFAULTS,
    word_starts: Optional[Tensor] = None,
    ngram_weights: Optional[NGramWeights] = None,
    generator: Seeds = None,
) -> Sentences:
    """The arguments of :func:`eisl_from_ngram_log_probs` for a batch of this size, checked."""
    targets, target_mask = checked_ids("targets", targets, target_mask, batch)
    seeds = noise_seeds(options, generator, batch, targets.device)
    starts = _starts(word_starts, target_mask)
    shape = batch, targets.size(1)
    weights = check_ngram_weights(ngram_weights, shape, targets.device)
    return Sentences(targets, target_mask, output_length, None, seeds, starts, weights)


def ngram_terms(
    ngram_log_probs: Iterable[NGramLogProbs],
    sentences: Sentences,
    options: EISLOptions,
    attached_zero: Tensor,
) -> EISLTerms:
    """:func:`eisl_from_ngram_log_probs` of checked arguments."""
    floored = (
        order._replace(log_probs=order.log_probs.clamp(min=order.n * options.floor))
        for order in ngram_log_probs
    )
    return _terms(floored, sentences, options, attached_zero)


def eisl_from_log_probs(
    log_probs: Tensor,
    targets: Tensor,
    *,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    options: EISLOptions = DEFAULTS,
    word_starts: Optional[Tensor] = None,
    ngram_weights: Optional[NGramWeights] = None,
    generator: Seeds = None,
) -> EISLTerms:
    """EISL of the log-probabilities of target tokens at output positions.

    Args:
        log_probs: (B, T, S) log-probability in nats of ``targets[b, s]`` at output position t,
            float32 or float64. Positions that are not real may hold anything finite.
        targets: (B, S) int64; only equality of tokens is looked at.
        output_mask: (B, T) bool, True for real positions; all, if None.
        target_mask: (B, S) bool, True for real tokens; all, if None.
        options: as of :func:`eisl_loss`.
        word_starts: (B, S) bool, the target tokens that begin a word: only n-grams that tear no
            word in pieces count (see :func:`fairseq_eisl.losses.ngrams.whole_words`).
        ngram_weights: how much each n-gram counts in the mean over them; alike, if None.
        generator: of the Gumbel noise, as for :func:`eisl_loss`.

    Raises:
        ValueError: wrong shapes.

    >>> log_probs = torch.tensor([[[0.5, 0.5], [0.5, 0.5]]]).log()
    >>> terms = eisl_from_log_probs(log_probs, torch.tensor([[7, 8]]))
    >>> round(terms.total().item(), 4)
    0.6931
    """
    if log_probs.dim() != 3 or not log_probs.is_floating_point():
        raise ValueError(
            f"log_probs must be a floating-point tensor of shape (B, T, S), "
            f"not {log_probs.dtype} of shape {tuple(log_probs.shape)}"
        )
    batch, positions, length = log_probs.shape
    output_mask = check_mask("output_mask", output_mask, (batch, positions), log_probs.device)
    sentences = checked_sentences(
        targets,
        batch,
        output_length=longest_run(output_mask),
        target_mask=target_mask,
        options=options,
        word_starts=word_starts,
        ngram_weights=ngram_weights,
        generator=generator,
    )
    if targets.size(1) != length:
        raise ValueError(
            f"targets must have shape (B, S) for log_probs of shape (B, T, S) = "
            f"{tuple(log_probs.shape)}, not {tuple(targets.shape)}"
        )

    def terms(log_probs: Tensor, rows: slice) -> EISLTerms:
        return token_terms(log_probs, output_mask[rows], sentences.rows(rows), options)

    with torch.autocast(log_probs.device.type, enabled=False):
        return EISLTerms(*over_sentences(terms, log_probs))


def _starts(word_starts: Optional[Tensor], target_mask: Tensor) -> Optional[Tensor]:
    """Checked."""
    if word_starts is None:
        return None
    shape = tuple(target_mask.shape)
    starts = check_mask("word_starts", word_starts, shape, target_mask.device)
    return word_beginnings(starts, ~target_mask)


def token_terms(
    log_probs: Tensor, output_mask: Tensor, sentences: Sentences, options: EISLOptions
) -> EISLTerms:
    """:func:`eisl_from_log_probs` of checked arguments, on the threads that there are."""
    log_probs = log_probs.clamp(min=options.floor)
    attached_zero = log_probs[:, :0].sum((1, 2))
    return _terms(_neighbours(log_probs, output_mask, options), sentences, options, attached_zero)


def _neighbours(
    log_probs: Tensor, output_mask: Tensor, options: EISLOptions
) -> Iterator[NGramLogProbs]:
    """N-grams of tokens at neighbouring positions (Eq. 7), of all orders that the options may
    need, from (B, T, S) log-probabilities of tokens."""
    orders = options.possible_orders(min(log_probs.size(1), log_probs.size(2)))
    sums = log_probs
    for n in range(1, max(orders, default=0) + 1):
        sums = widen(sums, log_probs, n) if n > 1 else log_probs
        if n in orders:
            yield NGramLogProbs(n, sums, window_mask(output_mask, n))


def noise_seeds(options: EISLOptions, generator: Seeds, batch: int, device) -> Optional[Tensor]:
    """(B,) seeds; None where the selection draws nothing."""
    if options.selection != "gumbel":
        return None
    return random_numbers.sentence_seeds(generator, batch, device)


def _terms(
    ngram_log_probs: Iterable[NGramLogProbs],
    sentences: Sentences,
    options: EISLOptions,
    attached_zero: Tensor,
) -> EISLTerms:
    dtype = attached_zero.dtype
    orders, weights = resolve_orders(
        options.ngrams,
        options.order_weights,
        output_length=sentences.output_length,
        target_length=longest_run(sentences.target_mask),
    )
    losses = attached_zero.unsqueeze(1).expand(orders.shape)
    entropies = torch.zeros_like(losses)
    for order in ngram_log_probs:
        used = orders.eq(order.n) & weights.gt(0)
        if not used.is_cuda and not used.any():
            continue  # on CUDA, looking would cost more than the empty work
        loss, entropy = _order_terms(order, sentences, options)
        losses = losses + torch.where(used, loss.unsqueeze(1), 0.0)
        entropies = entropies + torch.where(used, entropy.unsqueeze(1), 0.0)
    return EISLTerms(losses, weights.to(dtype), entropies)


def _order_terms(
    order: NGramLogProbs, sentences: Sentences, options: EISLOptions
) -> Tuple[Tensor, Tensor]:
    """(B,) L_n in nats and the mean entropy of the selection, of one order."""
    if options.selection == COUNT:
        return _count_terms(order, sentences, options)
    found = select_for_order(order, sentences, options)
    loss = -_mean((found.weights * found.scores).sum(1), order.n, found.grams, sentences)
    count = found.grams.sum(1).clamp(min=1)
    return loss, found.entropy.masked_fill(~found.grams, 0.0).sum(1) / count


def _mean(values: Tensor, n: int, grams: Tensor, sentences: Sentences) -> Tensor:
    """(B,) mean of (B, S') values over the n-grams that count, each with its weight."""
    values = values.masked_fill(~grams, 0.0)
    if sentences.ngram_weights is not None:
        weights = sentences.ngram_weights.of_order(n).to(values.dtype)
        values = values * weights.masked_fill(~grams, 0.0)
    return values.sum(1) / grams.sum(1).clamp(min=1)


def _count_terms(
    order: NGramLogProbs, sentences: Sentences, options: EISLOptions
) -> Tuple[Tensor, Tensor]:
    """The same of expected counts, which choose no position."""
    n, log_probs, places = order
    grams = _grams(order, sentences)
    count = grams.sum(1).clamp(min=1)
    real = places.unsqueeze(2) & grams.unsqueeze(1)
    often = multiplicity(sentences.targets, grams, n)
    logs, entropy = clipped_log_counts(log_probs.masked_fill(~real, 0.0), places, often)
    logs = logs.masked_fill(~places.any(1, keepdim=True), 0.0)
    loss = -_mean(logs / n if options.normalize else logs, n, grams, sentences)
    return loss, entropy.masked_fill(~grams, 0.0).sum(1) / count


def _grams(order: NGramLogProbs, sentences: Sentences) -> Tensor:
    """(B, S - n + 1) bool, the target's n-grams that count."""
    grams = window_mask(sentences.target_mask, order.n)
    if sentences.learned is not None:
        grams = grams & ~window_mask(~sentences.learned, order.n)
    if sentences.word_starts is not None:
        grams = whole_words(grams, sentences.word_starts, order.n)
    return grams


def select_for_order(
    order: NGramLogProbs, sentences: Sentences, options: EISLOptions
) -> NGramPositions:
    """Where the n-grams of one order are matched, of checked arguments."""
    n, log_probs, places = order
    grams = _grams(order, sentences)
    real = places.unsqueeze(2) & grams.unsqueeze(1)
    scores = (log_probs / n if options.normalize else log_probs).masked_fill(~real, 0.0)
    noise = counts = None
    if sentences.seeds is not None:
        seeds = random_numbers.fold(sentences.seeds, n)
        noise = random_numbers.gumbel(seeds, *scores.shape[1:])
    if options.selection == "sinkhorn":  # to which equal n-grams are one
        counts = multiplicity(sentences.targets, grams, n)
    q, entropy = select_positions(
        scores,
        places,
        options.selection,
        temperature=options.temperature,
        selection_on=options.selection_on,
        noise=noise,
        multiplicity=counts,
    )
    return NGramPositions(scores, q, places, grams, entropy)
