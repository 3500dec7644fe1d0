"""Shares of the gradient."""

import pytest
import torch

from fairseq_eisl.analyses.gradients import ce_gradient, gradients, order_gradients
from fairseq_eisl.analyses.outputs import on_candidate
from fairseq_eisl.losses import EISLOptions

OPTIONS = EISLOptions((1, 2, 4), (0.5, 0.3, 0.2), selection="softmax")


def test_the_orders_sum_to_the_gradient_of_the_loss(case):
    batch = next(case.pairs.noisy("repeat:0.5", 1))
    parts = order_gradients(case.trained, batch, OPTIONS)
    case.trained.model.zero_grad()
    on_candidate(case.trained, batch).terms(OPTIONS).total().mean().backward()
    whole = torch.cat([p.grad.flatten() for p in case.trained.model.parameters()])
    case.trained.model.zero_grad()
    assert len(parts) == 4 and all(part.any() for part in parts[:3])
    assert torch.allclose(sum(parts), whole.double(), atol=1e-5)


def test_rows_sum_to_one_and_know_cross_entropy(case):
    rows = {row["order"]: row for row in gradients(case.trained, case.pairs, OPTIONS, "none", 1)}
    shares = [float(row["share"]) for order, row in rows.items() if order != "CE"]
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    # Noise of no kind: the gradient of cross entropy is the clean one itself.
    assert float(rows["CE"]["cosine_clean"]) == pytest.approx(1, abs=1e-5)
    assert rows["CE"]["share"] == "" and rows["2"]["weight"] == "0.3"
    assert {row["batches"] for row in rows.values()} == {3}


def test_unigrams_give_the_same_gradient_whatever_the_order(case):
    batches = [next(case.pairs.noisy(noise, 1)) for noise in ("none", "shuffle:all")]
    (clean, *_), (shuffled, *_) = (order_gradients(case.trained, b, OPTIONS) for b in batches)
    assert torch.allclose(clean, shuffled, atol=1e-5)
    ce = [ce_gradient(case.trained, batch) for batch in batches]
    assert not torch.allclose(*ce, atol=1e-2)
