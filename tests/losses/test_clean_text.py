"""N-grams weighed by a clean text, against counts that are made one by one."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import (
    CleanTextWeights,
    NGramWeights,
    clean_text,
    count_ngrams,
    eisl_loss,
    reference,
)

V = 5
fixed = settings(derandomize=True, deadline=None, database=None)
# Ids outside of the vocabulary, as of padding, are no tokens.
texts = st.lists(st.lists(st.integers(-1, V), max_size=6), max_size=5)


@settings(fixed, max_examples=100)
@given(texts, st.sampled_from([1, 7, 2**22]))
def test_no_pair_reaches_across_sentences(text, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_text, "_CHUNK", chunk)  # texts are counted in parts
        found = count_ngrams(text, V)
    tokens = Counter(x for sentence in text for x in sentence if 0 <= x < V)
    assert found.tokens.tolist() == [tokens[x] for x in range(V)]
    pairs = Counter(
        x * V + y for row in text for x, y in zip(row, row[1:]) if 0 <= min(x, y) <= max(x, y) < V
    )
    assert dict(zip(found.pairs.tolist(), found.pair_counts.tolist())) == pairs
    assert found.pairs.tolist() == sorted(pairs)


@settings(fixed, max_examples=200)
@given(texts, texts, st.lists(st.integers(-1, V), max_size=7), st.sampled_from([0.1, 1.0]),
       st.sampled_from([1.0, 3.0, math.inf]), st.sampled_from([1, 7, 2**22]))  # fmt: skip
def test_weights_equal_the_reference(clean, noisy, target, smoothing, cap, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clean_text, "_CHUNK", chunk)  # texts are counted in parts
        counts = count_ngrams(clean, V), count_ngrams(map(torch.tensor, noisy), V)
    weights = CleanTextWeights(*counts, smoothing=smoothing, cap=cap)
    found = weights(torch.tensor([target], dtype=torch.int64))
    expected = reference.clean_text_weights(clean, noisy, target, V, smoothing, cap)
    for ours, theirs in zip(found, expected):
        assert ours.shape == (1, len(theirs))
        assert ours[0].tolist() == pytest.approx(theirs, rel=1e-6)


def test_a_sentence_has_its_weights_in_any_batch():
    text = [[0, 1, 2], [2, 2], [4]]
    weights = CleanTextWeights(count_ngrams(text, V), count_ngrams(text[::2], V))
    pad = V
    both = weights(torch.tensor([[0, 1, 2], [2, 2, pad]]))
    alone = weights(torch.tensor([[2, 2]]))
    assert both.tokens[1, :2].tolist() == alone.tokens[0].tolist()
    assert both.pairs[1, :1].tolist() == alone.pairs[0].tolist()


def test_what_noise_made_counts_little():
    """Blanks (3) for a third of the words, and repeats, in text where neither is."""
    seed = torch.Generator().manual_seed(1)
    clean = [torch.tensor([0, 1, 2]) for _ in range(100)]
    blanks = [x.masked_fill(torch.rand(3, generator=seed) < 1 / 3, 3) for x in clean]
    repeats = [torch.tensor([0, 1, 1, 2]) for _ in range(100)]
    weights = CleanTextWeights(count_ngrams(clean, V), count_ngrams(blanks, V))
    found = weights(torch.tensor([[0, 1, 3]]))
    assert found.tokens[0, 2] < 0.01 < 0.9 < found.tokens[0, 0]
    assert found.pairs[0, 1] < 0.02 < 0.9 < found.pairs[0, 0]
    [(token, weight, share)] = weights.least(1)
    assert token == 3 and weight < 0.01 and 0.2 < share < 0.45
    weights = CleanTextWeights(count_ngrams(clean, V), count_ngrams(repeats, V))
    found = weights(torch.tensor([[0, 1, 1, 2]])).pairs[0].tolist()
    assert found == pytest.approx([1.33, 0, 1.33], abs=0.01)


def test_means_are_over_the_noisy_text():
    clean, noisy = [[0, 1]], [[0, 0, 1]]
    weights = CleanTextWeights(count_ngrams(clean, V), count_ngrams(noisy, V), 1.0, 5.0)
    k = 1.5  # occurrences in the noisy text that are one in the smaller, clean one
    tokens = [(1.5 + k) / (2 + k), (1.5 + k) / (1 + k)]
    pairs = [k / (1 + k), (1.5 + k) / (1 + k)]
    assert weights.means() == pytest.approx(((2 * tokens[0] + tokens[1]) / 3, sum(pairs) / 2))


def test_texts_without_a_sentence():
    none = count_ngrams([], V)
    for clean, noisy in ((none, none), (none, count_ngrams([[1, 2]], V))):
        found = CleanTextWeights(clean, noisy)(torch.tensor([[1, 2]]))
        assert found.tokens.isfinite().all() and found.pairs.isfinite().all()
    empty = CleanTextWeights(none, none)(torch.zeros(2, 0, dtype=torch.int64))
    assert empty.tokens.shape == (2, 0) and empty.pairs.shape == (2, 0)


@pytest.mark.parametrize(
    "numbers, message",
    [
        ({"smoothing": 0.0}, "smoothing must be a finite number above 0, not 0.0"),
        ({"smoothing": math.inf}, "smoothing must be a finite number above 0, not inf"),
        ({"smoothing": math.nan}, "smoothing must be a finite number above 0, not nan"),
        ({"cap": 0.5}, "cap must be 1 or above"),
        ({"cap": math.nan}, "cap must be 1 or above"),
    ],
)
def test_numbers_that_cannot_be_meant(numbers, message):
    with pytest.raises(ValueError, match=message):
        CleanTextWeights(count_ngrams([[1]], V), count_ngrams([[1]], V), **numbers)


def test_texts_of_two_vocabularies():
    with pytest.raises(ValueError, match="one vocabulary, not 5 and 6 ids"):
        CleanTextWeights(count_ngrams([[1]], V), count_ngrams([[1]], V + 1))


def test_weights_of_other_targets():
    logits, targets = torch.zeros(2, 3, V), torch.ones(2, 3, dtype=torch.int64)
    for tokens, pairs, name in ((2, 2, "tokens"), (3, 3, "pairs")):
        weights = NGramWeights(torch.ones(2, tokens), torch.ones(2, pairs))
        with pytest.raises(ValueError, match=rf"ngram_weights.{name} must have shape \(2, "):
            eisl_loss(logits, targets, ngram_weights=weights)


@pytest.mark.parametrize("selection", ["softmax", "sinkhorn", "count"])
def test_weights_of_padding_never_matter(selection):
    logits = torch.randn(1, 4, V, requires_grad=True)
    targets, mask = torch.tensor([[1, 2, 3, 0]]), torch.tensor([[True, True, True, False]])
    options = {"target_mask": mask, "selection": selection, "ngrams": (1, 2)}
    losses = []
    for garbage in (1.0, math.nan, math.inf):
        weights = NGramWeights(torch.ones(1, 4), torch.ones(1, 3))
        weights.tokens[0, 3] = weights.pairs[0, 2] = garbage
        losses.append(eisl_loss(logits, targets, ngram_weights=weights, **options))
        (grad,) = torch.autograd.grad(losses[-1], logits)
        assert grad.isfinite().all()
    assert losses[0] == losses[1] == losses[2]


def test_weights_are_no_part_of_the_graph():
    logits = torch.randn(1, 3, V, requires_grad=True)
    weights = NGramWeights(torch.ones(1, 3, requires_grad=True), torch.ones(1, 2))
    eisl_loss(logits, torch.tensor([[1, 2, 3]]), ngrams=(1,), ngram_weights=weights).backward()
    assert weights.tokens.grad is None and logits.grad.abs().sum() > 0


def test_the_first_token_behind_padding_has_its_own_weight():
    weights = NGramWeights(torch.tensor([[9.0, 2.0, 3.0]]), torch.tensor([[1.0, 0.5]]))
    real = torch.tensor([[False, True, True]])
    assert weights.of_tokens(real)[0, 1:].tolist() == [2.0, 0.5]
    assert weights.of_tokens(torch.ones_like(real)).equal(weights.of_tokens())


def test_a_pair_that_noise_drawn_anew_has_made_counts_little():
    text = [[0, 1, 2]] * 50
    found = CleanTextWeights(count_ngrams(text, V), count_ngrams(text, V))(torch.tensor([[2, 0]]))
    assert found.pairs.item() == pytest.approx(0.3 / 1.3)
