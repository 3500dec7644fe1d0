r"""EISL over directed acyclic decoders (Huang et al., ICML 2022, arXiv 2205.07459).

Slots are vertices 1..L; a path begins at the first, ends at the last, and says one token at each
vertex that it passes. With E_tu the probability to go from t to u > t, the path passes u with
probability a_u, and says the target's n-gram at s from t on with probability c_n:

.. math::
    a_1 = 1, \quad a_u = \sum_{t<u} a_t E_{tu}, \qquad
    h_1[t, s] = P_t(y_s), \quad h_n[t, s] = P_t(y_s) \sum_{u>t} E_{tu} h_{n-1}[u, s+1], \qquad
    c_n[t, s] = a_t h_n[t, s].

a is one solve with a unit triangular matrix, each order one product of E. Counts of n-grams over
such a graph are those of Ma et al. (ICLR 2023, arXiv 2303.06662).
"""

from typing import Any, Iterator, Sequence

import torch
from torch import Tensor

from ..eisl_options import DEFAULTS, EISLOptions
from ..eisl_terms import EISLTerms, NGramLogProbs
from ..ngrams import checked_ids, window_mask
from ..token_log_probs import token_log_probs
from .dag_likelihood import check_links, transitions_of
from .scaled import checked, floored_log, scaled, working
from .terms import terms_over_sentences


class _Passing(torch.autograd.Function):
    """The solution of ``(I - E^T) a = e_1``, whose gradient is a product of two vectors."""

    @staticmethod
    def forward(ctx, transitions: Tensor):
        first = torch.zeros_like(transitions[:, :, :1])
        first[:, :1] = 1.0
        passed = torch.linalg.solve_triangular(
            -transitions.transpose(1, 2), first, upper=False, unitriangular=True
        )
        ctx.save_for_backward(transitions, passed)
        return passed

    @staticmethod
    def backward(ctx, grad: Tensor):
        transitions, passed = ctx.saved_tensors
        behind = torch.linalg.solve_triangular(-transitions, grad, upper=True, unitriangular=True)
        return torch.bmm(passed, behind.transpose(1, 2))


def _passing(transitions: Tensor) -> Tensor:
    return _Passing.apply(transitions).squeeze(2)


def passing_probabilities(links: Tensor, output_mask: Tensor) -> Tensor:
    """(B, L) how likely a path passes each vertex. Their sum is the expected length.

    Args:
        links: (B, L, L) log-probabilities in nats of transitions from vertex t to u; what lies on
            or below the diagonal, or is of vertices that are not real, is not looked at.
        output_mask: (B, L) bool, True for real vertices, which come first.

    Raises:
        ValueError: wrong shapes.

    >>> links = torch.tensor([[[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]]]).log()
    >>> passing_probabilities(links, torch.ones(1, 3).bool()).tolist()
    [[1.0, 0.5, 1.0]]
    """
    check_links(links, output_mask)
    return _passing(transitions_of(links, output_mask))


def dag_ngram_log_probs(
    log_probs: Tensor,
    links: Tensor,
    targets: Tensor,
    *,
    output_mask: Tensor,
    orders: Sequence[int],
) -> Iterator[NGramLogProbs]:
    """Log-probabilities of the target's n-grams from every vertex on.

    Args:
        log_probs: (B, L, S) log-probability in nats of ``targets[b, s]`` at vertex t, float32 or
            float64. Vertices that are not real may hold anything finite.
        links: (B, L, L) as of :func:`passing_probabilities`; minus infinity is allowed.
        targets: (B, S) int64.
        output_mask: (B, L) bool, True for real vertices, which come first.
        orders: n, rising. Those above 4 are computed in float64.

    Yields:
        For each order that fits (B, L - n + 1, S - n + 1) log-probabilities; what is impossible is
        a large negative number. The sum of their exponentials over vertices is the expected number
        of the n-gram in the output. Work grows as n L L S.

    Raises:
        ValueError: wrong shapes.

    >>> links = torch.tensor([[[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]]]).log()
    >>> log_probs = torch.full((1, 3, 2), 0.5).log()
    >>> mask = torch.ones(1, 3).bool()
    >>> found = dag_ngram_log_probs(
    ...     log_probs, links, torch.tensor([[7, 8]]), output_mask=mask, orders=[2])
    >>> next(found).log_probs.exp().squeeze(2).tolist()
    [[0.25, 0.125]]
    """
    _, slots, length = checked(log_probs, targets, output_mask, output_mask.new_ones(targets.shape))
    check_links(links, output_mask)
    orders = [n for n in orders if n <= min(slots, length)]
    if not orders:
        return
    log_probs = working(log_probs, orders)
    transitions = transitions_of(links.to(log_probs.dtype), output_mask)
    passed = floored_log(_passing(transitions)).unsqueeze(2)
    if 1 in orders:
        yield NGramLogProbs(1, log_probs + passed, output_mask)
    parts = scaled(log_probs, output_mask)
    said = parts.probs
    for n in range(2, orders[-1] + 1):
        said = parts.probs[:, :, : length - n + 1] * torch.bmm(transitions, said[:, :, 1:])
        if n in orders:
            first = slice(0, slots - n + 1)
            found = parts.log_of(said[:, first], n) + passed[:, first]
            yield NGramLogProbs(n, found, window_mask(output_mask, n))


