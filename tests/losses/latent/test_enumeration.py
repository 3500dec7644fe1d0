"""Everything that may be said, enumerated: values, gradients, likelihoods, best alignments."""

import itertools

import pytest
import torch

from fairseq_eisl.losses import EISLOptions, reference
from fairseq_eisl.losses.latent import (
    ctc_best_alignment,
    ctc_expected_ngrams,
    ctc_log_likelihood,
    ctc_needed_slots,
    dag_best_alignment,
    dag_expected_ngrams,
    dag_log_likelihood,
    eisl_ctc_terms,
    eisl_dag_terms,
)
from fairseq_eisl.losses.position_selection import CHOICES
from tests.losses.latent.cases import Case, case, random_links
from tests.tolerances import assert_near

# (slots of each sentence, tokens of each): L = 1, S > L and S = 0 among them.
SHAPES = [
    ((4, 5, 3), (3, 4, 2)),
    ((5, 1, 2), (2, 1, 4)),
    ((1, 4, 4), (3, 0, 4)),
]
OPTIONS = {"ngrams": (1, 2, 3, 4), "weights": (0.4, 0.3, 0.2, 0.1)}
EVERY = [name for name in CHOICES if name not in ("gumbel", "hard")]


def given(found: Case, selection: str, **options):
    options = {**OPTIONS, "selection": selection, **options}
    masks = {**found.masks, "options": EISLOptions(**options)}
    return masks, {"output_mask": found.output_mask, "target_mask": found.target_mask, **options}


def ctc(found: Case, selection="softmax", **options):
    ours, theirs = given(found, selection, **options)
    loss = eisl_ctc_terms(found.logits, found.targets, found.blank, **ours).total()
    return loss, reference.ctc_eisl_loss(found.logits, found.targets, found.blank, **theirs)


def dag(found: Case, selection="softmax", **options):
    ours, theirs = given(found, selection, **options)
    loss = eisl_dag_terms(found.logits, found.links, found.targets, **ours).total()
    return loss, reference.dag_eisl_loss(found.logits, found.links, found.targets, **theirs)


def with_leaves(found: Case):
    """The case, and what a gradient is asked of: logits, and scores that the links are made of.

    (Links by themselves are no leaves: an enumeration of whole paths knows only at their end that
    all ways on have probability 1 in sum.)
    """
    scores = found.links.clamp(min=-1e4).requires_grad_()
    links = random_links(scores, found.output_mask)
    return found._replace(logits=found.logits.requires_grad_(), links=links), scores


@pytest.mark.parametrize("selection", EVERY)
@pytest.mark.parametrize("number", range(len(SHAPES)))
@pytest.mark.parametrize("kind", [ctc, dag], ids=["ctc", "dag"])
def test_value_and_gradient(kind, number, selection):
    vocabulary = 3 if kind is ctc else 4
    found, scores = with_leaves(case(*SHAPES[number], vocabulary=vocabulary, seed=number))
    loss, expected = kind(found, selection)
    assert_near(loss, expected, torch.float64, "value")
    share = torch.arange(1.0, len(loss) + 1, dtype=torch.float64)
    leaves = [found.logits] if kind is ctc else [found.logits, scores]
    grads = torch.autograd.grad(loss @ share, leaves, retain_graph=True)
    exact = torch.autograd.grad(expected @ share, leaves, allow_unused=True)
    for name, a, b in zip(("logits", "links"), grads, exact):
        b = torch.zeros_like(a) if b is None else b
        assert_near(a, b, torch.float64, name)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [ctc, dag], ids=["ctc", "dag"])
