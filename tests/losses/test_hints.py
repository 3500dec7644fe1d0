"""Hints of a teacher against their definitions."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.hints import align_hint_loss, hidden_hint_loss
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)
BOTH = torch.tensor([[True, True]])


def states(cosine):
    """Two of that cosine."""
    return torch.tensor([[[2.0, 0.0], [cosine, (1 - cosine**2) ** 0.5]]], dtype=torch.float64)


def hidden(student, teacher, **thresholds):
    return hidden_hint_loss([states(student)], [states(teacher)], BOTH, **thresholds).item()


def test_worked_out_values_of_states():
    """-ln (1 - .6); nothing where the student tells the two apart, or the teacher does not."""
    assert hidden(0.6, 0.2) == pytest.approx(0.916291, abs=1e-6)
    assert hidden(0.05, 0.2) == hidden(0.6, 0.95) == 0
    assert hidden(0.05, 0.2, student_threshold=0.0) == pytest.approx(-math.log(0.95))
    assert hidden(0.6, 0.95, teacher_threshold=1.0) == pytest.approx(0.916291, abs=1e-6)
    assert hidden(1.0, 0.2) == pytest.approx(-math.log(1e-6))  # clamped


def test_the_thresholds_count():
    exact = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # a cosine of 0
    found = hidden_hint_loss([exact], [exact], BOTH, student_threshold=0.0, teacher_threshold=0.0)
    close = torch.tensor([[[1.0, 0.0], [0.6, 0.8]]])
    counted = hidden_hint_loss([close], [exact], BOTH, teacher_threshold=0.0)
    assert found.item() == 0 and counted.item() == pytest.approx(0.916291, abs=1e-6)


def test_worked_out_values_of_attention():
    """.5 ln (.5 / .75) + .5 ln (.5 / .25); a weight of 0 of the student is 1e-9."""
    teacher = torch.tensor([[[[0.5, 0.5]]]], dtype=torch.float64)
    here, both = torch.tensor([[True]]), BOTH
    student = torch.tensor([[[[0.75, 0.25]]]], dtype=torch.float64)
    assert align_hint_loss([student], [teacher], here, both).item() == pytest.approx(
        0.143841, abs=1e-6
    )
    none = torch.tensor([[[[1.0, 0.0]]]], dtype=torch.float64)
    found = align_hint_loss([none], [teacher], here, both).item()
    assert found == pytest.approx(math.log(0.5) - 0.5 * math.log(1e-9))
    assert align_hint_loss([teacher], [none], here, both).item() == pytest.approx(math.log(2))


@st.composite
def cases(draw):
    batch, length, sources = (draw(st.integers(*ends)) for ends in ((1, 3), (0, 5), (1, 4)))
    layers, heads = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def normal(*shape):
        return torch.randn(batch, *shape, generator=seed, dtype=torch.float64)

    hidden = [[normal(length, width) for _ in range(layers)] for width in (3, 2)]
    mask = torch.rand(batch, length, generator=seed) < 0.8
    source_mask = torch.rand(batch, sources, generator=seed) < 0.8
    source_mask[:, 0] = True
    gap = source_mask[:, None, None, :].logical_not()
    attention = [
        [
            (2 * normal(heads, length, sources)).masked_fill(gap, -math.inf).softmax(3)
            for _ in range(layers)
        ]
        for _ in range(2)
    ]
    thresholds = draw(st.sampled_from([(0.1, 0.9), (-1.0, 1.0), (0.5, 0.0)]))
    return hidden, attention, mask, source_mask, thresholds


def check(found_of, expected_of, layers, batch):
    """Value and gradient of the student's layers."""
    for layer in layers:
        layer.requires_grad_()
    share = torch.arange(1, batch + 1, dtype=torch.float64)
    expected, found = expected_of(), found_of()
    assert_near(found, expected, torch.float64, "value")
    grads = torch.autograd.grad((expected * share).sum(), layers, allow_unused=True)
    ours = torch.autograd.grad((found * share).sum(), layers)
    for grad, own in zip(grads, ours):
        assert_near(own, torch.zeros_like(own) if grad is None else grad, torch.float64, "gradient")


@settings(fixed, max_examples=60)
@given(cases())
def test_states_equal_the_reference(case):
    (student, teacher), _, mask, _, (ours, theirs) = case
    thresholds = {"student_threshold": ours, "teacher_threshold": theirs}
    check(
        lambda: hidden_hint_loss(student, teacher, mask, **thresholds),
        lambda: reference.hidden_hint_loss(student, teacher, mask, **thresholds),
        student,
        len(mask),
    )


@settings(fixed, max_examples=60)
@given(cases())
def test_attention_equals_the_reference(case):
    _, (student, teacher), mask, source_mask, _ = case
    check(
        lambda: align_hint_loss(student, teacher, mask, source_mask),
        lambda: reference.align_hint_loss(student, teacher, mask, source_mask),
        student,
        len(mask),
    )


