"""The Edit-Invariant Sequence Loss (Liu et al., NAACL 2022, arXiv 2106.15078)."""

from dataclasses import fields
from typing import Any, Callable, Dict, Optional, Sequence

import torch
from torch import Tensor, nn

from .eisl_options import EISLOptions, check_reduction, reduce_sentences
from .eisl_terms import EISLTerms, eisl_from_log_probs
from .feature_log_probs import feature_log_probs
from .ngram_weights import NGramWeights
from .ngrams import check_mask, checked_ids
from .random_numbers import Seeds
from .token_log_probs import token_log_probs

IGNORE_INDEX = -100
"""Of torch's losses: the id of labels that are none."""


def eisl_logit_terms(
    logits: Tensor, targets: Tensor, *, in_place: bool = False, **matching: Any
) -> EISLTerms:
    """:func:`eisl_from_log_probs` of (B, T, V) logits.

    Args:
        logits: as of :func:`eisl_loss`.
        targets: likewise.
        in_place: the backward may overwrite the logits (see :func:`token_log_probs`).
        matching: ``output_mask``, ``target_mask``, ``options``, ``generator``, ... of
            :func:`eisl_from_log_probs`.
    """
    if logits.dim() != 3 or not logits.is_floating_point():
        raise ValueError(
            f"logits must be a floating-point tensor of shape (B, T, V), "
            f"not {logits.dtype} of shape {tuple(logits.shape)}"
        )

    def log_probs_of(targets: Tensor, used: Tensor) -> Tensor:
        return token_log_probs(logits, targets, used, in_place)

    return _terms(log_probs_of, logits, logits.size(2), targets, **matching)


def eisl_log_prob_terms(log_probs: Tensor, targets: Tensor, **matching: Any) -> EISLTerms:
    """:func:`eisl_logit_terms` of (B, T, V) log-probabilities in nats, taken as they are."""

    def log_probs_of(targets: Tensor, used: Tensor) -> Tensor:
        index = targets.unsqueeze(1).expand(-1, log_probs.size(1), -1)
        return log_probs.gather(2, index).masked_fill(~used.unsqueeze(2), 0.0)

    return _terms(log_probs_of, log_probs, log_probs.size(2), targets, **matching)


def eisl_feature_terms(
    features: Tensor, weight: Tensor, bias: Optional[Tensor], targets: Tensor, **matching: Any
) -> EISLTerms:
    """:func:`eisl_logit_terms` of the logits ``features @ weight.T + bias``, which are never
    built; arguments as :func:`feature_log_probs`."""

    def log_probs_of(targets: Tensor, used: Tensor) -> Tensor:
        return feature_log_probs(features, weight, targets, used, bias)

    return _terms(log_probs_of, features, weight.size(0), targets, **matching)


def _terms(
    log_probs_of: Callable[[Tensor, Tensor], Tensor],
    outputs: Tensor,
    vocabulary: int,
    targets: Tensor,
    *,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    **matching: Any,
) -> EISLTerms:
    """Checks the arguments; ``log_probs_of(targets, output_mask)`` is (B, T, S), and (B, T) are
    the first sizes of ``outputs``."""
    batch, positions = outputs.shape[:2]
    output_mask = check_mask("output_mask", output_mask, (batch, positions), outputs.device)
    targets, target_mask = checked_ids("targets", targets, target_mask, batch, vocabulary)
    with torch.autocast(outputs.device.type, enabled=False):
        log_probs = log_probs_of(targets, output_mask)
    matching.update(output_mask=output_mask, target_mask=target_mask)
    return eisl_from_log_probs(log_probs, targets, **matching)


def _not_ignored(targets: Tensor, target_mask: Optional[Tensor], ignore_index: int) -> Tensor:
    """(B, S) bool, the real tokens that are not ``ignore_index``."""
    real = targets.ne(ignore_index)
    if target_mask is None:
        return real
    return check_mask("target_mask", target_mask, tuple(targets.shape), targets.device) & real