def test_values_of_sums_of_one_word_and_of_sure_slots(kind, seed):
    """One word and the blank, so that all n-grams repeat; probabilities of 1e-9 beside 1."""
    found = case((5, 4), (4, 2), vocabulary=2 + seed % 2, seed=seed, scale=[1.0, 8.0][seed // 3])
    assert_near(*kind(found, "softmax", normalize=bool(seed % 2)), torch.float64)


@pytest.mark.parametrize("kind", [ctc, dag], ids=["ctc", "dag"])
def test_below_the_floor(kind):
    found = case((4, 3), (3, 3), vocabulary=3, scale=6.0)
    assert_near(*kind(found, "uniform", floor=-2.5), torch.float64)
    assert_near(*kind(found, "count", floor=-2.5), torch.float64)


def test_slots_that_are_sure_of_the_blank():
    """Probability 0 of every word there, and the floor instead of infinity."""
    found = case((5, 4), (3, 2), vocabulary=3)
    found.logits[:, 1:3] = torch.tensor([-torch.inf, -torch.inf, 0.0])
    loss, expected = ctc(found, "softmax")
    assert loss.isfinite().all()
    assert_near(loss, expected, torch.float64)
    found.logits[:] = found.logits[:, 1:2]  # nothing but blanks
    loss, _ = ctc(
        found._replace(logits=found.logits.requires_grad_()), "softmax", ngrams=(2,), weights=None
    )
    assert loss.tolist() == pytest.approx([20.0, 20.0])
    loss.sum().backward()
    assert found.logits.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["ctc", "dag"])
@pytest.mark.parametrize("selection", ["softmax", "count", "gumbel"])
def test_gradcheck(kind, selection):
    found = case((4, 3), (3, 2), vocabulary=3, seed=3)
    ours, _ = given(found, selection)
    ours["generator"] = torch.tensor([3, 4])

    def loss(logits, scores):
        if kind == "ctc":
            return eisl_ctc_terms(logits, found.targets, found.blank, **ours).total()
        links = scores.log_softmax(2)
        return eisl_dag_terms(logits, links, found.targets, **ours).total()

    leaves = found.logits.requires_grad_(), torch.randn_like(found.links).requires_grad_()
    assert torch.autograd.gradcheck(loss, leaves)


# -- likelihoods ---------------------------------------------------------------------------------


def likelihood_leaves(found: Case):
    log_probs = found.logits.log_softmax(2)
    index = found.targets.unsqueeze(1).expand(-1, found.logits.size(1), -1)
    return log_probs.gather(2, index)


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_likelihoods_are_those_of_all_ways_to_say_the_target(number):
    found = case(*SHAPES[number], vocabulary=3, seed=number)
    log_probs = likelihood_leaves(found).requires_grad_()
    paths = dag_log_likelihood(log_probs, found.links, **found.masks)
    slots = ctc_log_likelihood(found.logits, found.targets, found.blank, **found.masks)
    for b in range(len(paths)):
        one = found.rows(b)
        words = one.targets[0].tolist()
        expected = reference.ctc_likelihood(one.logits[0], words, found.blank)
        assert slots[b].exp().item() == pytest.approx(expected.item(), abs=1e-12)
        expected = reference.dag_likelihood(one.logits[0], one.links[0], words)
        # Without tokens there is nothing to learn: a zero.
        assert paths[b].exp().item() == pytest.approx(expected.item() if words else 1, abs=1e-12)
    finite = paths.isfinite()
    paths[finite].sum().backward()
    assert log_probs.grad.isfinite().all()


def test_gradients_of_the_likelihoods():
    found = case((5, 4), (3, 3), vocabulary=3, seed=1)

    def paths(log_probs, scores):
        return dag_log_likelihood(log_probs, scores.log_softmax(2), **found.masks)

    def slots(logits):
        return ctc_log_likelihood(logits, found.targets, found.blank, **found.masks)

    leaves = likelihood_leaves(found).detach(), torch.randn_like(found.links)
    assert torch.autograd.gradcheck(paths, [x.requires_grad_() for x in leaves])
    assert torch.autograd.gradcheck(slots, found.logits.requires_grad_())


def test_targets_without_room_are_impossible_and_spoil_nothing():
    found = case((2, 4, 1), (3, 2, 1), vocabulary=3, seed=2)
    found.targets[1] = 0  # the same word twice: three slots are needed
    logits = found.logits.requires_grad_()
    assert ctc_needed_slots(found.targets, found.target_mask)[1] == 3
    slots = ctc_log_likelihood(logits, found.targets, found.blank, **found.masks)
    assert slots.isinf().tolist() == [True, False, False]
    slots[1:].sum().backward()
    assert logits.grad.isfinite().all() and not logits.grad[0].any()
    log_probs = likelihood_leaves(found).detach().requires_grad_()
    paths = dag_log_likelihood(log_probs, found.links, **found.masks)
    assert paths.isinf().tolist() == [True, False, False]
    torch.where(paths.isinf(), 0.0, paths).sum().backward()
    assert log_probs.grad.isfinite().all() and not log_probs.grad[0].any()
    # Three vertices more are no help where a target has one token: every path ends at the last.
    assert dag_log_likelihood(
        log_probs[1:2, :, :1], found.links[1:2],
        output_mask=found.output_mask[1:2], target_mask=torch.tensor([[True]]),
    ).isinf()  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_best_alignments_are_the_most_likely_ones(seed):
    found = case((5, 4), (3, 2), vocabulary=3, seed=seed)
    probs = found.log_probs()
    said, blank = probs[:, :, :-1], probs[:, :, -1]
    slots = ctc_best_alignment(said, blank, found.targets, **found.masks)
    vertices = dag_best_alignment(said, found.links, **found.masks)
    for b in range(2):
        one = found.rows(b)
        words = one.targets[0].tolist()
        best = max(
            (chance.item(), [word for _, word in read], number)
            for number, (chance, read) in enumerate(
                reference.ctc_outputs(one.logits[0], found.blank)
            )
            if [word for _, word in read] == words
        )
        filled = list(itertools.product(range(3), repeat=len(one.logits[0])))[best[2]]
        places = slots[b, : len(filled)].tolist()
        assert [words[s] if s >= 0 else found.blank for s in places] == list(filled)
        paths = []
        for chance, path in reference.dag_paths(one.links[0]):
            if len(path) == len(words):
                total = chance.log() + sum(said[b, v, s] for s, v in enumerate(path))
                paths.append((total.item(), path))
        assert vertices[b, : len(words)].tolist() == max(paths)[1]
        assert (vertices[b, len(words) :] == -1).all()
        assert (slots[b, len(filled) :] == -1).all()


def test_best_alignments_without_room_are_none():
    found = case((2, 3), (3, 0))
    probs = found.log_probs()
    given = probs[:, :, :-1], probs[:, :, -1], found.targets
    assert (ctc_best_alignment(*given, **found.masks) == -1).all()
    assert (dag_best_alignment(probs[:, :, :-1], found.links, **found.masks) == -1).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_expected_numbers_of_n_grams(n):
    found = case((5, 3, 1), (1, 1, 1), vocabulary=3)
    log_probs = found.logits.log_softmax(2)
    slots = ctc_expected_ngrams(log_probs, found.blank, output_mask=found.output_mask, n=n)
    paths = dag_expected_ngrams(found.links, found.output_mask, n)
    for b in range(3):
        one = found.rows(b)
        expected = sum(
            chance.item() * max(0, len(read) - n + 1)
            for chance, read in reference.ctc_outputs(one.logits[0], found.blank)
        )
        assert slots[b].item() == pytest.approx(expected, abs=1e-12)
        expected = sum(
            chance.item() * max(0, len(path) - n + 1)
            for chance, path in reference.dag_paths(one.links[0])
        )
        assert paths[b].item() == pytest.approx(expected, abs=1e-12)
