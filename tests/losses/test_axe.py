"""Aligned cross entropy against the table, cell by cell, and against every alignment."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.axe import axe_loss, axe_terms, best_alignment, pin_in_place
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None)
A, B, BLANK = 0, 1, 2
THREE = [[0.1, 0.1, 0.8], [0.7, 0.2, 0.1], [0.2, 0.6, 0.2]]


def probabilities(rows):
    return torch.tensor([rows], dtype=torch.float64)


def loss_of(logits, targets, blank, target_mask, slot_mask, skip_penalty=1.0):
    log_probs = logits.log_softmax(2)
    index = targets.masked_fill(~target_mask, 0).unsqueeze(1).expand(-1, logits.size(1), -1)
    given = log_probs.gather(2, index), log_probs[:, :, blank]
    return axe_loss(*given, target_mask, slot_mask, skip_penalty=skip_penalty)


def whole(rows, words, skip_penalty=1.0):
    """AXE in nats of one sentence, not divided by its words; by loss and reference."""
    logits, targets = probabilities(rows).log(), torch.tensor([words])
    masks = torch.ones(1, len(words)).bool(), torch.ones(1, len(rows)).bool()
    loss = loss_of(logits, targets, BLANK, *masks, skip_penalty)
    expected = reference.axe_loss(logits, targets, BLANK, *masks, skip_penalty)
    assert_near(loss, expected, torch.float64)
    return loss.item() * len(words)


# -- worked-out values -----------------------------------------------------------------------


def test_the_table_of_two_words_and_three_slots():
    """The first slot says the blank: -ln(.8 .7 .6); cross entropy at slots 1 and 2: 3.9120."""
    costs = -probabilities(THREE)[0].log()
    table = reference.axe_table(costs[:, :2].t().tolist(), costs[:, BLANK].tolist())
    expected = [
        [0, 0.2231, 2.5257, 4.1352],
        [2.3026, 2.3026, 0.5798, 2.1893],
        [4.6052, 4.6052, 2.1893, 1.0906],
    ]
    for row, values in zip(table, expected):
        assert [float(cell) for cell in row] == pytest.approx(values, abs=5e-5)
    assert whole(THREE, [A, B]) == pytest.approx(1.090644, abs=1e-6)
    assert -math.log(0.8 * 0.7 * 0.6) == pytest.approx(1.090644, abs=1e-6)
    assert (costs[0, A] + costs[1, B]).item() == pytest.approx(3.9120, abs=5e-5)
    masks = torch.ones(1, 2).bool(), torch.ones(1, 3).bool()
    found = best_alignment(costs[None, :, :2], costs[None, :, BLANK], *masks)
    assert found.slots.tolist() == [[1, 2]] and not found.skipped.any()
    assert found.blank.tolist() == [[True, False, False]]


@pytest.mark.parametrize("skip_penalty, expected", [(1.0, 1.966113), (3.0, 2.679463)])
def test_two_words_in_one_slot(skip_penalty, expected):
    """The first pays the penalty before the slot is done with, the second is aligned:
    delta (-ln .7) - ln .2."""
    assert whole([[0.7, 0.2, 0.1]], [A, B], skip_penalty) == pytest.approx(expected, abs=1e-6)
    assert -skip_penalty * math.log(0.7) - math.log(0.2) == pytest.approx(expected, abs=1e-6)


def test_the_diagonal():
    """-ln .6 - ln .8, the cross entropy at the words' own slots."""
    rows = [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]]
    assert whole(rows, [A, B]) == pytest.approx(0.733969, abs=1e-6)
    assert -math.log(0.6 * 0.8) == pytest.approx(0.733969, abs=1e-6)


def test_a_higher_penalty_moves_words_out_of_a_shared_slot():
    rows = [[0.45, 0.45, 0.1], [0.1, 0.2, 0.7]]
    costs = -probabilities(rows).log()
    masks = torch.ones(1, 2).bool(), torch.ones(1, 2).bool()
    for penalty, slots in ((1.0, [0, 0]), (3.0, [0, 1])):
        options = {"skip_penalty": penalty}
        found = best_alignment(costs[:, :, :2], costs[:, :, BLANK], *masks, **options)
        assert found.slots.tolist() == [slots]
        assert found.skipped.sum() == (penalty == 1) and found.blank.sum() == (penalty == 1)


def test_of_equal_alignments_the_one_that_aligns():
    even = torch.zeros(1, 3, 3)
    found = best_alignment(even, even[..., 0], *[torch.ones(1, 3).bool()] * 2)
    assert found.slots.tolist() == [[0, 1, 2]]
    assert not found.skipped.any() and not found.blank.any()


# -- every alignment, the reference --------------------------------------------------------------