def eisl_loss(
    logits: Tensor,
    targets: Tensor,
    *,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    ngrams: Sequence[int] = (2, 3, 4),
    weights: Optional[Sequence[float]] = None,
    selection: str = "gumbel",
    temperature: float = 1.0,
    selection_on: str = "log_prob",
    floor: float = -20.0,
    normalize: bool = True,
    reduction: str = "mean",
    word_starts: Optional[Tensor] = None,
    ngram_weights: Optional[NGramWeights] = None,
    generator: Seeds = None,
    ignore_index: int = IGNORE_INDEX,
) -> Tensor:
    r"""Edit-Invariant Sequence Loss: each target n-gram against all output positions.

    .. math::
        L = \sum_n w_n \frac{1}{S-n+1} \sum_s - \sum_t q_n[t, s] \log g_n[t, s], \qquad
        \log g_n[t, s] = \frac{1}{n} \sum_{j<n} \log p_{t+j}(y^*_{s+j})

    with q_n the softmax over positions t of log g_n plus Gumbel noise (Eq. 4, 6
    and 7; the factor 1/n is the authors' code's, see ``normalize``).

    Args:
        logits: (B, T, V) unnormalised scores of the candidate's T positions, any
            floating dtype; half precision is computed in float32.
        targets: (B, S) int64 token ids, EOS included; S need not equal T.
        output_mask: (B, T) bool, True for real positions; all, if None.
        target_mask: (B, S) bool, True for real tokens; all, if None. Padding ids
            may be anything.
        ngrams: the orders n; 0 means the target's length, -1 one less, and so on.
            An order that does not fit into a sentence is dropped there (see
            :func:`fairseq_eisl.losses.ngrams.resolve_orders`).
        weights: one for each order; equal ones that sum to 1, if None.
        selection: ``gumbel``, ``softmax`` (no noise), ``uniform``, ``hard``, or ``sinkhorn``
            (softmax whose positions serve one n-gram each; equal ones count as one). Or ``count``,
            which chooses none: minus the logarithm of how often an n-gram is expected in the
            output, clipped at how often the target has it.
        temperature: of the selection's softmax.
        selection_on: ``log_prob`` or ``prob``: the logits of the selection are
            log g or g.
        floor: log-probabilities (nats) below it are raised to it, and get no gradient.
        normalize: divide an n-gram's log-probability by n, so that orders compare.
        reduction: ``mean`` or ``sum`` over sentences, or ``none`` for (B,).
        word_starts: (B, S) bool, True for target tokens that begin a word: n-grams that tear a
            word in pieces do not count (see :func:`fairseq_eisl.losses.ngrams.whole_words`).
        ngram_weights: how much each n-gram counts in the mean over them, as
            :class:`CleanTextWeights` finds it, say; all alike, if None.
        generator: source of the Gumbel noise: a ``torch.Generator``, or int64 seeds
            (B,), one a sentence, which make a sentence's noise independent of the
            batch it stands in.
        ignore_index: targets with this id are no tokens, as in torch's losses; no n-gram
            reaches across them. With a ``target_mask``, a token must be real for both.

    Returns:
        The loss in nats (per token if ``normalize``): a scalar, or (B,). float32
        for half-precision logits, else their dtype. A sentence without tokens
        contributes a zero that is attached to the graph.

    Raises:
        ValueError: wrong shapes, ids out of range, or unknown options.

    With as many outputs as targets and n = S this is the cross entropy:

    >>> logits = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
    >>> target = torch.tensor([[0, 1]])
    >>> round(eisl_loss(logits, target, ngrams=(0,)).item(), 4)
    0.2201
    >>> round(nn.functional.cross_entropy(logits[0], target[0]).item(), 4)
    0.2201
    """
    check_reduction(reduction)
    options = EISLOptions(ngrams, weights, selection, temperature, selection_on, floor, normalize)
    given: Dict[str, Any] = {"output_mask": output_mask, "word_starts": word_starts}
    given.update(ngram_weights=ngram_weights, options=options, generator=generator)
    given["target_mask"] = _not_ignored(targets, target_mask, ignore_index)
    terms = eisl_logit_terms(logits, targets, **given)
    return reduce_sentences(terms.total(), reduction)


class EISLLoss(nn.Module):
    """:func:`eisl_loss` as a module, with the options of :class:`EISLOptions`.

    In evaluation mode ``gumbel`` becomes ``softmax``: the same without noise, so
    that a validation loss is repeatable.

    >>> loss = EISLLoss(ngrams=(1, 2), weights=(0.8, 0.2)).eval()
    >>> round(loss(torch.zeros(1, 4, 2), torch.tensor([[0, 1, 1]])).item(), 4)
    0.6931
    """

    def __init__(
        self,
        *options: Any,
        reduction: str = "mean",
        ignore_index: int = IGNORE_INDEX,
        **named_options: Any,
    ):
        super().__init__()
        if len(options) > len(fields(EISLOptions)):  # as the last of the positional ones
            options, reduction = options[:-1], options[-1]
        check_reduction(reduction)
        self.options = EISLOptions(*options, **named_options)
        self.reduction, self.ignore_index = reduction, ignore_index

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        output_mask: Optional[Tensor] = None,
        target_mask: Optional[Tensor] = None,
        generator: Seeds = None,
        word_starts: Optional[Tensor] = None,
        ngram_weights: Optional[NGramWeights] = None,
    ) -> Tensor:
        """Shapes and result as :func:`eisl_loss`."""
        options = self.options if self.training else self.options.without_noise()
        given: Dict[str, Any] = {"output_mask": output_mask, "word_starts": word_starts}
        given.update(ngram_weights=ngram_weights, options=options, generator=generator)
        given["target_mask"] = _not_ignored(targets, target_mask, self.ignore_index)
        terms = eisl_logit_terms(logits, targets, **given)
        return reduce_sentences(terms.total(), self.reduction)

    def extra_repr(self) -> str:
        return f"{self.options}, reduction={self.reduction!r}, ignore_index={self.ignore_index}"
