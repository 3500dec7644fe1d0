"""The Edit-Invariant Sequence Loss (Liu et al., NAACL 2022, arXiv 2106.15078)."""

import math
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from . import random_numbers
from .feature_log_probs import feature_log_probs
from .masking import (
    check_mask,
    checked_ids,
    copies,
    longest_run,
    resolve_orders,
    widen,
    window_mask,
)
from .position_selection import SELECTION_ON, SELECTIONS, select_positions
from .random_numbers import Seeds
from .token_log_probs import token_log_probs
from .worker_threads import on_one_thread

REDUCTIONS = ("mean", "sum", "none")


def _finite(value) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def check_reduction(reduction: str):
    """Raise ValueError unless it is one of ``REDUCTIONS``."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r} is unknown; choose from {', '.join(REDUCTIONS)}")


@dataclass(frozen=True)
class EISLOptions:
    """The options of :func:`eisl_loss`, checked once."""

    ngrams: Sequence[int] = (2, 3, 4)
    weights: Optional[Sequence[float]] = None
    selection: str = "gumbel"
    temperature: float = 1.0
    selection_on: str = "log_prob"
    floor: float = -20.0
    normalize: bool = True

    def __post_init__(self):
        ngrams = tuple(self.ngrams) if isinstance(self.ngrams, Iterable) else ()
        if not ngrams or not all(type(n) is int for n in ngrams):
            raise ValueError(f"ngrams must be one or more integers, not {self.ngrams!r}")
        weights = (1.0 / len(ngrams),) * len(ngrams) if self.weights is None else self.weights
        weights = tuple(weights) if isinstance(weights, Iterable) else (weights,)
        if len(weights) != len(ngrams):
            raise ValueError(
                f"weights must have one number for each of the {len(ngrams)} ngrams {ngrams}, "
                f"not {len(weights)}: {weights}"
            )
        if not all(_finite(w) and w >= 0 for w in weights) or not sum(weights) > 0:
            raise ValueError(
                f"weights must be finite numbers, not negative and not all 0: {weights}"
            )
        for name, value, choices in (
            ("selection", self.selection, SELECTIONS),
            ("selection_on", self.selection_on, SELECTION_ON),
        ):
            if value not in choices:
                raise ValueError(f"{name}={value!r} is unknown; choose from {', '.join(choices)}")
        if not (_finite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be a number above 0, not {self.temperature!r}")
        if not (_finite(self.floor) and self.floor < 0):
            raise ValueError(f"floor must be a finite log-probability below 0, not {self.floor!r}")
        object.__setattr__(self, "ngrams", ngrams)
        object.__setattr__(self, "weights", weights)

    @property
    def order_weights(self) -> Tuple[float, ...]:
        """One weight for each order, equal ones where none were given."""
        return tuple(self.weights or ())

    def without_noise(self) -> "EISLOptions":
        """The same with ``softmax`` in place of ``gumbel``: a repeatable value."""
        if self.selection != "gumbel":
            return self
        return EISLOptions(**{**self.__dict__, "selection": "softmax"})

    def possible_orders(self, room: int) -> Sequence[int]:
        """The orders that some sentence of at most ``room`` tokens may use."""
        used = {n for n, weight in zip(self.ngrams, self.order_weights) if weight > 0}
        if min(used) < 1:  # relative to the length: any order
            return range(1, room + 1)
        fallbacks = set(range(1, min(used)))
        return sorted(n for n in fallbacks | used if n <= room)


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


def eisl_terms(
    order_sums: Iterable[Tuple[int, Tensor]],
    attached_zero: Tensor,
    output_mask: Tensor,
    target_mask: Tensor,
    options: EISLOptions,
    seeds: Optional[Tensor],
    learned: Optional[Tensor] = None,
    targets: Optional[Tensor] = None,
) -> EISLTerms:
    """EISL from the log-probabilities of n-grams.

    Args:
        order_sums: pairs (n, sums), n rising; ``sums[b, t, s]`` is the log-probability
            in nats of the target n-gram at s placed at candidate position t,
            shape (B, T - n + 1, S - n + 1).
        attached_zero: (B,) zeros that belong to the graph, the loss of empty sentences.
        output_mask, target_mask: (B, T) and (B, S) bool.
        seeds: (B,) int64 of the Gumbel noise; needed for ``selection="gumbel"``.
        learned: (B, S) bool; only n-grams that hold at least one such target token
            count. All tokens, if None.
        targets: (B, S) int64, for ``selection="sinkhorn"``, to which equal n-grams are one.
    """
    dtype = attached_zero.dtype
    orders, weights = resolve_orders(
        options.ngrams, options.order_weights, longest_run(output_mask), longest_run(target_mask)
    )
    losses = attached_zero.unsqueeze(1).expand(orders.shape)
    entropies = torch.zeros_like(losses)
    for n, sums in order_sums:
        used = orders.eq(n) & weights.gt(0)
        if not used.is_cuda and not used.any():
            continue  # on CUDA, looking would cost more than the empty work
        at, grams = window_mask(output_mask, n), window_mask(target_mask, n)
        if learned is not None:
            grams = grams & ~window_mask(~learned, n)
        real = at.unsqueeze(2) & grams.unsqueeze(1)
        scores = (sums / n if options.normalize else sums).masked_fill(~real, 0.0)
        noise = None
        if options.selection == "gumbel":
            assert seeds is not None
            noise = random_numbers.gumbel(random_numbers.fold(seeds, n), *scores.shape[1:])
        often = None
        if options.selection == "sinkhorn":
            assert targets is not None
            often = copies(targets, grams, n)
        q, entropy = select_positions(
            *(scores, at, options.selection, options.temperature, options.selection_on),
            *(noise, often),
        )
        count = grams.sum(1).clamp(min=1)
        loss = -(q * scores).sum((1, 2)) / count
        entropy = entropy.masked_fill(~grams, 0.0).sum(1) / count
        losses = losses + torch.where(used, loss.unsqueeze(1), 0.0)
        entropies = entropies + torch.where(used, entropy.unsqueeze(1), 0.0)
    return EISLTerms(losses, weights.to(dtype), entropies)


def cost_sums(cost: Tensor, options: EISLOptions) -> Iterator[Tuple[int, Tensor]]:
    """All n-gram sums of a (B, T, S) cost tensor that the options may need."""
    orders = options.possible_orders(min(cost.size(1), cost.size(2)))
    sums = cost
    for n in range(1, max(orders, default=0) + 1):
        sums = widen(sums, cost, n) if n > 1 else cost
        if n in orders:
            yield n, sums


def eisl_logit_terms(
    logits: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor],
    target_mask: Optional[Tensor],
    options: EISLOptions,
    generator: Seeds = None,
    in_place: bool = False,
) -> EISLTerms:
    """:func:`eisl_terms` of logits and targets; arguments as :func:`eisl_loss`.

    ``in_place``: the backward may overwrite the logits (see :func:`token_log_probs`).
    """
    if logits.dim() != 3 or not logits.is_floating_point():
        raise ValueError(
            f"logits must be a floating-point tensor of shape (B, T, V), "
            f"not {logits.dtype} of shape {tuple(logits.shape)}"
        )

    def cost(used: Tensor, ids: Tensor) -> Tensor:
        return token_log_probs(logits, ids, used, in_place)

    batch, positions, vocabulary = logits.shape
    shape = (batch, positions, vocabulary)
    return _cost_terms(cost, shape, targets, output_mask, target_mask, options, generator, logits)


def eisl_log_prob_terms(
    log_probs: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor],
    target_mask: Optional[Tensor],
    options: EISLOptions,
    generator: Seeds = None,
) -> EISLTerms:
    """:func:`eisl_logit_terms` of (B, T, V) log-probabilities in nats, taken as they are."""

    def cost(used: Tensor, ids: Tensor) -> Tensor:
        index = ids.unsqueeze(1).expand(-1, log_probs.size(1), -1)
        return log_probs.gather(2, index).masked_fill(~used.unsqueeze(2), 0.0)

    batch, positions, vocabulary = log_probs.shape
    shape = (batch, positions, vocabulary)
    return _cost_terms(
        cost, shape, targets, output_mask, target_mask, options, generator, log_probs
    )


def eisl_feature_terms(
    features: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    targets: Tensor,
    output_mask: Optional[Tensor],
    target_mask: Optional[Tensor],
    options: EISLOptions,
    generator: Seeds = None,
) -> EISLTerms:
    """:func:`eisl_logit_terms` of the logits ``features @ weight.T + bias``, which are never
    built; arguments as :func:`feature_log_probs` and :func:`eisl_loss`."""

    def cost(used: Tensor, ids: Tensor) -> Tensor:
        return feature_log_probs(features, weight, ids, used, bias)

    shape = (features.size(0), features.size(1), weight.size(0))
    return _cost_terms(cost, shape, targets, output_mask, target_mask, options, generator, features)


def _cost_terms(
    cost_of: Callable[[Tensor, Tensor], Tensor],
    shape: Tuple[int, int, int],
    targets: Tensor,
    output_mask: Optional[Tensor],
    target_mask: Optional[Tensor],
    options: EISLOptions,
    generator: Seeds,
    outputs: Tensor,
) -> EISLTerms:
    """The terms, where ``cost_of(output_mask, targets)`` is (B, T, S); shape: (B, T, V)."""
    batch, positions, vocabulary = shape
    device = outputs.device
    output_mask = check_mask("output_mask", output_mask, (batch, positions), device)
    targets, target_mask = checked_ids("targets", targets, target_mask, batch, vocabulary)
    seeds = None
    if options.selection == "gumbel":
        seeds = random_numbers.sentence_seeds(generator, batch, device)
    with torch.autocast(device.type, enabled=False):

        def terms(cost: Tensor) -> EISLTerms:
            cost = cost.clamp(min=options.floor)
            zero = cost[:, :0].sum((1, 2))
            sums = cost_sums(cost, options)
            masks = output_mask, target_mask
            return eisl_terms(sums, zero, *masks, options, seeds, targets=targets)

        return EISLTerms(*on_one_thread(terms, cost_of(output_mask, targets)))


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
    generator: Seeds = None,
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
            :func:`fairseq_eisl.losses.masking.resolve_orders`).
        weights: one for each order; equal ones that sum to 1, if None.
        selection: ``gumbel``, ``softmax`` (no noise), ``uniform``, ``hard``, or ``sinkhorn``
            (softmax whose positions serve one n-gram each; equal ones count as one).
        temperature: of the selection's softmax.
        selection_on: ``log_prob`` or ``prob``: the logits of the selection are
            log g or g.
        floor: log-probabilities (nats) below it are raised to it, and get no gradient.
        normalize: divide an n-gram's log-probability by n, so that orders compare.
        reduction: ``mean`` or ``sum`` over sentences, or ``none`` for (B,).
        generator: source of the Gumbel noise: a ``torch.Generator``, or int64 seeds
            (B,), one a sentence, which make a sentence's noise independent of the
            batch it stands in.

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
    terms = eisl_logit_terms(logits, targets, output_mask, target_mask, options, generator)
    return reduce_sentences(terms.total(), reduction)


def reduce_sentences(losses: Tensor, reduction: str) -> Tensor:
    """(B,) losses to their ``mean``, ``sum`` or ``none`` (themselves)."""
    if reduction == "none":
        return losses
    total = losses.sum()
    return total / max(1, losses.numel()) if reduction == "mean" else total


class EISLLoss(nn.Module):
    """:func:`eisl_loss` as a module, with the same options.

    In evaluation mode ``gumbel`` becomes ``softmax``: the same without noise, so
    that a validation loss is repeatable.

    >>> loss = EISLLoss(ngrams=(1, 2), weights=(0.8, 0.2)).eval()
    >>> round(loss(torch.zeros(1, 4, 2), torch.tensor([[0, 1, 1]])).item(), 4)
    0.6931
    """

    def __init__(
        self,
        ngrams: Sequence[int] = (2, 3, 4),
        weights: Optional[Sequence[float]] = None,
        selection: str = "gumbel",
        temperature: float = 1.0,
        selection_on: str = "log_prob",
        floor: float = -20.0,
        normalize: bool = True,
        reduction: str = "mean",
    ):
        super().__init__()
        check_reduction(reduction)
        self.options = EISLOptions(
            ngrams, weights, selection, temperature, selection_on, floor, normalize
        )
        self.reduction = reduction

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        output_mask: Optional[Tensor] = None,
        target_mask: Optional[Tensor] = None,
        generator: Seeds = None,
    ) -> Tensor:
        """Shapes and result as :func:`eisl_loss`."""
        options = self.options if self.training else self.options.without_noise()
        terms = eisl_logit_terms(logits, targets, output_mask, target_mask, options, generator)
        return reduce_sentences(terms.total(), self.reduction)

    def extra_repr(self) -> str:
        return f"{self.options}, reduction={self.reduction!r}"
