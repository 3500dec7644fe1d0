"""EISL over paths keeps its inputs alone, and its numbers in any blocks of sentences."""

import pytest
import torch

from fairseq_eisl.losses import EISLOptions, eisl_from_ngram_log_probs, worker_threads
from fairseq_eisl.losses.latent import (
    dag_ngram_log_probs,
    eisl_dag_log_prob_terms,
    eisl_dag_terms,
)
from tests.losses.latent.cases import case
from tests.losses.memory import LargeStorages, saved_for_backward
from tests.tolerances import assert_near

OPTIONS = EISLOptions((1, 2, 3))


def example(dtype=torch.float64, slots=(9, 5, 1, 7, 4), lengths=(6, 2, 3, 0, 4)):
    """Log-probabilities and links as leaves, and what stands beside them."""
    found = case(slots, lengths, vocabulary=6, dtype=dtype)
    leaves = found.log_probs()[:, :, :-1].clone(), found.links.clamp(min=-1e4)
    rest = {**found.masks, "options": OPTIONS, "generator": torch.arange(len(slots))}
    return [leaf.requires_grad_() for leaf in leaves], found.targets, rest


def outcomes(function):
    leaves, targets, rest = example()
    terms = function(*leaves, targets, **rest)
    share = torch.arange(1.0, len(targets) + 1)  # unequal, so that a wrong row shows
    grads = torch.autograd.grad(terms.total() @ share.double(), leaves)
    return [*terms, *grads]


def kept_as_a_whole(log_probs, links, targets, *, output_mask, options, **matching):
    """The same by the way of all sentences together and autograd alone."""
    orders = options.possible_orders(min(log_probs.shape[1:]))
    return eisl_from_ngram_log_probs(
        dag_ngram_log_probs(log_probs, links, targets, output_mask=output_mask, orders=orders),
        targets,
        attached_zero=log_probs[:, :0].sum((1, 2)),
        output_length=output_mask.sum(1),
        options=options,
        **matching,
    )


@pytest.mark.parametrize("size", [1, 100, 2**17])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_change_no_number(monkeypatch, size, threads):
    expected = outcomes(kept_as_a_whole)
    monkeypatch.setattr(worker_threads, "_SENTENCES_BLOCK", size)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    found = outcomes(eisl_dag_log_prob_terms)
    torch.set_num_threads(before)
    for a, b in zip(found, expected):
        assert_near(a, b, torch.float64)


@pytest.mark.parametrize("size", [1, 2**23])
def test_nor_do_those_of_cuda(monkeypatch, size):
    """Tensors that say that they are on a GPU: blocks one after another, on one thread."""
    expected = outcomes(kept_as_a_whole)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setattr(worker_threads, "_CUDA_SENTENCES_BLOCK", size)
    seen, real = [], worker_threads.spread
    monkeypatch.setattr(
        worker_threads, "spread", lambda work, items, threads: seen.append((len(items), threads))
        or real(work, items, threads)
    )  # fmt: skip
    for a, b in zip(outcomes(eisl_dag_log_prob_terms), expected):
        assert_near(a, b, torch.float64)
    assert seen == ([(5, 1), (5, 1)] if size == 1 else [])


def test_nothing_of_slots_x_slots_is_kept_but_the_links():
    leaves, targets, rest = example(torch.float32, slots=(40, 40), lengths=(5, 5))
    _, saved = saved_for_backward(lambda: eisl_dag_log_prob_terms(*leaves, targets, **rest))
    large = {t.data_ptr() for t in saved if t.numel() >= leaves[1].numel()}
    assert large == {leaves[1].data_ptr()}
    _, saved = saved_for_backward(lambda: kept_as_a_whole(*leaves, targets, **rest))
    large = {t.data_ptr() for t in saved if t.numel() >= leaves[1].numel()}
    assert large and leaves[1].data_ptr() not in large  # else this test sees nothing


def test_in_place_nothing_as_large_as_the_logits_is_made():
    found = case((12, 12), (5, 5), vocabulary=5000, dtype=torch.float32)
    logits, size = found.logits.requires_grad_(), found.logits.numel() * 4
    for in_place, expected in ((False, 1), (True, 0)):
        with LargeStorages(size) as made:
            terms = eisl_dag_terms(
                *(logits, found.links, found.targets), **found.masks, in_place=in_place
            )
            (grad,) = torch.autograd.grad(terms.total().sum(), [logits])
        assert made.besides(logits) == expected
        assert (grad.data_ptr() == logits.data_ptr()) == in_place


def test_a_backward_may_run_twice_and_within_an_autocast():
    leaves, targets, rest = example(torch.float32)
    loss = eisl_dag_log_prob_terms(*leaves, targets, **rest).total().sum()
    first = torch.autograd.grad(loss, leaves, retain_graph=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        again = torch.autograd.grad(loss, leaves)
    assert all(torch.equal(a, b) for a, b in zip(first, again))


@pytest.mark.parametrize("needed", [(True, False), (False, True), (False, False)])
def test_what_needs_no_gradient_gets_none(needed):
    leaves, targets, rest = example()
    expected = torch.autograd.grad(
        eisl_dag_log_prob_terms(*leaves, targets, **rest).total().sum(), leaves
    )
    parts = [leaf.detach().requires_grad_(want) for leaf, want in zip(leaves, needed)]
    total = eisl_dag_log_prob_terms(*parts, targets, **rest).total().sum()
    assert total.requires_grad == any(needed)
    if any(needed):
        total.backward()
    for part, want, grad in zip(parts, needed, expected):
        assert torch.equal(part.grad, grad) if want else part.grad is None


@pytest.mark.parametrize("size", [1, 2**17])
def test_derivatives_of_second_order(monkeypatch, size):
    monkeypatch.setattr(worker_threads, "_SENTENCES_BLOCK", size)
    found = case((4, 3), (3, 2), vocabulary=3, seed=3)
    options = EISLOptions((1, 2, 3), selection="softmax")

    def loss(log_probs, scores):
        terms = eisl_dag_log_prob_terms(
            *(log_probs, scores.log_softmax(2), found.targets), **found.masks, options=options
        )
        return terms.total()

    leaves = found.log_probs()[:, :, :-1].clone(), torch.randn_like(found.links.clamp(min=-1.0))
    leaves = [leaf.requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(loss, leaves)
    assert torch.autograd.gradgradcheck(loss, leaves)


def test_those_through_logits_are_refused():
    found = case((4, 3), (3, 2), vocabulary=3, seed=3)
    logits = found.logits.requires_grad_()
    terms = eisl_dag_terms(logits, found.links, found.targets, **found.masks)
    (grad,) = torch.autograd.grad(terms.total().sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.square().sum().backward()
