"""The best output against the worst: values by hand, gradients, errors."""

import pytest
import torch

from fairseq_eisl.losses.contrastive_margin import contrastive_margin_loss


@pytest.mark.parametrize("worst, value", [(0.8, 0.0), (0.6, 1.0)])
def test_worked_out_values(worst, value):
    """NLL .5 and .8 or .6, rewards .6 and .4: max(0, -3 + 2) and -1 + 2."""
    nll = torch.tensor([0.5], dtype=torch.float64), torch.tensor([worst], dtype=torch.float64)
    loss = contrastive_margin_loss(*nll, torch.tensor([[0.6, 0.4]], dtype=torch.float64))
    assert loss.item() == pytest.approx(value)


def test_gradients_are_of_the_likelihoods_alone_where_the_margin_is_not_kept():
    best = torch.tensor([0.5, 0.1], requires_grad=True)
    worst = torch.tensor([0.6, 3.0], requires_grad=True)
    rewards = torch.tensor([[0.6, 0.4], [0.6, 0.4]], requires_grad=True)
    contrastive_margin_loss(best, worst, rewards).sum().backward()
    assert best.grad.tolist() == [10.0, 0.0] and worst.grad.tolist() == [-10.0, 0.0]
    assert rewards.grad is None


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"rewards \(B, 2\) are needed, not \(3,\)"):
        contrastive_margin_loss(torch.zeros(3), torch.zeros(3), torch.zeros(3))
