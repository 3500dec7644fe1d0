"""Blocks over threads: all of them, errors, settings, and few meetings of threads."""

import threading

import pytest
import torch

from fairseq_eisl.losses import (
    EISLOptions,
    eisl_feature_terms,
    eisl_from_log_probs,
    eisl_log_prob_terms,
    eisl_logit_terms,
    eisl_loss,
    worker_threads,
)
from fairseq_eisl.losses.worker_threads import InOrder, one_thread, spread


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_every_item_is_done_once_with_operations_on_one_thread(three_threads):
    done, settings = [], []

    def work(item):
        done.append(item)
        settings.append((torch.get_num_threads(), torch.is_grad_enabled()))

    with one_thread() as threads, torch.no_grad():
        assert threads == 3
        spread(work, range(50), threads)
    assert sorted(done) == list(range(50)) and set(settings) == {(1, False)}
    assert torch.get_num_threads() == 3
    new = []  # threads that begin later, too
    thread = threading.Thread(target=lambda: new.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert new == [3]


def test_an_error_is_raised_here_and_nobody_waits_for_ever(three_threads):
    turns = InOrder(1)

    def work(item):
        if item == 1:
            raise ValueError("item 1")
        with turns.turn(0, item):
            pass

    with pytest.raises(ValueError, match="item 1"), one_thread() as threads:
        spread(work, range(9), threads, on_error=turns.release)
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("selection", ["gumbel", "softmax", "uniform", "hard", "sinkhorn"])
@pytest.mark.parametrize("entrance", ["loss", "in place", "features", "log-probabilities"])
def test_a_second_derivative_is_refused_beside_other_terms(selection, entrance):
    """A gradient penalty that is added to the loss: a partial gradient would go unnoticed."""
    torch.manual_seed(1)
    leaf, weight = torch.randn(2, 5, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    targets, options = torch.randint(9, (2, 4)), EISLOptions((1, 2), selection=selection)
    rest = {"options": options, "generator": torch.arange(2)}
    logits = leaf @ weight.t()
    if entrance == "features":
        terms = eisl_feature_terms(leaf, weight, None, targets, **rest)
    elif entrance == "log-probabilities":
        leaf = logits.detach().log_softmax(2).requires_grad_()
        terms = eisl_log_prob_terms(leaf, targets, **rest)
    else:
        in_place = entrance == "in place"
        terms = eisl_logit_terms(logits, targets, **rest, in_place=in_place)
    loss = terms.total().sum()
    (grad,) = torch.autograd.grad(loss, leaf, create_graph=True)
    assert grad.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        (leaf.square().sum() + grad.square().sum()).backward()


def test_loss_and_backward_hold_few_parallel_operations(three_threads, monkeypatch):
    """Between processes that compute, each meeting of threads may cost milliseconds."""
    seen = []
    real = torch.log_softmax
    monkeypatch.setattr(
        torch, "log_softmax", lambda *a, **k: seen.append(torch.get_num_threads()) or real(*a, **k)
    )
    logits = torch.randn(16, 32, 4000, requires_grad=True)
    eisl_loss(logits, torch.randint(4000, (16, 32))).backward()
    assert len(seen) > 3 and set(seen) == {1}
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("shape", [(9, 40, 40), (1, 8, 8), (3, 30, 20), (0, 4, 4), (5, 0, 3)])
def test_values_and_gradients_are_the_same_to_the_bit_in_any_blocks(shape, monkeypatch):
    """Blocks of sentences go to threads; no number may tell which, nor how many there are."""
    batch, positions, length = shape
    torch.manual_seed(1)
    log_probs = torch.randn(shape).abs().neg()
    targets = torch.randint(9, (batch, length))
    share = torch.arange(1.0, batch + 1)  # unequal, so that a gradient in another block shows
    outcomes, before = [], torch.get_num_threads()
    for threads, size in ((1, 2**17), (1, 1), (2, 700), (5, 1), (2, 2**17)):
        monkeypatch.setattr(worker_threads, "_SENTENCES_BLOCK", size)
        torch.set_num_threads(threads)
        leaf = log_probs.clone().requires_grad_()
        terms = eisl_from_log_probs(leaf, targets, generator=torch.arange(batch))
        (terms.total() * share).sum().backward()
        outcomes.append((*terms, leaf.grad))
    torch.set_num_threads(before)
    for other in outcomes[1:]:
        assert all(torch.equal(a, b) for a, b in zip(outcomes[0], other))


def test_small_batches_are_one_block_and_large_ones_some(monkeypatch):
    seen = []
    real = worker_threads.spread
    monkeypatch.setattr(
        worker_threads, "spread", lambda work, items, *rest: seen.append(len(items))
        or real(work, items, *rest)
    )  # fmt: skip
    for batch in (64, 512):
        eisl_from_log_probs(torch.zeros(batch, 32, 32), torch.zeros(batch, 32).long())
    assert seen == [1, 4]
