"""Worked-out values: a graph of four vertices, a CTC output of four slots."""

import math

import pytest
import torch

from fairseq_eisl.losses import EISLOptions
from fairseq_eisl.losses.latent import (
    ctc_best_alignment,
    ctc_expected_ngrams,
    ctc_log_likelihood,
    ctc_ngram_log_probs,
    dag_best_alignment,
    dag_expected_ngrams,
    dag_log_likelihood,
    dag_ngram_log_probs,
    eisl_ctc_terms,
    eisl_dag_terms,
    passing_probabilities,
)

FOUR = torch.ones(1, 4).bool()
# A graph: what its vertices say, where paths go on, the target.
SAY = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
GO = [[0, 0.5, 0.3, 0.2], [0, 0, 0.6, 0.4], [0, 0, 0, 1], [0, 0, 0, 0]]
WORDS = torch.tensor([[0, 1, 2]])
# CTC: blank, a, b.
SLOTS = [[0.2, 0.7, 0.1], [0.5, 0.2, 0.3], [0.1, 0.2, 0.7], [0.3, 0.6, 0.1]]


def log(rows):
    return torch.tensor([rows], dtype=torch.float64).log()


def counts(ngrams):
    """By order, how often each n-gram is expected."""
    return {order.n: order.log_probs.exp().sum(1)[0].tolist() for order in ngrams}


def near(values):
    return pytest.approx(values, abs=1e-12)


def dag_counts(words=WORDS, orders=(1, 2, 3)):
    log_probs = log(SAY)[:, :, words[0]]
    return counts(dag_ngram_log_probs(log_probs, log(GO), words, output_mask=FOUR, orders=orders))


def dag_loss(n, **options):
    chosen = EISLOptions((n,), **options)
    masks = {"output_mask": FOUR, "target_mask": FOUR[:, :3]}
    return eisl_dag_terms(log(SAY), log(GO), WORDS, **masks, options=chosen).total().item()


def test_passing_probabilities_and_expected_numbers_of_the_graph():
    assert passing_probabilities(log(GO), FOUR)[0].tolist() == near([1, 0.5, 0.6, 1])
    found = dag_counts()
    assert found == {
        1: near([1.17, 0.81, 1.12]),
        2: near([0.357, 0.418]),
        3: near([0.219]),
    }
    # 1, then 2 or 3 or 4: lengths 4 (.3), 3 (.5), 2 (.2)
    lengths = [dag_expected_ngrams(log(GO), FOUR, n).item() for n in (1, 2, 3, 4)]
    assert lengths == near([3.1, 2.1, 1.1, 0.3])


@pytest.mark.parametrize("n, whole, mean", [
    (1, 1.069553, 1.069553), (2, 1.733302, 1.010791), (3, 2.151986, 0.743983)
])  # fmt: skip
def test_eisl_of_the_graph(n, whole, mean):
    assert dag_loss(n, selection="softmax", normalize=False) == pytest.approx(whole, abs=1e-6)
    assert dag_loss(n, selection="softmax") == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_soft_eisl_is_the_entropy_less_the_logarithm_of_the_expected_count(n):
    """No clipping here: below the target's own count but for n = 1."""
    terms = eisl_dag_terms(
        *(log(SAY), log(GO), WORDS),
        output_mask=FOUR,
        target_mask=FOUR[:, :3],
        options=EISLOptions((n,), selection="softmax", normalize=False),
    )
    mean = sum(map(math.log, dag_counts()[n])) / (4 - n)
    assert terms.total().item() == pytest.approx(terms.entropy[0, 0].item() - mean, abs=1e-9)


def test_count_is_clipped_at_the_targets_own():
    """-log of 1.17, .81 and 1.12, of which two are more than the one that there is."""
    assert dag_loss(1, selection="count") == pytest.approx(-math.log(0.81) / 3, abs=1e-9)
    expected = -(math.log(0.357) + math.log(0.418)) / 2
    assert dag_loss(2, selection="count", normalize=False) == pytest.approx(expected, abs=1e-9)
    assert dag_loss(2, selection="count") == pytest.approx(expected / 2, abs=1e-9)


