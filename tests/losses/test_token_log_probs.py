"""token_log_probs against log_softmax followed by gather, and what it keeps in memory."""

import importlib
import math

import pytest
import torch
import torch.utils.checkpoint

from fairseq_eisl.losses import may_overwrite, token_log_probs
from tests.devices import DEVICES, needs_cuda
from tests.losses.memory import LargeStorages, saved_for_backward
from tests.tolerances import assert_near

# The package's attribute of this name is the function.
MODULE = importlib.import_module("fairseq_eisl.losses.token_log_probs")
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def literal(logits, targets, used=None):
    """The same in float64 with a B x T x V tensor of log-probabilities."""
    index = targets.unsqueeze(1).expand(-1, logits.size(1), -1)
    out = logits.double().log_softmax(2).gather(2, index)
    return out if used is None else torch.where(used.unsqueeze(2), out, 0.0)


def example(shape=(3, 5, 4, 13), dtype=torch.float64, scale=3.0):
    """Logits (B, T, V), targets (B, S) that hold a token twice, and a cotangent (B, T, S)."""
    batch, positions, length, vocabulary = shape
    seed = torch.Generator().manual_seed(0)
    logits = torch.randn(batch, positions, vocabulary, generator=seed, dtype=torch.float64)
    targets = torch.randint(vocabulary, (batch, length), generator=seed)
    targets[:, -1:] = targets[:, :1]
    cotangent = torch.randn(batch, positions, length, generator=seed, dtype=torch.float64)
    return (logits * scale).to(dtype), targets, cotangent


def agree(logits, targets, cotangent, used=None, device="cpu"):
    logits = logits.detach().requires_grad_()
    expected = literal(logits, targets, used)
    (grad,) = torch.autograd.grad(expected, logits, cotangent)
    ours = logits.detach().to(device).requires_grad_()
    out = token_log_probs(ours, targets.to(device), None if used is None else used.to(device))
    assert out.dtype == torch.promote_types(logits.dtype, torch.float32)
    assert_near(out, expected, out.dtype, "value")
    out.backward(cotangent.to(out))
    assert ours.grad.dtype == logits.dtype
    assert_near(ours.grad, grad, logits.dtype, "gradient")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "shape",
    [(3, 5, 4, 13), (1, 1, 1, 1), (2, 3, 9, 2), (0, 3, 2, 4), (2, 0, 3, 4), (2, 3, 0, 4)],
    ids=str,
)
def test_value_and_gradient(shape, dtype, device):
    agree(*example(shape, dtype), device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_gradcheck(device):
    logits, targets, _ = example((2, 3, 4, 5))
    logits = logits.to(device).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: token_log_probs(x, targets.to(device)), logits)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("waste", [float("nan"), float("inf"), float("-inf"), 1e30])
def test_unused_positions_give_zeros_whatever_they_hold(waste, device):
    logits, targets, cotangent = example(dtype=torch.float32)
    used = torch.tensor([[True] * 5, [True, False, True, False, False], [False] * 5])
    clean, dirty = (
        logits.masked_fill(~used.unsqueeze(2), fill).to(device).requires_grad_()
        for fill in (0.0, waste)
    )
    for x in (clean, dirty):
        out = token_log_probs(x, targets.to(device), used.to(device))
        assert not out[~used].any()
        out.backward(cotangent.to(out))
        assert not x.grad[~used].any()
        assert x.grad[used].all()
    assert torch.equal(clean.grad, dirty.grad)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_size_of_a_block_changes_nothing(dtype, monkeypatch):
    logits, targets, cotangent = example((7, 5, 4, 13), dtype)
    grads = []
    for size in (1, 3 * 5 * 13, 2**20):  # one sentence, three (the last block is smaller), all
        monkeypatch.setattr(MODULE, "_CPU_BLOCK", size)
        x = logits.clone().requires_grad_()
        out = token_log_probs(x, targets)
        out.backward(cotangent.to(out))
        grads.append(x.grad)
        agree(logits, targets, cotangent)
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[0], grads[2])


def test_logits_need_not_be_contiguous():
    logits, targets, cotangent = example((5, 3, 4, 13))
    padded = torch.zeros(5, 7, 26, dtype=torch.float64)
    padded[:, 2:5, ::2] = logits
    transposed = logits.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    expanded = logits[:, :1].expand(-1, 3, -1)
    for view in (padded[:, 2:5, ::2], transposed, expanded):
        assert not view.is_contiguous()
        x = view.detach().requires_grad_()
        token_log_probs(x, targets).backward(cotangent)
        y = view.contiguous().requires_grad_()
        literal(y, targets).backward(cotangent)
        assert_near(x.grad, y.grad, torch.float64)


@pytest.mark.parametrize("device", DEVICES)
def test_large_logits_do_not_overflow(device):
    logits = torch.tensor([[[3e4, -3e4, 0.0]]], device=device)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = logits.detach().to(dtype, copy=True).requires_grad_()
        out = token_log_probs(x, torch.tensor([[0, 1]], device=device))
        assert out[0, 0].tolist() == pytest.approx([0.0, -6e4], rel=5e-3)
        out.sum().backward()
        assert x.grad.flatten().tolist() == [-1.0, 1.0, 0.0]


