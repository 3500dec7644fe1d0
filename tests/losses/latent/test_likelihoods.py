"""Likelihoods of more slots than can be enumerated, and what their own gradients promise."""

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.losses import reference
from fairseq_eisl.losses.latent import (
    ctc_log_likelihood,
    ctc_log_prob_likelihood,
    dag_log_likelihood,
)
from tests.losses.latent.cases import case
from tests.tolerances import assert_near


def gradients(loss, *leaves):
    leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    value = loss(*leaves)
    return value.detach(), *torch.autograd.grad(value.sum(), leaves)


def dag_inputs(found, dtype=torch.float64):
    """Log-probabilities of the target's tokens, and links without anything infinite."""
    return found.log_probs()[:, :, :-1].to(dtype), found.links.clamp(min=-1e4).to(dtype)


def by_programme(found):
    """The reference of each sentence."""

    def loss(log_probs, links):
        sentences = []
        for said, go, slots, words in zip(log_probs, links, *found.masks.values()):
            count, length = int(slots.sum()), int(words.sum())
            go = go[:count, :count].masked_fill(torch.ones(count, count).tril().bool(), -1e30)
            sentences.append(reference.dag_log_likelihood(said[:count, :length], go))
        return torch.stack(sentences)

    return loss


@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
def test_of_many_vertices(scale):
    found = case((60, 41, 20, 33), (20, 7, 20, 1), vocabulary=9, seed=1, scale=scale)
    found.output_mask[3, 1:] = False  # a token, a vertex
    inputs = dag_inputs(found)
    ours = gradients(lambda *x: dag_log_likelihood(*x, **found.masks), *inputs)
    for mine, theirs in zip(ours, gradients(by_programme(found), *inputs)):
        assert_near(mine, theirs, torch.float64)
    assert ours[0].max() < 0 and ours[1].abs().sum() > 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_of_256_vertices_in_less_than_float64(dtype):
    found = case((256, 200), (64, 30), vocabulary=50, seed=2, scale=3.0)
    said, links = dag_inputs(found, dtype)
    exact = gradients(
        lambda *x: dag_log_likelihood(*x, **found.masks), said.double(), links.double()
    )
    ours = gradients(lambda *x: dag_log_likelihood(*x, **found.masks), said, links)
    assert all(x.dtype == dtype for x in ours)
    for mine, theirs in zip(ours, exact):
        assert_near(mine, theirs.to(dtype), dtype)


def test_ways_that_end_too_soon_do_not_hide_the_others():
    """A path goes straight to the last vertex, but for 1 of e^500 times; the target is longer."""
    links = torch.full((1, 6, 6), -500.0, dtype=torch.float64)
    links[:, :, 5] = 0.0
    said = torch.full((1, 6, 4), 0.5, dtype=torch.float64).log()
    masks = {"output_mask": torch.ones(1, 6).bool(), "target_mask": torch.ones(1, 4).bool()}
    # Two of the four vertices between, in their order: six pairs, two unlikely steps.
    expected = torch.tensor([6.0]).log().item() + 4 * torch.tensor([0.5]).log().item() - 1000
    value, *found = gradients(lambda *x: dag_log_likelihood(*x, **masks), said, links)
    assert value.item() == pytest.approx(expected, rel=1e-6)
    assert found[0].sum().item() == pytest.approx(4) and found[1].sum().item() == pytest.approx(3)


@pytest.mark.parametrize("place", ["word", "way"])
def test_what_is_impossible_has_no_gradient(place):
    """A word that no vertex can say; no way from the vertices before the last one to it."""
    found = case((5, 4), (3, 2), seed=7)
    said, links = dag_inputs(found)
    if place == "word":
        said[0, :, 1] = -torch.inf
    else:
        links[0, :, 4] = -torch.inf
    value, *gradient = gradients(lambda *x: dag_log_likelihood(*x, **found.masks), said, links)
    assert value.isinf().tolist() == [True, False]
    for each in gradient:
        assert not each[0].any() and each[1].any() and each.isfinite().all()


def test_a_number_that_is_none_stays_one():
    found = case((5, 4), (3, 2), seed=3)
    said, links = dag_inputs(found)
    said[0, 0, 0] = torch.nan
    value = dag_log_likelihood(said, links, **found.masks)
    assert value.isnan().tolist() == [True, False]


# -- CTC -------------------------------------------------------------------------------------------


def by_torch(found):
    """torch's own, of all symbols; real tokens come first here."""

    def loss(logits):
        return -F.ctc_loss(
            logits.log_softmax(2).transpose(0, 1),
            found.targets,
            *(mask.sum(1) for mask in found.masks.values()),
            blank=found.blank,
            reduction="none",
        )

    return loss


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_ctc_is_that_of_all_symbols(dtype, in_place):
    found = case((40, 31, 25, 30), (12, 9, 12, 0), vocabulary=5, seed=4, dtype=dtype, scale=2.0)
    rest = {**found.masks, "in_place": in_place}

    def ours(logits):
        made = logits * 1.0  # what is overwritten is not the leaf
        return ctc_log_likelihood(made, found.targets, found.blank, **rest)

    value, gradient = gradients(ours, found.logits)
    expected = gradients(by_torch(found), found.logits)
    assert_near(value, expected[0], dtype)
    assert_near(gradient, expected[1].masked_fill(~found.output_mask.unsqueeze(2), 0.0), dtype)


def test_ctc_of_log_probabilities_by_themselves():
    """The gradient is that of these numbers, whatever made them: here they add up to nothing."""
    found = case((6, 5, 3), (3, 2, 3), vocabulary=3, seed=5)
    found.target_mask[0] = torch.tensor([False, True, True])  # without its start

    def loss(log_probs):
        return ctc_log_prob_likelihood(log_probs, found.targets, **found.masks).clamp(min=-99.0)

    assert torch.autograd.gradcheck(loss, (found.log_probs() - 0.3).requires_grad_())
    with pytest.raises(ValueError, match=r"shape \(B, L, S \+ 1\) = \(3, L, 4\), not \(3, 6, 3\)"):
        loss(found.log_probs()[:, :, :-1])


@pytest.mark.parametrize("kind", ["ctc", "dag"])
def test_second_derivatives_are_refused(kind):
    found = case((6, 5), (3, 2), vocabulary=3, seed=6)
    log_probs = found.log_probs().requires_grad_()
    if kind == "ctc":
        value = ctc_log_prob_likelihood(log_probs, found.targets, **found.masks)
    else:
        value = dag_log_likelihood(log_probs[:, :, :-1], found.links, **found.masks)
    (grad,) = torch.autograd.grad(value.sum(), log_probs, create_graph=True)
    with pytest.raises(RuntimeError, match=f"{kind}_log_likelihood can be differentiated once"):
        grad.square().sum().backward()
