"""The most likely tokens of positions, against a log_softmax of all logits."""

import importlib

import pytest
import torch

from tests.devices import DEVICES
from tests.losses.memory import LargeStorages

MODULE = importlib.import_module("fairseq_eisl.losses.token_log_probs")
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("block", [1, 3 * 5 * 13, 2**20])
@pytest.mark.parametrize("shape", [(7, 5, 13), (1, 1, 1), (2, 3, 1), (0, 3, 4), (2, 0, 4)])
def test_tokens_and_scores(shape, block, dtype, device, monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", block)
    torch.manual_seed(0)
    logits = 5 * torch.randn(shape, device=device).to(dtype)
    scores, tokens = MODULE.best_tokens(logits)
    assert scores.dtype == torch.promote_types(dtype, torch.float32)
    best = logits.double().log_softmax(2).max(2)
    torch.testing.assert_close(scores.double(), best.values, rtol=0, atol=1e-5)
    chosen = logits.gather(2, tokens.unsqueeze(2)).squeeze(2)
    assert chosen.equal(logits.amax(2))


def test_impossible_words_and_large_numbers():
    logits = torch.tensor([[[-torch.inf, 3e4, 3e4]]]).half()
    scores, tokens = MODULE.best_tokens(logits)
    assert round(scores.item(), 4) == -0.6931 and tokens.item() in (1, 2)


def test_nothing_of_the_size_of_the_logits_is_made(monkeypatch):
    monkeypatch.setattr(MODULE, "_CPU_BLOCK", 1)
    logits = torch.randn(4, 6, 500).half()
    size = logits.numel() * logits.element_size()
    with LargeStorages(size) as made:
        MODULE.best_tokens(logits.requires_grad_())
    assert made.besides(logits) == 0
    with LargeStorages(size) as made:
        logits.detach().float().log_softmax(2)
    assert made.besides(logits) > 0
