"""The likelihood of directed acyclic decoders (Huang et al., ICML 2022), and the most likely path.

The sum over all paths with a vertex for each target token, token by token, is a product of a vector
with the matrix of transitions each time. As plain numbers that is a matrix product and nothing has
to be kept but the vectors; in the log domain it would be a ``logsumexp`` of slots x slots a token.
Vectors are divided by their largest number each time, and float64 holds what is left.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ..worker_threads import differentiable_once

_LOW = -1e30
"""Log-probability of what is impossible: finite, so that no gradient is NaN."""
_TINY = 1e-300


class _Transitions(torch.autograd.Function):
    """The exponential above the diagonal, of which one matrix is kept."""

    @staticmethod
    def forward(ctx, links: Tensor, real: Tensor):
        # Without what is below before the exponential, too: of large negative numbers it is slow.
        probs = links.triu(1).exp_().triu_(1).masked_fill_(~real, 0.0)
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    def backward(ctx, grad: Tensor):
        (probs,) = ctx.saved_tensors
        return grad * probs, None


def transitions_of(links: Tensor, output_mask: Tensor) -> Tensor:
    """(B, L, L) log-probabilities to probabilities; only those forward, between real vertices."""
    return _Transitions.apply(links, output_mask.unsqueeze(2) & output_mask.unsqueeze(1))


def check_links(links: Tensor, output_mask: Tensor):
    """ValueError where there is not one number for each two vertices."""
    batch, slots = output_mask.shape
    if tuple(links.shape) != (batch, slots, slots):
        raise ValueError(
            f"links must have shape (B, L, L) = {(batch, slots, slots)}, not {tuple(links.shape)}"
        )


def dag_log_likelihood(
    log_probs: Tensor, links: Tensor, *, output_mask: Tensor, target_mask: Tensor
) -> Tensor:
    """(B,) log-likelihood of each target in nats: the sum over all paths with a vertex for each of
    its tokens.

    Args:
        log_probs: (B, L, S) log-probability in nats of target token s at vertex t, float32 or
            float64.
        links: (B, L, L) log-probabilities in nats of transitions from vertex t to u; what lies on
            or below the diagonal, or is of vertices that are not real, is not looked at. Minus
            infinity is allowed.
        output_mask: (B, L) bool; real vertices come first.
        target_mask: (B, S) bool; real tokens come first.

    Returns:
        Minus infinity, without gradient, where there is no such path; a zero of the graph for a
        target without tokens. Work grows as L L S, memory as L (L + S). A transition with a
        probability below e^-690 counts as impossible, and so do, of all beginnings of a path with
        as many tokens from which there is room for the rest, those that are e^690 times less likely
        than the likeliest. Differentiable once.

    Raises:
        ValueError: wrong shape of ``links``.

    >>> links = torch.tensor([[[0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]]]).log()
    >>> log_probs, mask = torch.full((1, 3, 2), 0.5).log(), torch.ones(1, 3).bool()
    >>> round(dag_log_likelihood(log_probs, links, output_mask=mask,
    ...                          target_mask=mask[:, :2]).exp().item(), 6)
    0.125
    """
    check_links(links, output_mask)
    zero = log_probs[:, :0].sum((1, 2)) + links[:, :0].sum((1, 2)).to(log_probs.dtype)
    if log_probs.size(1) == 0 or log_probs.size(2) == 0:
        return torch.where(target_mask.any(1), -torch.inf, zero)
    total = _LogLikelihood.apply(log_probs, links, output_mask, target_mask)
    return torch.where(target_mask.any(1), total, zero)


class _LogLikelihood(torch.autograd.Function):
    @staticmethod
    def forward(ctx, log_probs: Tensor, links: Tensor, output_mask: Tensor, target_mask: Tensor):
        go = transitions_of(links.detach().double(), output_mask)
        said, largest = _said(log_probs.detach(), output_mask, target_mask)
        last = (output_mask.sum(1, keepdim=True) - 1).clamp(min=0)
        # paths[b, s, u]: of all beginnings with s + 1 tokens those that end at u, over the largest.
        paths = torch.zeros_like(said)
        here = torch.zeros_like(said[:, 0])
        here[:, 0] = said[:, 0, 0]
        scale = here.amax(1).clamp(min=_TINY)
        paths[:, 0] = here = here / scale.unsqueeze(1)
        total = scale.log() + largest[:, 0]
        for s in range(1, said.size(1)):
            onward = torch.bmm(here.unsqueeze(1), go).squeeze(1) * said[:, s]
            scale = onward.amax(1).clamp(min=_TINY)
            real = target_mask[:, s]
            here = torch.where(real.unsqueeze(1), onward / scale.unsqueeze(1), here)
            total = total + torch.where(real, scale.log() + largest[:, s], 0.0)
            paths[:, s] = here
        ended = here.gather(1, last).squeeze(1)
        total = (total + ended.log()).masked_fill(~output_mask.any(1), -torch.inf)
        # What is as unlikely as an impossible word is impossible; a NaN stays one.
        never = total <= _LOW / 2
        ctx.save_for_backward(log_probs, links, go, said, paths, last, target_mask, never)
        return total.masked_fill(never, -torch.inf).to(log_probs.dtype)

    @staticmethod
    def backward(ctx, grad: Tensor):
        log_probs, links, go, said, paths, last, target_mask, never = ctx.saved_tensors
        # How likely the rest of the target is from each vertex on, over the largest; every path
        # says each token at one vertex, and goes to it from one, which is what sums are divided by.
        rest = torch.zeros_like(said[:, 0]).scatter_(1, last, 1.0)
        for_said, onward = torch.zeros_like(said), torch.zeros_like(said)
        back = go.transpose(1, 2)
        for s in range(said.size(1) - 1, 0, -1):
            real = target_mask[:, s].unsqueeze(1)
            for_said[:, s] = torch.where(real, _shares(paths[:, s] * rest), 0.0)
            begun = rest * said[:, s]
            before = torch.bmm(begun.unsqueeze(1), back).squeeze(1)
            whole = (paths[:, s - 1] * before).sum(1, keepdim=True)
            onward[:, s] = torch.where(real & (whole > _TINY), begun / whole, 0.0)
            before = before / before.amax(1, keepdim=True).clamp(min=_TINY)
            rest = torch.where(real, before, rest)
        for_said[:, 0] = _shares(paths[:, 0] * rest)
        for_links = torch.bmm(paths[:, :-1].transpose(1, 2), onward[:, 1:]).mul_(go)
        grad = grad.double().masked_fill(never, 0.0).view(-1, 1, 1)
        first = (for_said.transpose(1, 2) * grad).to(log_probs.dtype)
        second = (for_links * grad).to(links.dtype)
        name, inputs = "dag_log_likelihood", (log_probs, links)
        found = [differentiable_once(name, x, *inputs) for x in (first, second)]
        return (*found, None, None)


def _said(log_probs: Tensor, output_mask: Tensor, target_mask: Tensor):
    """(B, S, L) float64 probabilities of target tokens at the vertices that may say them, over the
    largest one; (B, S) the logarithm of that.

    A vertex with fewer vertices behind it than tokens to come says nothing: what ends there would
    make the others small.
    """
    vertex = torch.arange(log_probs.size(1), device=log_probs.device)
    behind = output_mask.sum(1, keepdim=True) - 1 - vertex  # (B, L), negative where not real
    to_come = target_mask.sum(1, keepdim=True) - target_mask.cumsum(1)  # (B, S)
    may = (behind.unsqueeze(1) >= to_come.unsqueeze(2)) & output_mask.unsqueeze(1)
    values = log_probs.transpose(1, 2).double().clamp(min=_LOW).masked_fill(~may, 2 * _LOW)
    largest = values.amax(2)
    probs = (values - largest.unsqueeze(2)).exp().masked_fill_(~may, 0.0)
    return probs, largest.clamp(min=_LOW)


def _shares(values: Tensor) -> Tensor:
    """(B, L) numbers over their sum; zeros where that is zero."""
    return values / values.sum(1, keepdim=True).clamp(min=_TINY)


class _Graph(NamedTuple):
    """What the programmes over paths need, without anything infinite."""

    said: Tensor
    """(B, L, S) log-probabilities of tokens at vertices."""
    links: Tensor
    """(B, L, L) of transitions."""
    last: Tensor
    """(B, 1) the last real vertex; 0 where there is none."""


def _graph(log_probs: Tensor, links: Tensor, output_mask: Tensor) -> _Graph:
    check_links(links, output_mask)
    both = output_mask.unsqueeze(2) & output_mask.unsqueeze(1)
    forward = torch.ones_like(both).triu(1)
    links = links.to(log_probs.dtype).clamp(min=_LOW).masked_fill(~(both & forward), _LOW)
    last = (output_mask.sum(1, keepdim=True) - 1).clamp(min=0)
    return _Graph(log_probs.clamp(min=_LOW), links, last)


@torch.no_grad()
def dag_best_alignment(
    log_probs: Tensor, links: Tensor, *, output_mask: Tensor, target_mask: Tensor
) -> Tensor:
    """(B, S) int64: the vertex that says each target token on the most likely path; -1 for what is
    no token, and everywhere where there is no such path.

    Shapes as of :func:`dag_log_likelihood`.
    """
    batch, slots, length = log_probs.shape
    missing = torch.full((batch, length), -1, dtype=torch.long, device=log_probs.device)
    if slots == 0 or length == 0:
        return missing
    graph = _graph(log_probs, links, output_mask)
    best = torch.full_like(graph.said[:, :, 0], _LOW)
    best[:, 0] = graph.said[:, 0, 0]
    moves = []
    for s in range(1, length):
        value, move = (best.unsqueeze(2) + graph.links).max(1)
        real = target_mask[:, s : s + 1]
        best = torch.where(real, value + graph.said[:, :, s], best)
        moves.append(move)
    vertex, found = graph.last, [graph.last]
    possible = best.gather(1, vertex) > _LOW / 2
    for s in reversed(range(1, length)):
        vertex = torch.where(target_mask[:, s : s + 1], moves[s - 1].gather(1, vertex), vertex)
        found.append(vertex)
    real = target_mask & possible & output_mask.any(1, keepdim=True)
    return torch.where(real, torch.cat(found[::-1], 1), missing)