def cheapest(costs, blank_costs):
    """Of all monotone maps of n words to m slots; slots that none maps to say the blank."""
    m, n = len(blank_costs), len(costs)
    return min(
        sum(costs[i][slot] for i, slot in enumerate(places))
        + sum(blank_costs[slot] for slot in set(range(m)) - set(places))
        for places in itertools.combinations_with_replacement(range(m), n)
    )


@pytest.mark.parametrize("n", range(1, 5))
@pytest.mark.parametrize("m", range(1, 5))
def test_without_a_penalty_it_is_the_least_of_all_alignments(n, m):
    seed = torch.Generator().manual_seed(10 * n + m)
    logits = 2 * torch.randn(20, m, 5, generator=seed, dtype=torch.float64)
    targets = torch.randint(4, (20, n), generator=seed)
    masks = torch.ones(20, n).bool(), torch.ones(20, m).bool()
    found = loss_of(logits, targets, 4, *masks)
    costs = -logits.log_softmax(2)
    least = [
        cheapest([costs[b, :, word].tolist() for word in words], costs[b, :, 4].tolist()) / n
        for b, words in enumerate(targets.tolist())
    ]
    assert_near(found, torch.tensor(least, dtype=torch.float64), torch.float64)
    assert_near(reference.axe_loss(logits, targets, 4, *masks), found, torch.float64)


@st.composite
def cases(draw):
    batch, slots, words = (
        draw(st.integers(1, 3)),
        draw(st.integers(0, 7)),
        draw(st.integers(0, 6)),
    )
    vocabulary, penalty = draw(st.sampled_from([2, 4, 9])), draw(st.sampled_from([1.0, 1.5, 4.0]))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = 2 * torch.randn(batch, slots, vocabulary, generator=seed, dtype=torch.float64)
    targets = torch.randint(vocabulary, (batch, words), generator=seed)
    share = draw(st.sampled_from([0.8, 1.0]))
    masks = [torch.rand(batch, size, generator=seed) < share for size in (words, slots)]
    return logits, targets, vocabulary - 1, *masks, penalty


@settings(fixed, max_examples=150)
@given(cases())
def test_value_and_gradient_equal_the_reference(case):
    logits, *rest = case
    logits = logits.requires_grad_()
    expected = reference.axe_loss(logits, *rest)
    loss = loss_of(logits, *rest)
    assert torch.equal(loss.isinf(), expected.isinf())
    assert_near(loss.nan_to_num(posinf=0), expected.nan_to_num(posinf=0), torch.float64, "value")
    share = torch.arange(1, len(logits) + 1, dtype=torch.float64).masked_fill(expected.isinf(), 0.0)
    grads = [
        torch.autograd.grad(x[share > 0] @ share[share > 0], logits)[0] for x in (expected, loss)
    ]
    assert_near(grads[1], grads[0], torch.float64, "gradient")


def test_gradcheck():
    seed = torch.Generator().manual_seed(3)
    words = torch.randn(2, 4, 3, generator=seed, dtype=torch.float64, requires_grad=True)
    blank = torch.randn(2, 4, generator=seed, dtype=torch.float64, requires_grad=True)
    masks = (
        torch.tensor([[1, 1, 1], [1, 1, 0]]).bool(),
        torch.tensor([[1] * 4, [1, 0, 1, 1]]).bool(),
    )
    assert torch.autograd.gradcheck(
        lambda *given: axe_loss(*(x.log_softmax(1) for x in given), *masks, skip_penalty=2.0),
        (words, blank),
    )


# -- invariants ------------------------------------------------------------------------------


def random_case(dtype=torch.float64):
    seed = torch.Generator().manual_seed(1)
    logits = (2 * torch.randn(3, 7, 9, generator=seed, dtype=torch.float64)).to(dtype)
    targets = torch.randint(8, (3, 5), generator=seed)
    lengths = torch.tensor([[5], [2], [0]]), torch.tensor([[7], [4], [0]])
    masks = torch.arange(5) < lengths[0], torch.arange(7) < lengths[1]
    return logits, targets, masks


def test_a_batch_is_its_sentences_and_padding_changes_nothing_whatever_it_holds():
    logits, targets, (words, slots) = random_case()
    together = loss_of(logits, targets, 8, words, slots, 2.0)
    for b in range(3):
        n, m = int(words[b].sum()), int(slots[b].sum())
        part = logits[b : b + 1, :m], targets[b : b + 1, :n]
        masks = words[b : b + 1, :n], slots[b : b + 1, :m]
        assert_near(together[b : b + 1], loss_of(*part, 8, *masks, 2.0), torch.float64)
    logits.masked_fill_(~slots.unsqueeze(2), 50.0)
    targets.masked_fill_(~words, 7)
    assert_near(loss_of(logits, targets, 8, words, slots, 2.0), together, torch.float64)


