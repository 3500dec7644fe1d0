"""The similarity term of NAT-REG against its definition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.nat_regularization import similarity_loss
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)
STATES = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]], dtype=torch.float64)
BOTH = torch.tensor([[True, True]])


def test_worked_out_values():
    """(1 + .707107) (1 - 0); no word follows itself for free, equal words may be alike."""
    words = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    assert similarity_loss(STATES, words, BOTH).item() == pytest.approx(1.707107, abs=1e-6)
    same = torch.tensor([[[3.0, 4.0], [3.0, 4.0]]])
    assert similarity_loss(STATES, same, BOTH).item() == pytest.approx(0, abs=1e-6)


@st.composite
def cases(draw):
    batch, length = draw(st.tuples(st.integers(1, 3), st.integers(0, 5)))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    states = torch.randn(batch, length, 3, generator=seed, dtype=torch.float64)
    words = torch.randn(batch, length, 4, generator=seed, dtype=torch.float64)
    return states, words, torch.rand(batch, length, generator=seed) < 0.8


@settings(fixed, max_examples=100)
@given(cases())
def test_value_and_gradient_equal_the_reference(case):
    states, words, mask = case
    states.requires_grad_()
    share = torch.arange(1, len(mask) + 1, dtype=torch.float64)
    expected = reference.similarity_loss(states, words, mask)
    (grad,) = torch.autograd.grad((expected * share).sum(), states)
    loss = similarity_loss(states, words, mask)
    assert_near(loss, expected, torch.float64, "value")
    (loss * share).sum().backward()
    assert_near(states.grad, grad, torch.float64, "gradient")


def test_no_gradient_gets_into_the_words():
    words = torch.randn(1, 2, 3, requires_grad=True)
    states = torch.randn(1, 2, 3, requires_grad=True)
    similarity_loss(states, words, BOTH).sum().backward()
    assert words.grad is None and states.grad.abs().sum() > 0


def test_padding_changes_nothing_whatever_it_holds():
    torch.manual_seed(1)
    states, words = torch.randn(2, 6, 4), torch.randn(2, 6, 5)
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    whole = similarity_loss(states, words, mask)
    states[1, 3:], words[1, 3:] = torch.nan, torch.nan
    states.requires_grad_()
    padded = similarity_loss(states, words, mask)
    assert_near(padded, whole, torch.float32)
    padded.sum().backward()
    assert states.grad.isfinite().all() and (states.grad[1, 3:] == 0).all()
    alone = similarity_loss(states[1:, :3], words[1:, :3], mask[1:, :3])
    assert_near(whole[1:], alone, torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_that_of_its_inputs(dtype):
    torch.manual_seed(1)
    states, words = (100 * torch.randn(2, 5, 64)).to(dtype), torch.randn(2, 5, 64).to(dtype)
    mask = torch.ones(2, 5, dtype=torch.bool)
    loss = similarity_loss(states, words, mask)
    assert loss.dtype == torch.float32
    assert_near(loss, reference.similarity_loss(states, words, mask), torch.float32)


def test_one_word_is_a_zero_of_the_graph_and_nan_is_not_silent():
    states = torch.randn(1, 1, 3, requires_grad=True)
    loss = similarity_loss(states, torch.randn(1, 1, 3), torch.tensor([[True]]))
    assert loss.tolist() == [0.0]
    loss.sum().backward()
    assert (states.grad == 0).all()
    assert similarity_loss(STATES * torch.nan, STATES, BOTH).isnan().all()


def test_equal_and_zero_states_have_a_finite_gradient():
    for states in (torch.ones(1, 2, 3), torch.zeros(1, 2, 3)):
        states.requires_grad_()
        similarity_loss(states, torch.eye(3)[:2].unsqueeze(0), BOTH).sum().backward()
        assert states.grad.isfinite().all()


@pytest.mark.parametrize("words, mask", [((1, 3, 2), (1, 2)), ((1, 2), (1, 2)), ((1, 2, 2), (2,))])
def test_wrong_shapes_are_refused(words, mask):
    with pytest.raises(ValueError, match=r"\(B, T, C\)|mask"):
        similarity_loss(STATES, torch.zeros(words), torch.ones(mask, dtype=torch.bool))
