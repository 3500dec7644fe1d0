"""Policy gradient: values by hand, the gradient of the expected reward, baselines."""

import pytest
import torch

from fairseq_eisl.losses.policy_gradient import (
    BASELINES,
    RunningMean,
    baselines,
    policy_gradient_loss,
)
from tests.tolerances import assert_near

TOKENS = torch.tensor([[[0.5, 0.25, 0.8]]], dtype=torch.float64).log()
ALL = torch.ones(1, 1, 3, dtype=torch.bool)


@pytest.mark.parametrize("norm, value", [("sequence", 0.690776), ("token", 0.230259)])
def test_worked_out_values(norm, value):
    """Token probabilities .5, .25, .8; reward .7 against .4 of the greedy output: -.3 ln .1."""
    advantages = torch.tensor([[0.7]]) - baselines(
        torch.tensor([[0.7]]), "self_critical", greedy=torch.tensor([0.4])
    )
    loss = policy_gradient_loss(TOKENS, ALL, advantages, norm)
    assert loss.item() == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("kind, value", [("mean", -0.3), ("rloo", -0.6)])
def test_baselines_of_two_samples(kind, value):
    """Log-probabilities -1 and -3, rewards .8 and .2."""
    log_probs = torch.tensor([[[-1.0], [-3.0]]])
    rewards = torch.tensor([[0.8, 0.2]])
    mask = torch.ones(1, 2, 1, dtype=torch.bool)
    loss = policy_gradient_loss(log_probs, mask, rewards - baselines(rewards, kind))
    assert loss.item() == pytest.approx(value, abs=1e-6)


def test_the_gradient_in_the_logits():
    """Three words with zero logits, the second sampled, advantage .3: .1, -.2, .1."""
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    log_probs = logits.log_softmax(0)[1].view(1, 1, 1)
    mask = torch.ones(1, 1, 1, dtype=torch.bool)
    policy_gradient_loss(log_probs, mask, torch.tensor([[0.3]])).sum().backward()
    assert logits.grad.tolist() == pytest.approx([0.1, -0.2, 0.1])


@pytest.mark.parametrize("kind", ["none", "rloo", "self_critical", "ema"])
def test_it_is_the_gradient_of_the_expected_reward(kind):
    """Over all pairs of samples of one token, weighted by their probability."""
    torch.manual_seed(1)
    logits = torch.randn(4, dtype=torch.float64, requires_grad=True)
    reward = torch.tensor([0.1, 0.9, 0.4, 0.0], dtype=torch.float64)
    probs = logits.softmax(0)
    (expected,) = torch.autograd.grad((probs * reward).sum(), logits)
    total = torch.zeros_like(logits)
    mask = torch.ones(1, 2, 1, dtype=torch.bool)
    for first in range(4):
        for second in range(4):
            chosen = torch.tensor([first, second])
            log_probs = logits.log_softmax(0)[chosen].view(1, 2, 1)
            rewards = reward[chosen].view(1, 2)
            base = baselines(rewards, kind, greedy=reward[1:2], average=0.3)
            loss = policy_gradient_loss(log_probs, mask, rewards - base).sum()
            (grad,) = torch.autograd.grad(loss, logits)
            total += (probs[first] * probs[second]).detach() * grad
    assert_near(-total, expected, torch.float64)


def test_padding_changes_nothing_whatever_it_holds():
    log_probs = torch.cat([TOKENS, torch.full((1, 1, 2), float("nan"))], 2).requires_grad_()
    mask = torch.cat([ALL, ~ALL[:, :, :2]], 2)
    for norm in ("sequence", "token"):
        loss = policy_gradient_loss(log_probs, mask, torch.tensor([[0.3]]), norm)
        same = policy_gradient_loss(TOKENS, ALL, torch.tensor([[0.3]]), norm)
        assert torch.equal(loss, same)
    loss.sum().backward()
    assert (log_probs.grad[..., 3:] == 0).all()


def test_an_empty_sample_and_no_advantage_give_zeros_of_the_graph():
    log_probs = torch.randn(2, 1, 3, requires_grad=True)
    mask = torch.tensor([[[False] * 3], [[True] * 3]])
    loss = policy_gradient_loss(log_probs, mask, torch.tensor([[1.0], [0.0]]))
    assert loss.tolist() == [0.0, 0.0]
    loss.sum().backward()
    assert (log_probs.grad == 0).all()


@pytest.mark.parametrize(
    "kind, words",
    [
        ("self", "kind='self' is unknown; choose from self_critical"),
        ("rloo", "needs two samples or more, not 1"),
        ("self_critical", "needs the .* rewards of the greedy outputs"),
        ("ema", "needs the running average"),
    ],
)
def test_what_a_baseline_lacks_is_said(kind, words):
    with pytest.raises(ValueError, match=words):
        baselines(torch.tensor([[0.5]]), kind)
    assert len(BASELINES) == 5


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match=r"log_probs and mask \(B, K, L\)"):
        policy_gradient_loss(TOKENS, ALL, torch.zeros(1))
    with pytest.raises(ValueError, match="norm='word' is unknown"):
        policy_gradient_loss(TOKENS, ALL, torch.zeros(1, 1), "word")


def test_a_running_mean_is_of_what_came_before_and_goes_on_from_its_state():
    """Decay .5: of 1, 0 and 2 the mean is 1; (.5*1 + .5*0) / .75 after two; (.25*.5+...) / .875."""
    mean = RunningMean(0.5)
    batches = [torch.tensor([0.0, 2.0]), torch.tensor([0.0]), torch.tensor([2.0, 2.0])]
    assert [mean.before(batch) for batch in batches] == pytest.approx([1.0, 1.0, 1 / 3])
    other = RunningMean(0.5)
    other.load_state_dict(mean.state_dict())
    expected = (1.0 * 0.125 + 2.0 * 0.5) / 0.875
    assert other.before(torch.zeros(0)) == mean.before(torch.zeros(0)) == pytest.approx(expected)


def test_no_rewards_leave_a_running_mean_as_it_is():
    mean = RunningMean(0.5)
    assert mean.before(torch.zeros(0)) == 0.0 and mean.state_dict() == RunningMean(0.5).state_dict()
    mean.before(torch.tensor([1.0]))
    kept = mean.state_dict()
    assert mean.before(torch.zeros(0)) == 1.0 and mean.state_dict() == kept