def test_masks_may_have_gaps():
    logits, targets, _ = random_case()
    words = torch.tensor([[0, 1, 1, 0, 1]] * 3).bool()
    slots = torch.tensor([[0, 1, 0, 1, 1, 1, 0]] * 3).bool()
    found = loss_of(logits, targets, 8, words, slots, 2.0)
    part = logits[:, [1, 3, 4, 5]], targets[:, [1, 2, 4]]
    alone = loss_of(*part, 8, torch.ones(3, 3).bool(), torch.ones(3, 4).bool(), 2.0)
    assert_near(found, alone, torch.float64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(dtype):
    logits, targets, masks = random_case(dtype)
    log_probs = logits.float().log_softmax(2)
    index = targets.unsqueeze(1).expand(-1, 7, -1)
    given = [x.to(dtype).requires_grad_() for x in (log_probs.gather(2, index), log_probs[..., 8])]
    loss = axe_loss(*given, *masks)
    assert loss.dtype == torch.float32
    assert_near(loss, axe_loss(*(x.double() for x in given), *masks), torch.float32)
    loss.sum().backward()
    assert all(x.grad.isfinite().all() and x.grad.dtype == dtype for x in given)


def test_without_words_the_loss_is_a_zero_of_the_graph():
    log_probs, blank = torch.randn(2, 3, 4, requires_grad=True), torch.randn(2, 3)
    none, slots = torch.zeros(2, 4, dtype=torch.bool), torch.ones(2, 3).bool()
    loss = axe_loss(log_probs, blank, none, slots)
    assert loss.tolist() == [0.0, 0.0]
    loss.sum().backward()
    assert (log_probs.grad == 0).all()
    assert axe_loss(log_probs[:0], blank[:0], none[:0], slots[:0]).shape == (0,)


def test_words_without_slots_cannot_be_said_and_nan_is_not_silent():
    log_probs, blank = torch.zeros(1, 2, 3) - 1, torch.zeros(1, 2) - 1
    words = torch.ones(1, 3).bool()
    assert axe_loss(log_probs, blank, words, torch.zeros(1, 2).bool()).item() == math.inf
    assert axe_loss(log_probs[:, :0], blank[:, :0], words, words[:, :0]).item() == math.inf
    log_probs[:, 1], blank[:, 1] = math.nan, math.nan  # a slot of a model that went astray
    assert axe_loss(log_probs, blank, words, torch.ones(1, 2).bool()).isnan().all()


# -- observed slots ----------------------------------------------------------------------------


@pytest.mark.parametrize("seen", itertools.product([False, True], repeat=4))
def test_what_is_observed_has_its_place_and_costs_nothing(seen):
    """The least of all monotone maps that leave observed words, and their slots, in place."""
    seed = torch.Generator().manual_seed(5)
    probs = torch.randn(1, 4, 6, generator=seed, dtype=torch.float64).mul(2).softmax(2)
    log_probs, blank = probs.log()[..., :4], probs.log()[..., 5]
    log_probs.requires_grad_()
    every, observed = torch.ones(1, 4).bool(), torch.tensor([seen])
    terms = axe_terms(*pin_in_place(log_probs, blank, observed), every, every)
    given = {t for t in range(4) if seen[t]}
    least = min(
        -sum(float(log_probs[0, slot, i]) for i, slot in enumerate(places) if i not in given)
        - sum(float(blank[0, slot]) for slot in set(range(4)) - set(places))
        for places in itertools.combinations_with_replacement(range(4), 4)
        if all((slot == i) or not {i, slot} & given for i, slot in enumerate(places))
    )
    assert terms.total.item() == pytest.approx(least, abs=1e-9)
    assert all(terms.alignment.slots[0, t] == t for t in given)
    terms.total.sum().backward()
    assert log_probs.grad.isfinite().all() and (log_probs.grad[observed] == 0).all()


# -- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape, penalty, words",
    [
        ((1, 3), 1.0, r"log_probs \(B, T, S\) and blank_log_probs \(B, T\) are needed"),
        ((1, 2, 3), 1.0, r"log_probs \(B, T, S\) and blank_log_probs \(B, T\) are needed"),
        ((1, 3, 2), 1.0, "target_mask must be a boolean tensor"),
        ((1, 3, 3), 0.5, "skip_penalty must be a finite number, 1 or above, not 0.5"),
        ((1, 3, 3), math.nan, "skip_penalty must be a finite number"),
    ],
)
def test_wrong_input_is_refused(shape, penalty, words):
    every = torch.ones(1, 3).bool()
    with pytest.raises(ValueError, match=words):
        axe_loss(torch.zeros(shape), torch.zeros(1, 3), every, every, skip_penalty=penalty)
