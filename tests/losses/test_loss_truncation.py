"""The window of losses and its threshold, beside a trace of lists."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses.loss_truncation import LossWindow
from fairseq_eisl.losses.reference import kept_sentences
from fairseq_eisl.losses.reference.loss_truncation import quantile

fixed = settings(derandomize=True, deadline=None, database=None, max_examples=200)


def test_the_trace_of_the_authors_dropper():
    """fraction 0.4, four losses: [5, 2, 3, 4] has its 60th percentile at 3.8."""
    window = LossWindow(0.4, 4, 4, 4)
    assert window.keep(torch.tensor([1.0, 2.0, 3.0])).all() and window.threshold == math.inf
    assert not window.keep(torch.tensor([4.0, 5.0])).any()
    assert window.threshold == pytest.approx(3.8)


def test_the_trace_with_five():
    """[3, 3.8, 3, 4, 5] after five that are all kept: 3.88, strictly below."""
    window = LossWindow(0.4, 5, 5, 5)
    assert window.keep(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).all()
    assert window.keep(torch.tensor([3.0, 3.8])).all()
    assert window.threshold == pytest.approx(3.88)
    assert quantile([1, 2, 3, 4, 5], 0.6) == pytest.approx(3.4)
    window.threshold = 3.4
    assert window.below(torch.arange(1.0, 6.0)).tolist() == [True, True, True, False, False]


def test_the_highest_share_is_left_out():
    """100 losses 1..100, of which the highest 30 % go once the window is full."""
    window = LossWindow(0.3, 100, 100, 100)
    losses = torch.arange(1.0, 101.0)
    assert window.keep(losses).all()
    assert window.keep(losses).tolist() == [loss <= 70 for loss in range(1, 101)]


def test_fewer_than_the_warmup_are_all_kept():
    window = LossWindow(0.9, 50, 100, 0)
    for _ in range(9):
        assert window.keep(torch.rand(11)).all()


@fixed
@given(st.data())
def test_it_is_the_trace(data):
    loss = st.floats(0, 20, width=32)
    batches = data.draw(st.lists(st.lists(loss, max_size=7), max_size=12))
    fraction = data.draw(st.sampled_from([0.0, 0.1, 0.4, 0.9]))
    numbers = [data.draw(st.integers(least, 12)) for least in (1, 0, 0)]
    window = LossWindow(fraction, *numbers)
    found = []
    for number, batch in enumerate(batches):
        if number == data.draw(st.integers(0, 12)):  # a resumed training
            state = window.state_dict()
            window = LossWindow(fraction, *numbers)
            window.load_state_dict(state)
        found.append(window.keep(torch.tensor(batch, dtype=torch.float64)).tolist())
    # A loss at the very threshold may fall to either side by rounding: the quantile is a sum.
    expected = kept_sentences(batches, fraction, *numbers)
    for losses, ours, theirs in zip(batches, found, expected):
        for own, other, value in zip(ours, theirs, losses):
            assert own == other or abs(value - window.threshold) < 1e-6


@pytest.mark.parametrize("q", [0.0, 0.1, 0.6, 1.0])
def test_the_quantile_is_numpys(q):
    values = np.random.default_rng(1).random(37)
    assert quantile(values, q) == pytest.approx(np.percentile(values, 100 * q))


def test_nan_is_kept_and_says_nothing():
    window = LossWindow(0.5, 4, 0, 0)
    keeps = window.keep(torch.tensor([1.0, math.nan, 3.0, math.inf]))
    assert keeps.tolist() == [True, True, False, False] and window.seen == 2


@pytest.mark.parametrize("size", [3, 5, 8])
def test_a_window_of_another_size_takes_the_last_losses(size):
    window, other = LossWindow(0.4, 5, 0, 100), LossWindow(0.4, size, 0, 100)
    window.note(torch.arange(7.0))
    other.load_state_dict(window.state_dict())
    assert list(other.values) == [2.0, 3.0, 4.0, 5.0, 6.0][-size:] and other.seen == 7
    other.note(torch.tensor([9.0]))
    assert list(other.values) == [2.0, 3.0, 4.0, 5.0, 6.0, 9.0][-size:]


@pytest.mark.parametrize(
    ("name", "value"),
    [("fraction", 1.0), ("fraction", -0.1), ("size", 0), ("warmup", -1), ("interval", -1)],
)
def test_wrong_numbers_are_named(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be .* not {value}"):
        LossWindow(**{name: value})


def test_losses_below_are_on_their_own_device_and_half_precision_is_fine():
    window = LossWindow(0.5, 4, 0, 0)
    assert window.keep(torch.tensor([1.0, 2.0], dtype=torch.bfloat16)).tolist() == [True, False]
    assert window.keep(torch.zeros(0)).tolist() == []
