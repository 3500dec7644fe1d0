"""Log-probabilities of every target token at every output position.

``log_probs[b, t, s] = log softmax(logits[b, t])[targets[b, s]]`` is all that EISL and
its relatives need from the B x T x V logits. A ``log_softmax`` of them all
would be a second tensor of that size; here a block of rows at a time goes
through a small buffer, forward and backward, and nothing is kept but the logits.
"""

import threading
from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor
from torch.autograd.graph import Node

from .worker_threads import one_thread, refuse_second_derivative, spread

# Logits that a thread works on at a time: small enough for a CPU's cache, large enough that
# the loop costs nothing; of few logits a part, so that every thread gets some.
_CPU_BLOCK, _CPU_PARTS = 2**20, 16
_CUDA_BLOCK = 2**26


def _blocks(logits: Tensor) -> Iterator[Tuple[slice, slice]]:
    """Slices of sentences and positions, about one block's worth of logits each."""
    few = -(-logits.numel() // _CPU_PARTS)
    size = _CUDA_BLOCK if logits.is_cuda else min(_CPU_BLOCK, max(2**16, few))
    batch, positions, vocabulary = logits.shape
    rows = max(1, min(size // max(1, vocabulary), positions))
    sentences = max(1, size // max(1, positions * vocabulary))
    for start in range(0, batch, sentences):
        for first in range(0, positions, rows):
            yield slice(start, start + sentences), slice(first, first + rows)


class _Buffer(threading.local):
    """Memory of each thread that a block is computed in."""

    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype
        self.memory: Optional[Tensor] = None

    def like(self, block: Tensor) -> Tensor:
        if self.memory is None or len(self.memory) < block.numel():
            self.memory = block.new_empty(block.numel(), dtype=self.dtype)
        return self.memory[: block.numel()].view(block.shape)


class _TokenLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, used: Optional[Tensor], in_place: bool):
        buffer = _Buffer(torch.promote_types(logits.dtype, torch.float32))
        index = targets.unsqueeze(1).expand(-1, logits.size(1), -1)
        out = logits.new_empty(index.shape, dtype=buffer.dtype)

        def work(block):
            part = buffer.like(logits[block])
            torch.log_softmax(logits[block].to(part.dtype), dim=2, out=part)
            out[block] = part.gather(2, index[block])

        with one_thread(not logits.is_cuda) as threads:
            spread(work, list(_blocks(logits)), threads)
            if used is not None:
                out = out.masked_fill(~used.unsqueeze(2), 0.0)
        ctx.save_for_backward(logits, targets, used)
        ctx.in_place = in_place
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        logits, targets, used = ctx.saved_tensors  # an error if already overwritten
        return _Gradient.apply(logits, grad, targets, used, ctx.in_place), None, None, None


class _Gradient(torch.autograd.Function):
    """The backward. With ``create_graph`` it is part of the graph, whether or not the incoming
    gradient is, so that no second derivative goes missing without a word."""

    @staticmethod
    def forward(ctx, logits: Tensor, grad: Tensor, targets: Tensor, used, in_place: bool):
        cpu = not logits.is_cuda
        with torch.autocast(logits.device.type, enabled=False), one_thread(cpu) as threads:
            if used is not None:
                grad = grad.masked_fill(~used.unsqueeze(2), 0.0)
            row = -grad.sum(2, keepdim=True)
            # A token that the target holds twice gets the sum of both gradients. Summing
            # here, instead of scatter_add, keeps the result independent of thread order.
            same = targets.unsqueeze(2).eq(targets.unsqueeze(1)).to(grad.dtype)
            grad = torch.bmm(grad, same)
            index = targets.unsqueeze(1).expand(-1, logits.size(1), -1)
            out = logits.detach() if in_place else torch.empty_like(logits)
            buffer, direct = _Buffer(grad.dtype), out.dtype == grad.dtype

            def work(block):
                part = buffer.like(out[block]) if in_place or not direct else out[block]
                torch.softmax(logits[block].to(part.dtype), dim=2, out=part)
                result = torch.mul(part, row[block], out=out[block] if direct else part)
                picked = result.gather(2, index[block]) + grad[block]
                result.scatter_(2, index[block], picked)
                # Not even a NaN may pass from an unused position.
                if used is not None and not cpu:
                    result.masked_fill_(~used[block].unsqueeze(2), 0.0)
                if not direct:
                    out[block] = result

            spread(work, list(_blocks(logits)), threads)
            if used is not None and cpu:  # the unused rows alone: a GPU would wait to find them
                out[(~used).nonzero(as_tuple=True)] = 0.0
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        refuse_second_derivative("token_log_probs")


@torch.no_grad()
def best_tokens(logits: Tensor) -> Tuple[Tensor, Tensor]:
    """The most likely token at each output position; nothing of the size of the logits is made.

    Args:
        logits: (B, T, V), unnormalised, any floating dtype.

    Returns:
        (B, T) its log-probability in nats, float32 for half-precision logits, else the dtype of
        the logits, and (B, T) int64 ids. Without gradient.

    >>> scores, tokens = best_tokens(torch.tensor([[[0.0, 0.0], [0.0, 9.0]]]))
    >>> round(scores[0, 0].item(), 4), tokens.tolist()
    (-0.6931, [[0, 1]])
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    scores = logits.new_empty(logits.shape[:2], dtype=dtype)
    tokens = logits.new_empty(logits.shape[:2], dtype=torch.long)

    def work(block):
        part = logits[block].to(dtype)
        best, tokens[block] = part.max(2)
        scores[block] = -(part - best.unsqueeze(2)).logsumexp(2)

    with one_thread(not logits.is_cuda) as threads:
        spread(work, list(_blocks(logits)), threads)
    return scores, tokens


# Operations that give another shape of the same memory, and those whose backward does not
# need the new memory that they give: the products of a linear layer, its bias, copies, casts.
_VIEWS = ("View", "UnsafeView", "ReshapeAlias", "Transpose", "T", "Permute", "Unsqueeze", "Squeeze")
_PRODUCTS = ("Addmm", "Mm", "Bmm", "Baddbmm", "Linear", "MkldnnLinear")
_SOURCES = (*_PRODUCTS, "ToCopy", "Clone", "Cat", "Add")


def may_overwrite(logits: Tensor) -> bool:
    """Whether the backward may write into the memory of these logits, for ``in_place``.

    True only where they are known to come straight from a linear layer (or a copy, cast or
    concatenation), so that no earlier backward needs their values, as that of a
    ``log_softmax`` or ``tanh`` would. False for leaves, for a part of a larger tensor, and for
    logits with hooks or a gradient to retain. What else holds them cannot be seen here.

    >>> layer, x = torch.nn.Linear(3, 4), torch.randn(2, 5, 3)
    >>> may_overwrite(layer(x)), may_overwrite(layer(x).log_softmax(2))
    (True, False)
    """
    if type(logits) is not Tensor or logits.grad_fn is None:
        return False
    if any(x.retains_grad or x._backward_hooks for x in (logits, logits._base) if x is not None):
        return False
    if logits.untyped_storage().nbytes() != logits.numel() * logits.element_size():
        return False  # a part of something, or one number at several places
    node: Optional[Node] = logits.grad_fn
    while node is not None:
        name = node.name().split("Backward")[0]
        if name not in _VIEWS:
            return name in _SOURCES
        node = node.next_functions[0][0]
    return False


def token_log_probs(
    logits: Tensor, targets: Tensor, used: Optional[Tensor] = None, in_place: bool = False
) -> Tensor:
    """Log-probability of each target token at each output position.

    Args:
        logits: (B, T, V), unnormalised, any floating dtype.
        targets: (B, S) int64 ids in [0, V).
        used: (B, T) bool; rows that are False give zeros and get a zero gradient,
            whatever they hold.
        in_place: let the backward write the gradient into the logits' own memory, which
            saves a tensor of their size. They are lost then: nothing else may need them
            after the backward has begun, and there can be no second backward (torch
            raises a RuntimeError about an in-place operation).

    Returns:
        (B, T, S) log-probabilities in nats; float32 for half-precision logits,
        else the dtype of the logits. Differentiable once, in the logits.

    >>> logits = torch.tensor([[[0.0, 0.0]]])
    >>> round(token_log_probs(logits, torch.tensor([[1]])).item(), 4)
    -0.6931
    """
    return _TokenLogProbs.apply(logits, targets, used, in_place)
