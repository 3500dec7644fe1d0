"""Log-probabilities of target tokens from a decoder's features, without any B x T x V logits.

The columns of the target tokens are a small product with their embeddings. The
normaliser needs all columns, but only a block of rows and vocabulary at a time; the
backward computes the blocks again.
"""

from typing import List, Optional

import torch
from torch import Tensor

from .worker_threads import InOrder, one_thread, refuse_second_derivative, spread

# Rows and words of the logits that exist at a time (on a CPU: for each thread): large enough
# for the matrix products to run at full speed, small enough for a CPU's cache.
_CPU_BLOCK = (256, 4096)
_CUDA_BLOCK = (4096, 16384)


def _slices(length: int, block: int, threads: int) -> List[slice]:
    """Slices of at most ``block``, two for each thread where they do not become tiny."""
    block = min(block, max(64, -(-length // (2 * threads))))
    return [slice(start, start + block) for start in range(0, length, block)]


def _logits(rows: Tensor, weight: Tensor, bias: Optional[Tensor], dtype) -> Tensor:
    logits = rows @ weight.t() if bias is None else torch.addmm(bias, rows, weight.t())
    return logits.to(dtype)


def _add_product(sums: Tensor, left: Tensor, right: Tensor):
    """``sums += left @ right`` in the dtype of the sums; on CUDA from products of one block in
    the dtype of ``right``, which its matrix units need."""
    if sums.is_cuda and right.dtype != sums.dtype:
        sums += left.to(right.dtype) @ right
    else:
        sums.addmm_(left, right.to(sums.dtype))


def _add_rows(sums: Tensor, places: Tensor, rows: Tensor):
    """``sums[place] += row`` where the place exists; equal places in a fixed order."""
    inside = places.ge(0) & places.lt(len(sums))
    if sums.is_cuda:  # a selection would wait for the device
        shape = (-1,) + (1,) * (rows.dim() - 1)
        rows, places = rows.masked_fill(~inside.view(shape), 0), places.clamp(0, len(sums) - 1)
    else:
        rows, places = rows[inside], places[inside]
    # Sorted first on CUDA, and on a CPU in turn (on one thread): unlike index_add_ on CUDA.
    sums.index_put_((places,), rows, accumulate=True)


class _FeatureLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, weight, bias, targets, used):
        inputs = (features, weight, bias, targets, used)
        dtype = torch.promote_types(features.dtype, torch.float32)
        some_rows, some_words = _CUDA_BLOCK if features.is_cuda else _CPU_BLOCK
        with one_thread(not features.is_cuda) as threads:
            if used is not None:  # not even a NaN may pass from an unused position
                features = features.masked_fill(~used.unsqueeze(2), 0.0)
            rows = features.flatten(0, 1)
            normaliser = rows.new_full((len(rows),), -float("inf"), dtype=dtype)

            def work(block):
                for words in _slices(len(weight), some_words, 1):
                    bias_part = None if bias is None else bias[words]
                    part = _logits(rows[block], weight[words], bias_part, dtype).logsumexp(1)
                    torch.logaddexp(normaliser[block], part, out=normaliser[block])

            spread(work, _slices(len(rows), some_rows, threads), threads)
            picked = torch.bmm(features, weight[targets].transpose(1, 2)).to(dtype)
            if bias is not None:
                picked = picked + bias[targets].unsqueeze(1).to(dtype)
            out = picked - normaliser.view(features.shape[:2]).unsqueeze(2)
            if used is not None:
                out = out.masked_fill(~used.unsqueeze(2), 0.0)
        ctx.save_for_backward(*inputs, normaliser)
        return out

    @staticmethod
    def backward(ctx, grad: Tensor):
        features, weight, bias, targets, used, normaliser = ctx.saved_tensors
        grads = _Gradients.apply(features, weight, bias, grad, targets, used, normaliser)
        return (*grads, None, None)


class _Gradients(torch.autograd.Function):
    """The backward, a part of the graph under ``create_graph``: see ``token_log_probs``."""

    @staticmethod
    def forward(ctx, features, weight, bias, grad, targets, used, normaliser):
        cpu, wide = not features.is_cuda, grad.dtype
        some_rows, some_words = _CPU_BLOCK if cpu else _CUDA_BLOCK
        with torch.autocast(features.device.type, enabled=False), one_thread(cpu) as threads:
            if used is not None:
                features = features.masked_fill(~used.unsqueeze(2), 0.0)
                grad = grad.masked_fill(~used.unsqueeze(2), 0.0)
            share = -grad.sum(2).flatten().unsqueeze(1)
            rows, tokens = features.flatten(0, 1), targets.flatten()
            # All sums are kept in full precision and rounded once: of all rows, and of a
            # block of words.
            for_rows = torch.zeros_like(rows, dtype=wide)
            per_token = torch.bmm(grad.transpose(1, 2), features.to(wide)).flatten(0, 1)
            for_weight = torch.empty_like(weight)
            for_bias = None if bias is None else torch.empty_like(bias)
            row_blocks = _slices(len(rows), some_rows, 1)
            # Threads take turns at the sums of a row block, in the order of the words.
            turns = InOrder(len(row_blocks))

            def work(item):
                number, words = item
                some, bias_part = weight[words], None if bias is None else bias[words]
                direct = weight.dtype == wide
                sums = for_weight[words] if direct else torch.empty_like(some, dtype=wide)
                sums.zero_()
                bias_sums = sums.new_zeros(len(some))
                for place, block in enumerate(row_blocks):
                    part = _logits(rows[block], some, bias_part, normaliser.dtype)
                    part = part.sub_(normaliser[block].unsqueeze(1)).exp_().mul_(share[block])
                    if for_bias is not None:
                        bias_sums += part.sum(0)
                    _add_product(sums, part.t(), rows[block])
                    with turns.turn(place, number):
                        _add_product(for_rows[block], part, some)
                _add_rows(sums, tokens - words.start, per_token)
                if not direct:
                    for_weight[words] = sums
                if for_bias is not None:
                    _add_rows(bias_sums, tokens - words.start, grad.sum(1).flatten())
                    for_bias[words] = bias_sums

            word_blocks = list(enumerate(_slices(len(weight), some_words, threads)))
            spread(work, word_blocks, threads, on_error=turns.release)
            out = torch.bmm(grad, weight[targets].to(wide))
            out = out.add_(for_rows.view_as(out)).to(features.dtype)
            if used is not None:
                out = out.masked_fill(~used.unsqueeze(2), 0.0)
        return out, for_weight, for_bias

    @staticmethod
    def backward(ctx, *grads):
        refuse_second_derivative("feature_log_probs")


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
