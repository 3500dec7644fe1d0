"""EISL from log-probabilities of tokens or n-grams, wherever they come from."""

import pytest
import torch
from hypothesis import given, settings

from fairseq_eisl.losses import (
    EISLOptions,
    NGramLogProbs,
    eisl_from_log_probs,
    eisl_from_ngram_log_probs,
    eisl_logit_terms,
)
from tests.losses.eisl_cases import Case, cases, example
from tests.tolerances import assert_near

fixed = settings(derandomize=True, deadline=None, database=None, max_examples=100)


def token_log_probs(case: Case):
    """(B, T, S), and the targets without what stands in their padding."""
    targets = case.targets.clamp(min=0)
    index = targets.unsqueeze(1).expand(-1, case.logits.size(1), -1)
    return case.logits.log_softmax(2).gather(2, index), targets


@fixed
@given(cases())
def test_from_log_probs_equals_from_logits(case):
    log_probs, targets = token_log_probs(case)
    rest = {**case.masks, "options": EISLOptions(**case.options), "generator": case.seeds}
    expected = eisl_logit_terms(case.logits, case.targets, **rest)
    found = eisl_from_log_probs(log_probs, targets, **rest)
    for ours, theirs in zip(found, expected):
        assert_near(ours, theirs, torch.float64)


def windows(log_probs, mask, n):
    """Sums of n neighbours along the diagonal, and the places where they are real."""
    positions, length = log_probs.size(1) - n + 1, log_probs.size(2) - n + 1
    parts = [log_probs[:, j : j + positions, j : j + length] for j in range(n)]
    places = torch.stack([mask[:, j : j + positions] for j in range(n)]).all(0)
    return NGramLogProbs(n, sum(parts), places)


@pytest.mark.parametrize("selection", ["gumbel", "softmax", "sinkhorn"])
@pytest.mark.parametrize("normalize", [True, False])
def test_ngrams_of_neighbouring_positions_are_those_of_tokens(selection, normalize):
    case = example()
    log_probs, targets = token_log_probs(case)
    options = EISLOptions((1, 2, 3), selection=selection, normalize=normalize)
    mask = torch.ones(log_probs.shape[:2], dtype=torch.bool)
    rest = {"target_mask": case.target_mask, "options": options, "generator": case.seeds}
    expected = eisl_from_log_probs(log_probs, targets, **rest)
    found = eisl_from_ngram_log_probs(
        [windows(log_probs, mask, n) for n in (1, 2, 3)],
        targets,
        attached_zero=log_probs.new_zeros(len(targets)),
        output_length=mask.sum(1),
        **rest,
    )
    for ours, theirs in zip(found, expected):
        assert_near(ours, theirs, torch.float64)


def dag_ngrams(token_probs, links, target, n):
    """(L, S - n + 1): the probability that the path of a directed acyclic decoder says the
    target's n-gram at s from vertex t on; by recursion over its words."""
    size = len(links)
    passing = torch.linalg.solve(torch.eye(size).double() - links.t(), torch.eye(size).double()[0])

    def rest(t, words):
        if len(words) == 1:
            return token_probs[t, words[0]]
        later = sum(links[t, u] * rest(u, words[1:]) for u in range(t + 1, size))
        return token_probs[t, words[0]] * later

    starts = range(len(target) - n + 1)
    rows = [[passing[t] * rest(t, target[s : s + n]) for s in starts] for t in range(size)]
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize(
    "normalize, expected",
    [(False, [1.069553, 1.733302, 2.151986]), (True, [1.069553, 1.010791, 0.743983])],
)
def test_a_directed_acyclic_decoder_has_the_worked_out_values(normalize, expected):
    """Four vertices, three words: values that were checked by counting all paths and outputs.

    An n-gram may be impossible at a vertex: its log-probability is the floor's there.
    """
    token_probs = torch.tensor(
        [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]], dtype=torch.float64
    )
    links = torch.zeros(4, 4, dtype=torch.float64)
    links[0, 1:] = torch.tensor([0.5, 0.3, 0.2])
    links[1, 2:] = torch.tensor([0.6, 0.4])
    links[2, 3] = 1.0
    orders = []
    for n in (1, 2, 3):
        found = dag_ngrams(token_probs, links, [0, 1, 2], n)
        places = torch.ones(1, 4, dtype=torch.bool)
        orders.append(NGramLogProbs(n, found.log().unsqueeze(0), places))
    counts = [order.log_probs.exp().sum(1)[0].tolist() for order in orders]
    assert counts[0] == pytest.approx([1.17, 0.81, 1.12])
    assert counts[1] == pytest.approx([0.357, 0.418]) and counts[2] == pytest.approx([0.219])
    terms = eisl_from_ngram_log_probs(
        orders,
        torch.tensor([[0, 1, 2]]),
        attached_zero=torch.zeros(1, dtype=torch.float64),
        output_length=torch.tensor([4]),
        options=EISLOptions((1, 2, 3), selection="softmax", normalize=normalize, floor=-400.0),
    )
    assert terms.losses[0, :3].tolist() == pytest.approx(expected, abs=1e-6)


def test_impossible_ngrams_cost_the_floor_and_get_no_gradient():
    """The floor is a token's: an n-gram's is n times as low."""
    log_probs = torch.full((1, 2, 1), -200.0, dtype=torch.float64, requires_grad=True)
    terms = eisl_from_ngram_log_probs(
        [NGramLogProbs(2, log_probs, torch.ones(1, 2, dtype=torch.bool))],
        torch.tensor([[5, 6]]),
        attached_zero=log_probs[:, :0].sum((1, 2)),
        output_length=torch.tensor([3]),
        options=EISLOptions((2,), selection="softmax", normalize=False),
    )
    assert terms.total().item() == pytest.approx(40.0)
    terms.total().sum().backward()
    assert (log_probs.grad == 0).all()


def test_without_tokens_the_loss_is_a_zero_of_the_graph():
    log_probs = torch.zeros(2, 3, 0, requires_grad=True)
    loss = eisl_from_log_probs(log_probs, torch.zeros(2, 0, dtype=torch.long)).total()
    assert loss.tolist() == [0.0, 0.0] and loss.requires_grad


@pytest.mark.parametrize(
    "log_probs, targets, message",
    [
        (torch.zeros(2, 3), torch.zeros(2, 3).long(), r"log_probs must be .* \(B, T, S\)"),
        (torch.zeros(2, 3, 4), torch.zeros(2, 5).long(), r"targets must have shape \(B, S\)"),
        (torch.zeros(2, 3, 4), torch.zeros(3, 4).long(), "targets must be int64 ids of shape"),
    ],
)
def test_wrong_shapes_are_refused(log_probs, targets, message):
    with pytest.raises(ValueError, match=message):
        eisl_from_log_probs(log_probs, targets)
