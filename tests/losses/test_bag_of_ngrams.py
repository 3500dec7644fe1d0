"""Bags of n-grams against counting over the whole vocabulary."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.bag_of_ngrams import bag_of_ngrams_loss
from tests.losses.eisl_cases import masks
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)
# Three positions over a, b, c; the target is a b a.
P = torch.tensor([[[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1]]], dtype=torch.float64)
ABA = torch.tensor([[0, 1, 0]])


def loss_of(logits, targets, output_mask=None, target_mask=None, n=2):
    ids = targets.clamp(min=0)
    index = ids.unsqueeze(1).expand(-1, logits.size(1), -1)
    log_probs = logits.log_softmax(2).gather(2, index)
    if output_mask is None:
        output_mask = torch.ones(logits.shape[:2], dtype=torch.bool)
    if target_mask is None:
        target_mask = torch.ones_like(targets, dtype=torch.bool)
    rest = {"output_mask": output_mask, "target_mask": target_mask, "n": n}
    return bag_of_ngrams_loss(log_probs, targets, **rest)


@pytest.mark.parametrize("n, value", [(1, 0.233333), (2, 0.545)])
def test_worked_out_values(n, value):
    """n = 1: E(a) = 1.3 of 2, E(b) = 1.4 of 1: 1 - 2.3 / 3. n = 2: E(ab) = .5, E(ba) = .41."""
    assert loss_of(P.log(), ABA, n=n).item() == pytest.approx(value, abs=1e-6)


def test_worked_out_value_beside_cross_entropy():
    """A distance of 2.18 over 2 + 2 bigrams; 0.9 of it and 0.1 of cross entropy."""
    bag = loss_of(P.log(), ABA, n=2).item()
    ce = torch.nn.functional.nll_loss(P[0].log(), ABA[0]).item()
    assert 4 * bag == pytest.approx(2.18) and ce == pytest.approx(0.520216, abs=1e-6)
    assert 0.9 * bag + 0.1 * ce == pytest.approx(0.542522, abs=1e-6)


@st.composite
def cases(draw):
    batch, positions, length = draw(st.tuples(st.integers(1, 2), *[st.integers(0, 5)] * 2))
    vocabulary = draw(st.sampled_from([1, 2, 3]))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    scale = draw(st.sampled_from([0.3, 2.0]))
    logits = torch.randn(batch, positions, vocabulary, generator=seed, dtype=torch.float64) * scale
    target_mask, output_mask = draw(masks(batch, length)), draw(masks(batch, positions))
    targets = torch.randint(vocabulary, (batch, length), generator=seed)
    if target_mask is not None:
        targets = targets.masked_fill(~target_mask, -100)
    return logits, targets, output_mask, target_mask, draw(st.integers(1, 3))


def compare(case, dtype):
    logits, targets, output_mask, target_mask, n = case
    logits = logits.to(dtype).requires_grad_()
    expected = reference.bag_of_ngrams_loss(logits, targets, output_mask, target_mask, n=n)
    share = torch.arange(1, len(targets) + 1, dtype=torch.float64)
    (grad,) = torch.autograd.grad((expected * share).sum(), logits)
    loss = loss_of(logits, targets, output_mask, target_mask, n)
    assert_near(loss, expected, dtype, "value")
    (loss * share.to(dtype)).sum().backward()
    assert_near(logits.grad, grad, dtype, "gradient")
    assert ((loss >= -1e-6) & (loss <= 1 + 1e-6)).all()


@settings(fixed, max_examples=150)
@given(cases())
def test_value_and_gradient_equal_the_reference(case):
    compare(case, torch.float64)


@settings(fixed, max_examples=40)
@given(cases())
def test_the_same_in_float32(case):
    compare(case, torch.float32)


def test_gradcheck():
    logits = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([[0, 1, 0, 1], [2, 3, 4, 4]])
    for n in (1, 2, 3):
        torch.autograd.gradcheck(lambda x, n=n: loss_of(x, targets, n=n), logits)


def test_impossible_tokens_have_no_part_and_give_finite_gradients():
    log_probs = torch.full((1, 3, 2), -float("inf")).requires_grad_()
    mask = torch.ones(1, 3, dtype=torch.bool)
    rest = {"output_mask": mask, "target_mask": mask[:, :2], "n": 2}
    loss = bag_of_ngrams_loss(log_probs, torch.tensor([[5, 6]]), **rest)
    assert loss.item() == 1.0
    loss.sum().backward()
    assert (log_probs.grad == 0).all()


def test_too_short_for_the_order_is_a_zero_of_the_graph():
    logits = torch.randn(2, 3, 4, requires_grad=True)
    target_mask = torch.tensor([[True, True, True], [True, False, False]])
    loss = loss_of(logits, torch.zeros(2, 3).long(), target_mask=target_mask, n=2)
    assert loss[0] > 0 and loss[1] == 0
    longer = loss_of(logits, torch.zeros(2, 3).long(), n=4)
    assert longer.tolist() == [0.0, 0.0] and longer.requires_grad


@pytest.mark.parametrize(
    "shape, n, words", [((2, 3), 2, r"targets \(B, S\) are needed"), ((1, 2), 0, "n must be 1 or")]
)
def test_wrong_input_is_refused(shape, n, words):
    mask = torch.ones(shape, dtype=torch.bool)
    rest = {"output_mask": torch.ones(1, 4, dtype=torch.bool), "target_mask": mask, "n": n}
    with pytest.raises(ValueError, match=words):
        bag_of_ngrams_loss(torch.zeros(1, 4, 2), torch.zeros(shape).long(), **rest)