def eisl_dag_terms(
    logits: Tensor,
    links: Tensor,
    targets: Tensor,
    *,
    output_mask: Tensor,
    target_mask: Tensor,
    options: EISLOptions = DEFAULTS,
    in_place: bool = False,
    **matching: Any,
) -> EISLTerms:
    """EISL of a directed acyclic decoder.

    Args:
        logits: (B, L, V) of the vertices, any floating dtype.
        links: (B, L, L) as of :func:`passing_probabilities`.
        targets: (B, S) int64.
        output_mask: (B, L) bool, True for real vertices, which come first.
        target_mask: (B, S) bool, True for real tokens.
        options: of the loss.
        in_place: the backward may overwrite the logits.
        matching: ``word_starts``, ``ngram_weights``, ``generator`` of
            :func:`fairseq_eisl.losses.eisl_from_ngram_log_probs`.

    Raises:
        ValueError: wrong shapes, or ids out of range.

    Two vertices, both certain to be passed, two words that are alike everywhere:

    >>> mask = torch.tensor([[True, True]])
    >>> options = EISLOptions((2,), selection="softmax", normalize=False)
    >>> terms = eisl_dag_terms(torch.zeros(1, 2, 2), torch.zeros(1, 2, 2), torch.tensor([[0, 1]]),
    ...                        output_mask=mask, target_mask=mask, options=options)
    >>> round(terms.total().exp().item(), 4)
    4.0
    """
    targets, target_mask = checked_ids("targets", targets, target_mask, len(logits), logits.size(2))
    with torch.autocast(logits.device.type, enabled=False):
        log_probs = token_log_probs(logits, targets, output_mask, in_place)
    masks = {"output_mask": output_mask, "target_mask": target_mask}
    return eisl_dag_log_prob_terms(log_probs, links, targets, **masks, options=options, **matching)


def eisl_dag_log_prob_terms(
    log_probs: Tensor,
    links: Tensor,
    targets: Tensor,
    *,
    output_mask: Tensor,
    target_mask: Tensor,
    options: EISLOptions = DEFAULTS,
    **matching: Any,
) -> EISLTerms:
    """EISL of a directed acyclic decoder, from log-probabilities of the target's tokens.

    Args:
        log_probs: (B, L, S) log-probability in nats of ``targets[b, s]`` at vertex t, float32 or
            float64, as :func:`fairseq_eisl.losses.token_log_probs` gives them. Vertices that are
            not real may hold anything finite.

    The others are those of :func:`eisl_dag_terms`.

    Returns:
        Terms whose graph keeps the inputs alone; the backward computes the rest again, some
        sentences at a time.

    Raises:
        ValueError: wrong shapes.

    >>> mask = torch.tensor([[True, True]])
    >>> options = EISLOptions((2,), selection="softmax", normalize=False)
    >>> terms = eisl_dag_log_prob_terms(
    ...     torch.full((1, 2, 2), 0.5).log(), torch.zeros(1, 2, 2), torch.tensor([[0, 1]]),
    ...     output_mask=mask, target_mask=mask, options=options)
    >>> round(terms.total().exp().item(), 4)
    4.0
    """
    checked(log_probs, targets, output_mask, target_mask)
    check_links(links, output_mask)
    return terms_over_sentences(
        dag_ngram_log_probs,
        [log_probs, links],
        targets,
        output_mask=output_mask,
        target_mask=target_mask,
        options=options,
        **matching,
    )


def dag_expected_ngrams(links: Tensor, output_mask: Tensor, n: int = 1) -> Tensor:
    """(B,) the expected number of n-grams in the output; with ``n = 1``, its expected length.

    Shapes as of :func:`passing_probabilities`.

    >>> links = torch.tensor([[[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]]]).log()
    >>> mask = torch.ones(1, 3).bool()
    >>> [dag_expected_ngrams(links, mask, n).item() for n in (1, 2, 3)]
    [2.5, 1.5, 0.5]
    """
    check_links(links, output_mask)
    transitions = transitions_of(links, output_mask)
    behind = output_mask.to(links.dtype).unsqueeze(2)
    for _ in range(n - 1):
        behind = torch.bmm(transitions, behind)
    return (_passing(transitions) * behind.squeeze(2)).sum(1)
