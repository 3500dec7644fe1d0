"""What the tests of the criterion share."""

import functools

import pytest
import torch

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


@pytest.fixture(scope="session")
def build(toy):
    """``tests.toy.setup`` on the toy corpus."""
    return functools.partial(toy_corpus.setup, toy.bin)