def test_no_gradient_gets_into_the_teacher():
    student, teacher = (torch.randn(1, 2, 3, requires_grad=True) for _ in range(2))
    hidden_hint_loss(
        [student], [teacher], BOTH, student_threshold=-1, teacher_threshold=1
    ).sum().backward()
    assert teacher.grad is None and student.grad.abs().sum() > 0
    student, teacher = (torch.rand(1, 1, 2, 3, requires_grad=True) for _ in range(2))
    rest = BOTH, torch.ones(1, 3, dtype=torch.bool)
    align_hint_loss([student], [teacher], *rest).sum().backward()
    assert teacher.grad is None and student.grad.abs().sum() > 0


def test_padding_changes_nothing_whatever_it_holds():
    torch.manual_seed(1)
    student, teacher = torch.randn(2, 6, 4), torch.randn(2, 6, 4)
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    thresholds = {"student_threshold": -1.0, "teacher_threshold": 1.0}
    whole = hidden_hint_loss([student], [teacher], mask, **thresholds)
    student[1, 3:], teacher[1, 3:] = torch.nan, torch.nan
    student.requires_grad_()
    padded = hidden_hint_loss([student], [teacher], mask, **thresholds)
    assert_near(padded, whole, torch.float32)
    padded.sum().backward()
    assert student.grad.isfinite().all() and (student.grad[1, 3:] == 0).all()
    student = student.detach()
    alone = hidden_hint_loss([student[1:, :3]], [teacher[1:, :3]], mask[1:, :3], **thresholds)
    assert_near(alone, whole[1:], torch.float32)

    student, teacher = (torch.randn(2, 2, 6, 5).softmax(3) for _ in range(2))
    sources = torch.tensor([[True] * 5, [True] * 4 + [False]])
    whole = align_hint_loss([student], [teacher], mask, sources)
    for weights in (student, teacher):
        weights[1, :, 3:], weights[1, :, :, 4] = torch.nan, torch.nan
    student.requires_grad_()
    padded = align_hint_loss([student], [teacher], mask, sources)
    assert_near(padded, whole, torch.float32)
    padded.sum().backward()
    assert student.grad.isfinite().all() and (student.grad[1, :, 3:] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_that_of_its_inputs(dtype):
    torch.manual_seed(1)
    student, teacher = ((30 * torch.randn(2, 5, 64) + 20).to(dtype) for _ in range(2))
    mask = torch.ones(2, 5, dtype=torch.bool)
    loss = hidden_hint_loss([student], [teacher], mask)
    assert loss.dtype == torch.float32 and (loss > 0).all()
    expected = reference.hidden_hint_loss([student], [teacher], mask)
    assert_near(loss, expected, torch.float32)


def test_without_places_the_losses_are_zeros_of_the_graph_and_nan_is_not_silent():
    none = torch.zeros(1, 2, dtype=torch.bool)
    student = torch.randn(1, 2, 3, requires_grad=True)
    attention = torch.rand(1, 1, 2, 3, requires_grad=True)
    sources = torch.ones(1, 3, dtype=torch.bool)
    for loss in (
        hidden_hint_loss([student], [student], none),
        align_hint_loss([attention], [attention], none, sources),
    ):
        assert loss.tolist() == [0.0] and loss.requires_grad
        loss.sum().backward()
    assert (student.grad == 0).all() and (attention.grad == 0).all()
    nan = student * torch.nan
    assert hidden_hint_loss([nan], [student], BOTH).isnan().all()
    assert hidden_hint_loss([student], [nan], BOTH, student_threshold=-1).isnan().all()
    assert align_hint_loss([attention * torch.nan], [attention], BOTH, sources).isnan().all()
    assert align_hint_loss([attention], [attention * torch.nan], BOTH, sources).isnan().all()


@pytest.mark.parametrize(
    "student, teacher, words",
    [
        ([], [], "as many layers of the teacher as of the student"),
        ([(1, 2, 3)], [(1, 2, 3)] * 2, "at least one, not 2 and 1"),
        ([(1, 2, 3)], [(1, 3, 3)], r"layers \(B, T, C\) of equal shapes"),
        ([(1, 2)], [(1, 2)], r"layers \(B, T, C\) of equal shapes"),
    ],
)
def test_wrong_layers_are_refused(student, teacher, words):
    with pytest.raises(ValueError, match=words):
        hidden_hint_loss(*([torch.zeros(s) for s in shapes] for shapes in (student, teacher)), BOTH)


def test_other_heads_are_refused():
    student, teacher = torch.zeros(1, 2, 2, 3), torch.zeros(1, 4, 2, 3)
    with pytest.raises(ValueError, match=r"\(B, H, T, S\) of equal shapes are needed"):
        align_hint_loss([student], [teacher], BOTH, torch.ones(1, 3, dtype=torch.bool))
