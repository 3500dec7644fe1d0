"""BLEU of single sentences against sacrebleu's."""

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.evaluation.mbr import utility_of
from fairseq_eisl.evaluation.metrics.sentence_bleu import SMOOTHINGS, sentence_bleu

words = st.lists(st.sampled_from("abc"), max_size=7)


@settings(derandomize=True, deadline=None, database=None)
@given(words.filter(bool), words.filter(bool))
def test_higher_orders_are_smoothed_as_by_sacrebleu(hypothesis, reference):
    expected = sacrebleu.sentence_bleu(
        " ".join(hypothesis), [" ".join(reference)],
        smooth_method="add-k", smooth_value=1, tokenize="none", use_effective_order=False,
    ).score  # fmt: skip
    assert 100 * sentence_bleu(hypothesis, reference, "higher") == pytest.approx(expected)


def test_all_orders_by_hand():
    """3/4, 2/3, 1/2, 0/1 with one added everywhere: .8, .75, 2/3, .5; with one added to all but
    the words."""
    pair = "the cat sat down".split(), "the cat sat on".split()
    assert sentence_bleu(*pair) == pytest.approx((0.8 * 0.75 * 2 / 3 * 0.5) ** 0.25)
    assert 100 * sentence_bleu(*pair) == pytest.approx(66.8740, abs=1e-4)
    assert 100 * sentence_bleu(*pair, "higher") == pytest.approx(65.8037, abs=1e-4)


@pytest.mark.parametrize("smoothing, value", [("exp", 59.4604), ("floor", 39.7636)])
def test_the_smoothings_that_are_not_rewards_are_sacrebleus(smoothing, value):
    """The first is the utility of minimum Bayes risk."""
    pair = "the cat sat down", "the cat sat on"
    found = sacrebleu.sentence_bleu(
        pair[0], [pair[1]], smooth_method=smoothing, tokenize="none", use_effective_order=False
    ).score
    assert found == pytest.approx(value, abs=1e-4)
    if smoothing == "exp":
        utility = utility_of("sentence_bleu")
        assert utility.both(*map(utility.prepare, pair))[0] == pytest.approx(found)


@given(words, words)
def test_it_is_between_0_and_1_and_1_for_equal_ones(hypothesis, reference):
    for smoothing in SMOOTHINGS:
        assert 0 <= sentence_bleu(hypothesis, reference, smoothing) <= 1
        if reference:
            assert sentence_bleu(reference, reference, smoothing) == pytest.approx(1)
    assert sentence_bleu([], reference) == 0


def test_an_unknown_smoothing_is_refused():
    with pytest.raises(ValueError, match="smoothing='some' is unknown; choose from all, higher"):
        sentence_bleu(["a"], ["a"], "some")
