"""What the tests of the criterion share."""

import functools

import pytest
import torch
from fairseq.trainer import Trainer

from tests import toy as toy_corpus

# Unequal lengths, a repeated word, split words, a source and target that differ.
SENTENCES = [
    "w1 w2 al@@ x w7 w9 w12",
    "w3",
    "w11 w12",
    "w1 w1 w1 w6 w6 w7 w8",
    ("w1 w2 w3 w4 w5 w6", "w1 w2"),
    ("w9", "w4 ga@@ m@@ ma w4 w4"),
    "be@@ ta w19 w0",
    "",
]

# iNAT's denoising draws its words for the whole padded batch: nothing in it is invariant.
EXTRA = {"iterative_nonautoregressive_transformer": ["--dae-ratio", "0"]}


def loss_and_gradient(made, sample):
    torch.manual_seed(4)
    made.model.zero_grad()
    loss, size, log = made.criterion(made.model, sample)
    loss.backward()
    grads = {n: p.grad.clone() for n, p in made.model.named_parameters() if p.grad is not None}
    return loss.detach(), size, log, grads


def updated_gradients(made, batches):
    """The gradients that fairseq's trainer gives to the optimiser for one update."""
    trainer = Trainer(made.cfg, made.task, made.model, made.criterion)
    trainer.train_step(batches)
    grads = {name: p.grad.clone() for name, p in trainer.get_model().named_parameters()}
    assert all(g.abs().sum() > 0 for n, g in grads.items() if "k_proj.bias" not in n)
    return grads


def assert_update_freq_changes_nothing(make):
    """4 + 4 sentences of unequal length in one update have the gradients of all 8 at once.

    make: gives the same set-up each time, with a learning rate of 0.
    """
    sentences = sorted(SENTENCES, key=len)

    def gradients(*parts):
        made = make()
        samples = [made.sample(sentences[part], ids=list(range(8))[part]) for part in parts]
        return updated_gradients(made, samples)

    whole, split = gradients(slice(0, 8)), gradients(slice(0, 4), slice(4, 8))
    for name, grad in whole.items():
        size = max(1.0, grad.abs().max().item())
        assert (split[name] - grad).abs().max() <= 1e-5 * size, name


@pytest.fixture(scope="session")
def build(toy):
    """``tests.toy.setup`` on the toy corpus."""
    return functools.partial(toy_corpus.setup, toy.bin)
