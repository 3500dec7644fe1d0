"""Soft words and what is expected of them."""

import pytest
import torch

from fairseq_eisl.losses import random_numbers
from fairseq_eisl.losses.soft_tokens import expected_nll, soft_tokens


def test_near_zero_it_is_a_sample_of_the_softmax():
    """Gumbel noise makes the largest weight that of a word drawn from the softmax."""
    logits = torch.tensor([0.0, 1.0, 2.0]).expand(20000, 3)
    noise = random_numbers.gumbel(torch.arange(20000), 3)
    words = soft_tokens(logits, 0.01, noise).argmax(1)
    shares = torch.bincount(words, minlength=3) / 20000
    torch.testing.assert_close(shares, logits[0].softmax(0), atol=0.012, rtol=0)


def test_weights_sum_to_one_and_have_the_gradient_of_a_softmax():
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.allclose(soft_tokens(logits, 0.3).sum(2), torch.ones(2, 3, dtype=torch.float64))
    assert torch.autograd.gradcheck(lambda x: soft_tokens(x, 0.7, torch.ones(2, 3, 5)), logits)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_is_above_zero(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0, not"):
        soft_tokens(torch.zeros(2), temperature)


def test_certain_words_cost_their_own_nll():
    """A soft word that is one word has that word's negative log-probability."""
    scores = torch.randn(2, 4, 6, dtype=torch.float64).log_softmax(2)
    words = torch.randint(6, (2, 4))
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    weights = torch.nn.functional.one_hot(words, 6).double()
    own = -scores.gather(2, words.unsqueeze(2)).squeeze(2)
    expected = torch.stack([own[0, :3].mean(), own[1, 0]])
    torch.testing.assert_close(expected_nll(weights, scores, mask), expected)


def test_an_empty_sentence_costs_an_attached_zero():
    weights = torch.rand(1, 2, 3, requires_grad=True)
    loss = expected_nll(weights, torch.zeros(1, 2, 3), torch.zeros(1, 2, dtype=torch.bool))
    assert loss.item() == 0
    loss.sum().backward()
    assert not weights.grad.any()
