"""The content loss of style transfer against its definition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.content_words import content_loss
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)


@st.composite
def cases(draw):
    batch, length, words = draw(st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 4)))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    soft = torch.randn(batch, length, 3, generator=seed, dtype=torch.float64)
    content = torch.randn(batch, words, 3, generator=seed, dtype=torch.float64)
    masks = (torch.rand(batch, n, generator=seed) < 0.7 for n in (length, words))
    return soft, content, *masks


@settings(fixed, max_examples=100)
@given(cases())
def test_value_and_gradient_equal_the_reference(case):
    soft, content, mask, content_mask = case
    found, expected = (
        (of(x, mask, content, content_mask), x)
        for of, x in (
            (content_loss, soft.clone().requires_grad_()),
            (reference.content_loss, soft.clone().requires_grad_()),
        )
    )
    assert_near(found[0], expected[0], torch.float64)
    for value, _ in (found, expected):
        value.sum().backward()
    assert_near(found[1].grad, expected[1].grad, torch.float64)


def test_what_stands_outside_the_masks_changes_nothing():
    soft, content = torch.randn(1, 3, 2), torch.randn(1, 3, 2)
    mask = torch.tensor([[True, True, False]])
    before = content_loss(soft, mask, content, mask)
    soft[0, 2], content[0, 2] = float("nan"), float("nan")
    assert torch.equal(content_loss(soft, mask, content, mask), before)


def test_a_word_that_is_said_costs_nothing_and_no_gradient_gets_into_the_words():
    soft = torch.randn(1, 4, 3, dtype=torch.float64, requires_grad=True)
    content = soft.detach()[:, 2:3].clone().requires_grad_()
    all_of_them = torch.ones(1, 4, dtype=torch.bool)
    loss = content_loss(soft, all_of_them, content, all_of_them[:, :1])
    assert loss.item() == pytest.approx(0, abs=1e-5)
    loss.sum().backward()
    assert soft.grad.isfinite().all() and content.grad is None


def test_gradcheck():
    soft = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    content, mask = torch.randn(2, 2, 2, dtype=torch.float64), torch.ones(2, 3, dtype=torch.bool)
    assert torch.autograd.gradcheck(lambda x: content_loss(x, mask, content, mask[:, :2]), soft)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match=r"not \(1, 2, 3\) beside \(1, 2, 4\)"):
        mask = torch.ones(1, 2, dtype=torch.bool)
        content_loss(torch.zeros(1, 2, 3), mask, torch.zeros(1, 2, 4), mask)
