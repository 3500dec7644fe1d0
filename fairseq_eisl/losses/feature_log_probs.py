"""Log-probabilities of target tokens from a decoder's features, without any B x T x V logits.

The columns of the target tokens are a small product with their embeddings. The
normaliser needs all columns, but only a block of rows and vocabulary at a time; the
backward computes the blocks again.
"""

from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor

# Rows and words of the logits that exist at a time: large enough for the matrix products to
# run at full speed, small enough for a CPU's cache.
_CPU_BLOCK = (256, 4096)
_CUDA_BLOCK = (4096, 16384)


def _blocks(rows: Tensor, vocabulary: int) -> Iterator[Tuple[slice, Iterator[slice]]]:
    """Slices of the vocabulary, and for each the slices of the (N, D) rows."""
    some_rows, some_words = _CUDA_BLOCK if rows.is_cuda else _CPU_BLOCK
    for word in range(0, vocabulary, some_words):
        yield (
            slice(word, word + some_words),
            (slice(row, row + some_rows) for row in range(0, len(rows), some_rows)),
        )


def _logits(rows: Tensor, weight: Tensor, bias: Optional[Tensor], dtype) -> Tensor:
    logits = rows @ weight.t() if bias is None else torch.addmm(bias, rows, weight.t())
    return logits.to(dtype)


def _add_product(sums: Tensor, left: Tensor, right: Tensor):
    """``sums += left @ right``, where sums may have a wider dtype."""
    if sums.dtype == left.dtype:
        sums.addmm_(left, right)
    else:
        sums += left @ right


class _FeatureLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, bias, targets, used):
        dtype = torch.promote_types(features.dtype, torch.float32)
        if used is not None:  # not even a NaN may pass from an unused position
            features = features.masked_fill(~used.unsqueeze(2), 0.0)
        rows = features.flatten(0, 1)
        normaliser = rows.new_full((len(rows),), -float("inf"), dtype=dtype)
        for words, row_blocks in _blocks(rows, len(weight)):
            bias_part = None if bias is None else bias[words]
            for block in row_blocks:
                part = _logits(rows[block], weight[words], bias_part, dtype).logsumexp(1)
                torch.logaddexp(normaliser[block], part, out=normaliser[block])
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
            # Sums over blocks are kept in full precision: of all rows, and of a block of words.
            for_rows = torch.zeros_like(rows, dtype=grad.dtype)
            for_weight, for_bias = torch.empty_like(weight), None
            if bias is not None:
                for_bias = torch.zeros_like(bias)
                for_bias.index_add_(0, targets.flatten(), grad.sum(1).flatten().to(bias.dtype))
            for words, row_blocks in _blocks(rows, len(weight)):
                some, bias_part = weight[words], None if bias is None else bias[words]
                direct = weight.dtype == grad.dtype
                for_words = for_weight[words]
                sums = for_words if direct else torch.empty_like(some, dtype=grad.dtype)
                sums.zero_()
                for block in row_blocks:
                    part = _logits(rows[block], some, bias_part, normaliser.dtype)
                    part = part.sub_(normaliser[block].unsqueeze(1)).exp_().mul_(share[block])
                    if for_bias is not None:
                        for_bias[words] += part.sum(0)
                    part = part.to(features.dtype)
                    _add_product(for_rows[block], part, some)
                    _add_product(sums, part.t(), rows[block])
                if not direct:
                    for_words.copy_(sums)
            small = grad.to(features.dtype)
            out = torch.bmm(small, weight[targets])
            out += for_rows.view_as(out)
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
