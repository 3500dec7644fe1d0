"""Log-probabilities of target tokens from a decoder's features, without any B x T x V logits.

The columns of the target tokens are a small product with their embeddings. The
normaliser needs all columns, but only a block of rows at a time; the backward
computes the blocks again.
"""

from typing import Optional

import torch
from torch import Tensor

# Logits that exist at a time. Large enough for the matrix products to run at full speed.
_CPU_BLOCK = 2**22
_CUDA_BLOCK = 2**26


def _blocks(features: Tensor, vocabulary: int):
    """Slices of the (N, D) rows, about one block's worth of logits each."""
    size = _CUDA_BLOCK if features.is_cuda else _CPU_BLOCK
    step = max(1, size // max(1, vocabulary))
    for start in range(0, features.size(0), step):
        yield slice(start, start + step)


def _logits(features: Tensor, weight: Tensor, bias: Optional[Tensor], dtype) -> Tensor:
    logits = features @ weight.t() if bias is None else torch.addmm(bias, features, weight.t())
    return logits.to(dtype)


class _FeatureLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, bias, targets, used):
        dtype = torch.promote_types(features.dtype, torch.float32)
        if used is not None:  # not even a NaN may pass from an unused position
            features = features.masked_fill(~used.unsqueeze(2), 0.0)
        rows = features.flatten(0, 1)
        normaliser = rows.new_empty(len(rows), dtype=dtype)
        for block in _blocks(rows, len(weight)):
            part = _logits(rows[block], weight, bias, dtype)
            torch.logsumexp(part, dim=1, out=normaliser[block])
        picked = torch.bmm(features, weight[targets].transpose(1, 2)).to(dtype)
        if bias is not None:
            picked = picked + bias[targets].unsqueeze(1).to(dtype)
        out = picked - normaliser.view(features.shape[:2]).unsqueeze(2)
        if used is not None:
            out = out.masked_fill(~used.unsqueeze(2), 0.0)
        ctx.save_for_backward(features, weight, bias, targets, used, normaliser)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: Tensor):
        features, weight, bias, targets, used, normaliser = ctx.saved_tensors
        with torch.autocast(features.device.type, enabled=False):
            if used is not None:
                grad = grad.masked_fill(~used.unsqueeze(2), 0.0)
            share = -grad.sum(2).flatten().unsqueeze(1)
            rows = features.flatten(0, 1)
            small = grad.to(features.dtype)
            out = torch.bmm(small, weight[targets])
            by_row = out.flatten(0, 1)
            for_weight, for_bias = torch.zeros_like(weight), None
            if bias is not None:
                for_bias = torch.zeros_like(bias)
                for_bias.index_add_(0, targets.flatten(), grad.sum(1).flatten().to(bias.dtype))
            for block in _blocks(rows, len(weight)):
                part = _logits(rows[block], weight, bias, normaliser.dtype)
                part = part.sub_(normaliser[block].unsqueeze(1)).exp_().mul_(share[block])
                part = part.to(features.dtype)
                by_row[block] += part @ weight
                for_weight.addmm_(part.t(), rows[block])
                if for_bias is not None:
                    for_bias += part.sum(0)
            per_token = torch.bmm(small.transpose(1, 2), features).flatten(0, 1)
            for_weight.index_add_(0, targets.flatten(), per_token)
            if used is not None:
                out = out.masked_fill(~used.unsqueeze(2), 0.0)
        return out, for_weight, for_bias, None, None


def feature_log_probs(
    features: Tensor,
    weight: Tensor,
    targets: Tensor,
    used: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
) -> Tensor:
    """Log-probability of each target token at each output position, from features.

    The same as ``token_log_probs(features @ weight.T + bias, targets, used)``, at the price
    of one more matrix product in the backward and a fraction of the memory.

    Args:
        features: (B, T, D), the input of the output layer.
        weight: (V, D), the output embedding, of the same dtype.
        targets: (B, S) int64 ids in [0, V).
        used: (B, T) bool; rows that are False give zeros and get a zero gradient,
            whatever they hold.
        bias: (V,), if the output layer has one.

    Returns:
        (B, T, S) log-probabilities in nats; float32 for half-precision features, else
        their dtype. Differentiable once, in features, weight and bias.

    Raises:
        ValueError: wrong shapes or unequal dtypes.

    >>> features, weight = torch.zeros(1, 1, 3), torch.randn(2, 3)
    >>> round(feature_log_probs(features, weight, torch.tensor([[1]])).item(), 4)
    -0.6931
    """
    if features.dim() != 3 or weight.dim() != 2 or features.size(2) != weight.size(1):
        raise ValueError(
            f"features must have shape (B, T, D) and weight (V, D), not "
            f"{tuple(features.shape)} and {tuple(weight.shape)}"
        )
    if features.dtype != weight.dtype or (bias is not None and bias.dtype != weight.dtype):
        others = [str(x.dtype) for x in (weight, bias) if x is not None]
        raise ValueError(
            f"features, weight and bias must have one dtype, not {features.dtype} and "
            f"{' and '.join(others)}"
        )
    return _FeatureLogProbs.apply(features, weight, bias, targets, used)
