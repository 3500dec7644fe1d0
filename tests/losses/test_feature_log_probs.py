"""feature_log_probs against token_log_probs of the logits, and what it keeps in memory."""

import importlib

import pytest
import torch

from fairseq_eisl.losses import feature_log_probs, token_log_probs
from tests.devices import DEVICES
from tests.losses.memory import LargeStorages, saved_for_backward
from tests.tolerances import assert_near

MODULE = importlib.import_module("fairseq_eisl.losses.feature_log_probs")


def example(shape=(3, 5, 4, 13, 6), dtype=torch.float64, with_bias=True):
    """Features (B, T, D), weight (V, D), targets (B, S) that hold a token twice, bias (V)."""
    batch, positions, length, vocabulary, width = shape
    seed = torch.Generator().manual_seed(0)

    def normal(*size):
        return torch.randn(*size, generator=seed, dtype=torch.float64).to(dtype)

    targets = torch.randint(vocabulary, (batch, length), generator=seed)
    targets[:, -1:] = targets[:, :1]
    bias = normal(vocabulary) if with_bias else None
    return normal(batch, positions, width), normal(vocabulary, width), targets, bias


def results(function, features, weight, targets, bias, used=None):
    """Value, and gradients of a fixed weighted sum of it."""
    leaves = [
        x.detach().clone().requires_grad_() for x in (features, weight, bias) if x is not None
    ]
    out = function(*leaves[:2], targets, used, leaves[2] if bias is not None else None)
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out)
    out.backward(cotangent)
    return [out, *(leaf.grad for leaf in leaves)]


def through_logits(features, weight, targets, used, bias):
    logits = features.double() @ weight.double().t()
    return token_log_probs(logits if bias is None else logits + bias.double(), targets, used)


def agree(features, weight, targets, bias, used=None, device="cpu"):
    moved = [None if x is None else x.to(device) for x in (features, weight, targets, bias, used)]
    found = results(feature_log_probs, *moved)
    expected = results(through_logits, features, weight, targets, bias, used)
    assert found[0].dtype == torch.promote_types(features.dtype, torch.float32)
    half = features.dtype in (torch.float16, torch.bfloat16)
    for name, ours, theirs in zip(("value", "features", "weight", "bias"), found, expected):
        if not half:
            assert_near(ours, theirs, features.dtype, name)
        elif theirs.numel():
            # The matrix products themselves are rounded, as the logits of such a model are:
            # a few units in the last place of the largest element.
            error = (ours.double().cpu() - theirs.double()).abs().max()
            assert error <= 8 * torch.finfo(features.dtype).eps * max(1.0, theirs.abs().max()), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str
)
@pytest.mark.parametrize(
    "shape",
    [(3, 5, 4, 13, 6), (1, 1, 1, 1, 1), (2, 3, 9, 2, 4), (0, 3, 2, 4, 3), (2, 3, 0, 4, 3)],
    ids=str,
)
def test_value_and_gradients(shape, dtype, with_bias, device):
    agree(*example(shape, dtype, with_bias), device=device)


@pytest.mark.parametrize("with_bias", [True, False])
def test_gradcheck(with_bias):
    features, weight, targets, bias = example((2, 3, 4, 5, 3), with_bias=with_bias)
    inputs = [x.requires_grad_() for x in (features, weight, bias) if x is not None]
    assert torch.autograd.gradcheck(
        lambda f, w, b=None: feature_log_probs(f, w, targets, None, b), inputs
    )


@pytest.mark.parametrize("rows, words", [(1, 1), (4, 13), (100, 3), (7, 6), (100, 100)])
def test_the_size_of_a_block_changes_nothing(rows, words, monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", (rows, words))
    agree(*example())


def test_unused_positions_give_zeros_whatever_they_hold():
    features, weight, targets, bias = example()
    used = torch.tensor([[True] * 5, [True, False, True, False, False], [False] * 5])
    agree(features.masked_fill(~used.unsqueeze(2), 0.0), weight, targets, bias, used)
    clean, dirty = (
        results(
            feature_log_probs,
            *(features.masked_fill(~used.unsqueeze(2), fill), weight, targets, bias, used),
        )
        for fill in (0.0, float("nan"))
    )
    for a, b in zip(clean, dirty):
        assert torch.equal(a, b)
    assert not clean[0][~used].any() and not clean[1][~used].any()


def test_there_are_never_logits(monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", (8, 100))
    features, weight, targets, _ = example((4, 6, 3, 500, 8), torch.float32, False)
    leaves = features.requires_grad_(), weight.requires_grad_()
    size = 4 * 6 * 500 * 4  # bytes of the logits
    with LargeStorages(size) as large:
        out, saved = saved_for_backward(lambda: feature_log_probs(*leaves, targets))
        out.sum().backward()
    assert large.besides() == 0 and not any(t.untyped_storage().nbytes() >= size for t in saved)


def test_a_second_derivative_is_refused():
    features, weight, targets, _ = example(with_bias=False)
    out = feature_log_probs(features.requires_grad_(), weight, targets).square().sum()
    (grad,) = torch.autograd.grad(out, features, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_gradients_are_rounded_once(dtype, monkeypatch):
    """Against float64 of the same numbers. Every token stands often in the targets and blocks
    are small: sums in half precision would be off by several percent."""
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", (16, 8))
    features, weight, targets, bias = example((8, 64, 48, 24, 6), dtype)
    targets = targets % 3
    found = results(feature_log_probs, features, weight, targets, bias)
    doubles = [x.double() for x in (features, weight)]
    expected = results(feature_log_probs, *doubles, targets, bias.double())
    for name, ours, theirs in zip(("features", "weight", "bias"), found[1:], expected[1:]):
        error = (ours.double() - theirs).norm() / theirs.norm()
        assert error < 0.5 * torch.finfo(dtype).eps, name


def test_threads_change_no_digit_between_runs(monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", (8, 64))
    before = torch.get_num_threads()
    runs = []
    try:
        torch.set_num_threads(3)
        for _ in range(5):
            runs.append(results(feature_log_probs, *example((8, 16, 9, 900, 6), torch.float32)))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    for run in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(run, runs[0]))


def test_wrong_input_is_named():
    features, weight, targets, bias = example()
    with pytest.raises(ValueError, match=r"weight \(V, D\), not \(3, 5, 6\) and \(6, 13\)"):
        feature_log_probs(features, weight.t(), targets)
    with pytest.raises(ValueError, match="one dtype, not torch.float64 and torch.float32"):
        feature_log_probs(features, weight.float(), targets)
