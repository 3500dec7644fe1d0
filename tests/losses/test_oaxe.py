"""Order-agnostic cross entropy against all orders."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.oaxe import best_matching, oaxe_loss
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)
P = torch.tensor([[[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]]], dtype=torch.float64)
ALL = torch.ones(1, 3, dtype=torch.bool)


def loss_of(logits, targets, mask, skip):
    ids = targets.masked_fill(~mask, 0)
    index = ids.unsqueeze(1).expand(-1, logits.size(1), -1)
    return oaxe_loss(logits.log_softmax(2).gather(2, index), mask, skip=skip)


def test_worked_out_values():
    """Slots 1, 0, 2 for the words 0, 1, 2: -ln .6 - ln .7 - ln .4; with p < .5 left out, the first
    two."""
    log_probs = P.log()
    assert best_matching(-log_probs, ALL).tolist() == [[1, 0, 2]]
    assert oaxe_loss(log_probs, ALL, skip=0).item() == pytest.approx(1.783791 / 3, abs=1e-6)
    assert oaxe_loss(log_probs, ALL, skip=0.5).item() == pytest.approx(0.867501 / 2, abs=1e-6)
    in_place = -log_probs.diagonal(dim1=1, dim2=2).sum()
    assert in_place.item() == pytest.approx(3.729701, abs=1e-6)


@st.composite
def cases(draw):
    batch, length = draw(st.tuples(st.integers(1, 3), st.integers(0, 5)))
    vocabulary = draw(st.sampled_from([2, 4, 7]))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = 2 * torch.randn(batch, length, vocabulary, generator=seed, dtype=torch.float64)
    mask = torch.rand(batch, length, generator=seed) < 0.8
    targets = torch.randint(vocabulary, (batch, length), generator=seed)
    return logits, targets.masked_fill(~mask, -100), mask, draw(st.sampled_from([0.0, 0.15, 0.4]))


@settings(fixed, max_examples=150)
@given(cases())
def test_value_and_gradient_equal_the_reference(case):
    logits, targets, mask, skip = case
    logits = logits.requires_grad_()
    expected = reference.oaxe_loss(logits, targets, mask, skip)
    share = torch.arange(1, len(targets) + 1, dtype=torch.float64)
    (grad,) = torch.autograd.grad((expected * share).sum(), logits)
    loss = loss_of(logits, targets, mask, skip)
    assert_near(loss, expected, torch.float64, "value")
    (loss * share).sum().backward()
    # Equal words have several best orders, whose sums and gradients are the same.
    assert_near(logits.grad, grad, torch.float64, "gradient")


def test_padding_changes_nothing_whatever_it_holds():
    torch.manual_seed(1)
    logits, targets = torch.randn(2, 6, 5, dtype=torch.float64), torch.randint(5, (2, 6))
    mask = torch.tensor([[True] * 6, [True, False, True, True, False, False]])
    whole = loss_of(logits, targets, mask, 0.1)
    places = [0, 2, 3]
    alone = loss_of(logits[1:, places], targets[1:, places], mask[1:, places], 0.1)
    assert_near(whole[1:], alone, torch.float64)


def test_the_impossible_is_left_out_and_nan_is_not_silent():
    log_probs = P.log()
    log_probs[0, :, 2] = -math.inf  # no slot says the third word
    assert oaxe_loss(log_probs, ALL, skip=0.15).isfinite().all()
    assert oaxe_loss(log_probs, ALL, skip=0).item() == math.inf
    log_probs[0, 0, 0] = math.nan
    assert oaxe_loss(log_probs, ALL, skip=0.15).isnan().all()


def test_without_tokens_the_loss_is_a_zero_of_the_graph():
    log_probs = torch.randn(2, 3, 3, requires_grad=True)
    loss = oaxe_loss(log_probs, torch.zeros(2, 3, dtype=torch.bool))
    assert loss.tolist() == [0.0, 0.0]
    loss.sum().backward()
    assert (log_probs.grad == 0).all()
    assert oaxe_loss(log_probs[:0], torch.zeros(0, 3, dtype=torch.bool)).shape == (0,)


@pytest.mark.parametrize(
    "shape, skip, words",
    [((1, 3, 2), 0.1, r"log_probs \(B, T, T\) are needed"), ((1, 3, 3), 1.0, "skip must be in")],
)
def test_wrong_input_is_refused(shape, skip, words):
    with pytest.raises(ValueError, match=words):
        oaxe_loss(torch.zeros(shape), ALL, skip=skip)
