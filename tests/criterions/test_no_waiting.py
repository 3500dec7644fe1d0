"""Nothing of ours makes the host wait for a GPU within a training step.

Without a GPU: tensors say that they are on one, and every operation that would read a number
from it, or send one there and wait, is looked at for who asked for it.
"""

import traceback
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import fairseq_eisl
from fairseq_eisl.decoding import candidates
from fairseq_eisl.losses import eisl_loss, feature_log_probs
from tests.criterions.conftest import SENTENCES
from tests.devices import needs_cuda
from tests.toy import NAT_ARCHS

OURS = str(Path(fairseq_eisl.__file__).parent)
WAITS = {"_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "lift_fresh", "unique"}


class Waits(TorchDispatchMode):
    """Collects the lines of ours that would wait."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        by_mask = name in ("index", "index_put", "index_put_") and any(
            i is not None and i.dtype == torch.bool for i in args[1]
        )
        if name in WAITS or by_mask:
            frames = [f for f in traceback.extract_stack()[:-1] if "/torch/" not in f.filename]
            if frames[-1].filename.startswith(OURS):
                self.lines.append(f"{frames[-1].filename}:{frames[-1].lineno} {frames[-1].line}")
        return func(*args, **(kwargs or {}))


def lines_that_wait(made):
    sample = made.sample(SENTENCES)
    with Waits() as waits:
        loss, _, _ = made.criterion(made.model, sample)
        loss.backward()
    return waits.lines


@pytest.fixture
def as_on_cuda(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    monkeypatch.setattr(candidates, "_CUDA_STEPS_BETWEEN_LOOKS", 10**6)
    monkeypatch.setattr(candidates, "_CUDA_ITERATIONS_BETWEEN_LOOKS", 10**6)


@pytest.mark.parametrize("options", [
    {}, {"output_layer": "blocks"}, {"parallel_decoding": True}, {"train_decoding": "sample"},
    {"ce_factor": 0.5}, {"position_selection": "sinkhorn", "candidate_after_eos": True},
    {"ngram": "0,2", "position_selection": "hard"}, {"candidate_avoid_eos": True},
    {"candidate_avoid_eos": True, "parallel_decoding": True},
])  # fmt: skip
def test_a_step_of_an_autoregressive_model_waits_for_nothing(build, as_on_cuda, options):
    assert not lines_that_wait(build(**options))


@pytest.mark.parametrize("arch", NAT_ARCHS)
def test_a_step_of_a_non_autoregressive_model_waits_for_nothing(build, as_on_cuda, arch):
    assert not lines_that_wait(build(arch=arch))


@pytest.mark.parametrize("options", [{}, {"parallel_decoding": True}])
def test_this_test_sees_what_waits(build, monkeypatch, options):
    """Looking whether all candidates have ended is a wait, which on a CPU is made at each step."""
    found = lines_that_wait(build(**options))
    assert any("candidates" in line and "bool(" in line for line in found)


@needs_cuda
@pytest.mark.parametrize("selection", ["gumbel", "sinkhorn", "hard"])
def test_cuda_agrees_that_the_loss_does_not_wait(selection):
    device = torch.device("cuda")
    logits = torch.randn(4, 7, 50, device=device, requires_grad=True)
    features = torch.randn(4, 7, 8, device=device, requires_grad=True)
    weight = torch.randn(50, 8, device=device, requires_grad=True)
    targets, seeds = torch.randint(50, (4, 6), device=device), torch.arange(4, device=device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        options = {"ngrams": (1, 2, 0), "selection": selection, "generator": seeds}
        eisl_loss(logits, targets, **options).backward()
        feature_log_probs(features, weight, targets).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