def test_infinities_and_nan_of_a_real_position():
    rows = [[0.0, 0.0, float("-inf")], [float("nan"), 0.0, 0.0], [float("-inf")] * 3]
    out = token_log_probs(torch.tensor([rows]), torch.tensor([[0, 2]]))[0]
    assert out[0].tolist() == [pytest.approx(-math.log(2)), float("-inf")]
    assert out[1:].isnan().all()  # no distribution there, so no number


def test_a_single_token_vocabulary_is_certain():
    logits = torch.randn(2, 3, 1).requires_grad_()
    out = token_log_probs(logits, torch.zeros(2, 4).long())
    assert not out.any()
    out.sum().backward()
    assert not logits.grad.any()


def test_the_gradient_is_the_same_bit_by_bit_in_every_run():
    """Repeated tokens are summed in a fixed order, not as threads happen to arrive."""
    logits, _, _ = example((2, 8, 64, 3), torch.float32)
    targets = torch.zeros(2, 64).long()
    cotangent = torch.randn(2, 8, 64, generator=torch.Generator().manual_seed(1))
    grads = []
    for _ in range(3):
        x = logits.clone().requires_grad_()
        token_log_probs(x, targets).backward(cotangent)
        grads.append(x.grad)
    assert torch.equal(grads[0], grads[1]) and torch.equal(grads[0], grads[2])


def test_a_second_derivative_is_refused():
    """Better than a wrong one: the backward is not written to be differentiated."""
    logits, targets, _ = example()
    logits.requires_grad_()
    out = token_log_probs(logits, targets).square().sum()
    (grad,) = torch.autograd.grad(out, logits, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_second_tensor_of_the_logits_size(dtype, monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", 1)  # a sentence at a time: blocks are small
    logits, targets, cotangent = example((4, 6, 3, 500), dtype)
    logits.requires_grad_()
    size = logits.numel() * logits.element_size()
    with LargeStorages(size) as forward:
        out, saved = saved_for_backward(lambda: token_log_probs(logits, targets))
    assert forward.besides(logits) == 0
    large = [t for t in saved if t.untyped_storage().nbytes() >= size]
    assert [t.data_ptr() for t in large] == [logits.data_ptr()]
    with LargeStorages(size) as backward:
        out.backward(cotangent.to(out))
    assert len(backward.storages) > 0, "the mode must see the backward"
    assert backward.besides(logits) == 1  # the gradient itself


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_gradient_in_place_is_the_same_in_the_memory_of_the_logits(dtype, monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", 1)
    source, targets, cotangent = example((4, 6, 3, 500), dtype)
    used = torch.rand(4, 6, generator=torch.Generator().manual_seed(1)) < 0.7
    size = source.numel() * source.element_size()
    grads = []
    for in_place in (False, True):
        leaf = source.clone().requires_grad_()
        logits = leaf * 1  # as of a model: no leaf itself
        out = token_log_probs(logits, targets, used, in_place=in_place)
        with LargeStorages(size) as backward:
            (grad,) = torch.autograd.grad(out, logits, cotangent.to(out), retain_graph=True)
        assert backward.besides(logits) == (not in_place)
        assert (grad.data_ptr() == logits.data_ptr()) == in_place
        grads.append(grad)
        if in_place:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                out.backward(cotangent.to(out))
    assert torch.equal(*grads)


def test_logits_of_a_linear_layer_may_be_overwritten_and_no_others():
    x = torch.randn(2, 5, 3, requires_grad=True)
    for bias in (True, False):
        layer = torch.nn.Linear(3, 4, bias=bias)
        for safe in (
            *(layer(x), layer(x.transpose(0, 1)).transpose(0, 1), layer(x).double()),
            *(layer(x).tanh().clone(), torch.cat([layer(x), layer(x)])),
        ):
            assert may_overwrite(safe), safe.grad_fn
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = layer(x)
        assert half.dtype == torch.bfloat16 and may_overwrite(half) and may_overwrite(half.float())
        for unsafe in (
            *(layer(x).log_softmax(2), layer(x).tanh(), layer(x).exp().view(10, 4)),
            *(layer(x)[:, :3], layer(x).unbind(0)[0], layer(x)[:, :1].expand(-1, 5, -1)),
            *(layer(x).detach(), layer(x).detach().requires_grad_(), x),
            torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=True),
        ):
            assert not may_overwrite(unsafe), unsafe.grad_fn
    kept, hooked = layer(x), layer(x)
    kept.retain_grad()
    hooked.register_hook(lambda grad: None)
    assert not may_overwrite(kept) and not may_overwrite(hooked)


@needs_cuda
def test_peak_memory_on_cuda(monkeypatch):
    monkeypatch.setattr(MODULE, "_CUDA_BLOCK", 64 * 32000)  # a sentence at a time
    logits = torch.randn(32, 64, 32000, device="cuda", requires_grad=True)
    targets = torch.randint(32000, (32, 64), device="cuda")
    size = logits.numel() * logits.element_size()  # 262 MB
    slack = size // 2  # some sentences, and the workspace of a matrix product
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = token_log_probs(logits, targets)
    assert torch.cuda.memory_allocated() - before < size // 10
    assert torch.cuda.max_memory_allocated() - before < slack
    out.sum().backward()
    assert torch.cuda.max_memory_allocated() - before < size + slack
