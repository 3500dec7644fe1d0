"""Log-probabilities of every target token at every output position.

``cost[b, t, s] = log softmax(logits[b, t])[targets[b, s]]`` is all that EISL and
its relatives need from the B x T x V logits. Computing ``log_softmax`` first
would keep a second tensor of that size; here the forward keeps B x T
normalisers, and the backward writes the gradient of the logits sentence by
sentence into one buffer.
"""

from typing import Optional

import torch
from torch import Tensor

# Elements of logits that are worked on at a time: small enough to stay in a CPU's
# cache, large enough that the loop costs nothing.
_CPU_BLOCK = 2**20
_CUDA_BLOCK = 2**26


def _blocks(logits: Tensor):
    """Slices of whole sentences, about one block's worth of logits each."""
    size = _CUDA_BLOCK if logits.is_cuda else _CPU_BLOCK
    step = max(1, size // max(1, logits.size(1) * logits.size(2)))
    for start in range(0, logits.size(0), step):
        yield slice(start, start + step)


class _TokenLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, used: Optional[Tensor], in_place: bool):
        batch, positions, _ = logits.shape
        dtype = torch.promote_types(logits.dtype, torch.float32)
        normaliser = logits.new_empty((batch, positions), dtype=dtype)
        for block in _blocks(logits):
            torch.logsumexp(logits[block].to(dtype), dim=-1, out=normaliser[block])
        index = targets.unsqueeze(1).expand(-1, positions, -1)
        out = logits.gather(2, index).to(dtype) - normaliser.unsqueeze(2)
        if used is not None:
            out = out.masked_fill(~used.unsqueeze(2), 0.0)
        ctx.save_for_backward(logits, targets, normaliser, used)
        ctx.in_place = in_place
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor):
        logits, targets, normaliser, used = ctx.saved_tensors  # an error if already overwritten
        with torch.autocast(logits.device.type, enabled=False):
            if used is not None:
                grad = grad.masked_fill(~used.unsqueeze(2), 0.0)
            row = grad.sum(2)
            # A token that the target holds twice gets the sum of both gradients. Summing
            # here, instead of scatter_add, keeps the result independent of thread order.
            same = targets.unsqueeze(2).eq(targets.unsqueeze(1)).to(grad.dtype)
            grad = torch.bmm(grad, same)
            index = targets.unsqueeze(1).expand(-1, logits.size(1), -1)
            out = logits.detach() if ctx.in_place else torch.empty_like(logits)
            for block in _blocks(logits):
                part = logits[block].to(grad.dtype) - normaliser[block].unsqueeze(2)
                part.exp_().mul_(-row[block].unsqueeze(2))
                picked = part.gather(2, index[block]) + grad[block]
                part.scatter_(2, index[block], picked)
                if used is not None:  # not even a NaN may pass from an unused position
                    part.masked_fill_(~used[block].unsqueeze(2), 0.0)
                out[block] = part
        return out, None, None, None


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