def test_fuzzy_alignment_is_made_of_the_same_numbers():
    """The precision of bigrams: those of the target that are expected, of all that are."""
    matched = sum(dag_counts()[2])
    number = dag_expected_ngrams(log(GO), FOUR, 2).item()
    assert (matched, number) == (pytest.approx(0.775), pytest.approx(2.1))
    assert -matched / number == pytest.approx(-0.369048, abs=1e-6)


def test_likelihood_and_best_path_of_the_graph():
    log_probs = log(SAY)[:, :, WORDS[0]]
    found = dag_log_likelihood(log_probs, log(GO), output_mask=FOUR, target_mask=FOUR[:, :3])
    assert found.exp().item() == pytest.approx(0.1344)
    assert found.item() == pytest.approx(-2.006935, abs=1e-6)
    # 1-2-4: .7 .5 .3 .4 .8 = .0336; 1-3-4: .7 .3 .6 .8 = .1008
    path = dag_best_alignment(log_probs, log(GO), output_mask=FOUR, target_mask=FOUR[:, :3])
    assert path.tolist() == [[0, 2, 3]]


@pytest.mark.parametrize("words, expected", [
    ([1, 2, 1], {1: [1.4, 0.89, 1.4], 2: [0.6205, 0.531], 3: [0.3738]}),
    ([1, 1, 2], {1: [1.4, 1.4, 0.89], 2: [0.103, 0.6205], 3: [0.007]}),
], ids=["aba", "aab"])  # fmt: skip
def test_expected_numbers_of_ctc(words, expected):
    targets = torch.tensor([words])
    given = log(SLOTS)[:, :, words], log(SLOTS)[:, :, 0], targets
    found = counts(ctc_ngram_log_probs(*given, output_mask=FOUR, orders=(1, 2, 3)))
    assert found == {n: near(values) for n, values in expected.items()}
    # What it says as a whole, where no other trigram begins with it.
    likelihood = ctc_log_likelihood(
        log(SLOTS), targets, 0, output_mask=FOUR, target_mask=FOUR[:, :3]
    )
    assert likelihood.exp().item() <= expected[3][0] + 1e-12


def test_expected_lengths_of_ctc():
    found = [ctc_expected_ngrams(log(SLOTS), 0, output_mask=FOUR, n=n).item() for n in (1, 2, 3)]
    assert found == near([2.29, 1.293, 0.4267])


def test_bigram_matching_of_ctc_is_count():
    """aab: -log(.103) and -log(.6205), neither of them clipped."""
    options = EISLOptions((2,), selection="count", normalize=False)
    masks = {"output_mask": FOUR, "target_mask": FOUR[:, :3]}
    terms = eisl_ctc_terms(log(SLOTS), torch.tensor([[1, 1, 2]]), 0, **masks, options=options)
    expected = -(math.log(0.103) + math.log(0.6205)) / 2
    assert terms.total().item() == pytest.approx(expected, abs=1e-9)


def test_best_alignment_of_ctc():
    """aab needs a blank in the midst: a - a b, the only way."""
    targets = torch.tensor([[1, 1, 2]])
    given = log(SLOTS)[:, :, targets[0]], log(SLOTS)[:, :, 0], targets
    assert ctc_best_alignment(*given, output_mask=FOUR).tolist() == [[0, -1, 1, 2]]
    # ab: .7 .5 .7 .3 beats .7 .3 .7 .3 and the others
    two = torch.tensor([[1, 2]])
    given = log(SLOTS)[:, :, two[0]], log(SLOTS)[:, :, 0], two
    assert ctc_best_alignment(*given, output_mask=FOUR).tolist() == [[0, -1, 1, -1]]
