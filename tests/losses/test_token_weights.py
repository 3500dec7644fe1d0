"""Cross entropy with weighted tokens, against a literal reference."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.token_weights import (
    WEIGHTINGS,
    TokenWeighting,
    error_norms,
    token_weighted_loss,
    token_weights,
)
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)


@st.composite
def cases(draw):
    batch, length, vocabulary = draw(
        st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from([1, 2, 7]))
    )
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scale = draw(st.sampled_from([0.1, 1.0, 6.0]))
    shape = (batch, length)
    logits = scale * torch.randn(*shape, vocabulary, generator=seed, dtype=torch.float64)
    mask = torch.rand(shape, generator=seed) < 0.8
    targets = torch.randint(vocabulary, shape, generator=seed).masked_fill(~mask, -100)
    numbers = {
        "tailr": {"tailr_gamma": draw(st.sampled_from([0.0, 0.1, 1.0])), "tailr_min": 0.2},
        "mixce": {"mixce_factor": draw(st.sampled_from([0.0, 0.3, 1.0]))},
        "gold": {"gold_min": 0.2},
        "error_norm": {"error_norm_threshold": draw(st.sampled_from([0.8, 1.1]))},
        "convex": {"convex_power": draw(st.sampled_from([2.0, 3.0]))},
    }
    kind = draw(st.sampled_from(WEIGHTINGS))
    also = torch.rand(shape, generator=seed, dtype=torch.float64) * 2
    also = also.masked_fill(~mask, math.nan)  # of padding, it never matters
    return logits, targets, mask, kind, numbers.get(kind, {}), draw(st.sampled_from([None, also]))


def compare(case, dtype):
    logits, targets, mask, kind, numbers, also = case
    logits = logits.to(dtype).requires_grad_()
    loss = token_weighted_loss(logits, targets, mask, TokenWeighting(kind, **numbers), also)
    assert loss.shape == (len(targets),)
    if not len(targets):
        return
    share = torch.arange(1, len(targets) + 1, dtype=torch.float64)
    expected = reference.token_weighted_loss(logits, targets, mask, kind, also, **numbers)
    (grad,) = torch.autograd.grad((expected * share).sum(), logits)
    assert_near(loss, expected, dtype, "value")
    (loss * share.to(dtype)).sum().backward()
    assert_near(logits.grad, grad, dtype, "gradient")


@settings(fixed, max_examples=200)
@given(cases())
def test_value_and_gradient_equal_the_reference(case):
    compare(case, torch.float64)


@settings(fixed, max_examples=40)
@given(cases().filter(lambda case: case[3] != "error_norm"))  # a norm may be at its threshold
def test_the_same_in_float32(case):
    compare(case, torch.float32)


def test_known_weights():
    """p = 0.5, 0.05: tailr p / (.1 + .9 p) = .9091, .3448 (and 0.01 would be .0917, the floor)."""
    log_p = torch.tensor([0.5, 0.05, 0.01], dtype=torch.float64).log()
    expected = {
        "tailr": [0.909091, 0.344828, 0.3],
        "dft": [0.5, 0.05, 0.01],
        "mixce": [0.75, 0.525, 0.505],
        "gold": [0.5, 0.1, 0.1],
    }
    for kind, weights in expected.items():
        found = token_weights(log_p, TokenWeighting(kind)).tolist()
        assert found == pytest.approx(weights, abs=1e-6), kind


def test_convex_is_minus_the_cube_of_the_mean_likelihood():
    """Two tokens of probability .5 and .125, whose geometric mean is .25."""
    logits = torch.tensor([[[0.5, 0.5], [0.125, 0.875]]], dtype=torch.float64).log()
    targets, mask = torch.zeros(1, 2).long(), torch.ones(1, 2).bool()
    loss = token_weighted_loss(logits, targets, mask, TokenWeighting("convex"))
    assert loss.item() == pytest.approx(-(0.25**3))


def test_the_error_norm_is_that_of_the_gradient():
    """The gradient of cross entropy in the logits is probabilities - target."""
    logits = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(6, (2, 3))
    nll = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum")
    (grad,) = torch.autograd.grad(nll, logits)
    own = logits.log_softmax(2).gather(2, targets.unsqueeze(2)).squeeze(2).detach()
    torch.testing.assert_close(error_norms(logits.detach(), own), grad.norm(dim=2))
    sure = torch.tensor([[[60.0, 0.0]]])
    assert error_norms(sure, sure.log_softmax(2)[:, :, 1]).item() == pytest.approx(math.sqrt(2))


def test_without_g_tailr_is_cross_entropy_even_of_the_impossible():
    logits = torch.tensor([[[0.0, -200.0], [1.0, 2.0]]], dtype=torch.float64, requires_grad=True)
    targets, mask = torch.tensor([[1, 0]]), torch.ones(1, 2, dtype=torch.bool)
    loss = token_weighted_loss(logits, targets, mask, TokenWeighting("tailr", tailr_gamma=0.0))
    expected = F.cross_entropy(logits[0], targets[0])
    assert_near(loss[0], expected, torch.float64)


@pytest.mark.parametrize("kind", WEIGHTINGS)
def test_padding_changes_nothing_whatever_it_holds(kind):
    torch.manual_seed(1)
    logits, targets = torch.randn(2, 6, 5, dtype=torch.float64), torch.randint(5, (2, 6))
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    weighting = TokenWeighting(kind, error_norm_threshold=0.95)
    whole = token_weighted_loss(logits, targets, mask, weighting)
    alone = token_weighted_loss(logits[1:, :3], targets[1:, :3], mask[1:, :3], weighting)
    assert_near(whole[1:], alone, torch.float64)
    odd = logits.masked_fill(~mask.unsqueeze(2), float("nan")).requires_grad_()
    loss = token_weighted_loss(odd, targets, mask, weighting)
    assert torch.equal(loss, whole)
    loss.sum().backward()
    assert (odd.grad[~mask] == 0).all() and odd.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", WEIGHTINGS)
def test_half_precision_is_finite(kind, dtype):
    torch.manual_seed(1)
    logits = (20 * torch.randn(2, 4, 50)).to(dtype).requires_grad_()
    mask = torch.ones(2, 4, dtype=torch.bool)
    loss = token_weighted_loss(logits, torch.randint(50, (2, 4)), mask, TokenWeighting(kind))
    loss.sum().backward()
    assert loss.dtype == torch.float32 and loss.isfinite().all() and logits.grad.isfinite().all()


@pytest.mark.parametrize("kind", WEIGHTINGS)
def test_without_tokens_the_loss_is_a_zero_of_the_graph(kind):
    logits = torch.randn(2, 3, 4, requires_grad=True)
    mask = torch.zeros(2, 3, dtype=torch.bool)
    loss = token_weighted_loss(logits, torch.zeros(2, 3).long(), mask, TokenWeighting(kind))
    assert loss.tolist() == [0.0, 0.0]
    loss.sum().backward()
    assert (logits.grad == 0).all()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"kind": "tail"}, "kind='tail' is unknown; choose from tailr, dft"),
        ({"tailr_gamma": 2.0}, r"tailr_gamma must be in \[0, 1\], not 2.0"),
        ({"convex_power": 0.0}, "convex_power must be a finite number above 0"),
        ({"error_norm_threshold": float("nan")}, "error_norm_threshold must be a finite number"),
    ],
)
def test_a_wrong_number_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        TokenWeighting(**options)


def test_further_weights_of_another_shape():
    logits, targets = torch.zeros(1, 4, 3), torch.zeros(1, 4, dtype=torch.int64)
    for shape in ((1, 1), (2, 4), (1, 5)):
        with pytest.raises(ValueError, match=r"also must have shape \(1, 4\)"):
            mask = torch.ones_like(targets, dtype=torch.bool)
            weighting = TokenWeighting("none")
            token_weighted_loss(logits, targets, mask, weighting, torch.ones(shape))
