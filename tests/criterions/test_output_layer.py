"""Logits in blocks: the same loss and gradients as whole logits, where the model allows it."""

import pytest
import torch
from fairseq.distributed import ModuleProxyWrapper
from torch import nn

from fairseq_eisl.criterions import eisl
from fairseq_eisl.criterions.output_layer import LARGE, output_layer
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near

MODELS = [
    ("transformer", ()),
    ("bart_base", ()),
    ("transformer", ("--share-decoder-input-output-embed",)),
    ("transformer_tiny", ("--dropout", "0")),  # not tied
]


def step(made, **changes):
    """Loss and gradients of a batch, with attributes of the criterion changed."""
    for name, value in changes.items():
        setattr(made.criterion, name, value)
    made.model.zero_grad()
    loss, _, log = made.criterion(made.model, made.sample(SENTENCES))
    loss.backward()
    return loss, {n: p.grad.clone() for n, p in made.model.named_parameters()}, log


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decoding", ["greedy", "teacher-forcing"])
@pytest.mark.parametrize("arch, flags", MODELS)
def test_blocks_change_nothing(build, monkeypatch, arch, flags, decoding, dtype):
    made = build(*flags, arch=arch, train_decoding=decoding)
    made.model.to(dtype)
    loss, grads, log = step(made, layer="whole")

    def no_logits(*_, **__):
        raise AssertionError("whole logits")

    monkeypatch.setattr(eisl, "eisl_logit_terms", no_logits)
    same_loss, same_grads, same_log = step(made, layer="blocks")
    assert_near(same_loss, loss, dtype)
    # A key's gradient is a sum that is zero for keys that all are moved alike: its rounding error
    # is that of the gradients that come into the layer. Seen in float32 only: in float64 every
    # parameter is held to its own size.
    single = dtype == torch.float32
    scale = max(grad.abs().max().item() for grad in grads.values()) if single else 1.0
    for name, grad in grads.items():
        assert_near(same_grads[name], grad, dtype, name, scale)
    assert same_log.keys() == log.keys()


def test_a_bias_of_the_output_layer_counts(build):
    made = build("--share-decoder-input-output-embed")
    old = made.model.decoder.output_projection
    new = nn.Linear(old.in_features, old.out_features)
    new.weight = old.weight
    nn.init.normal_(new.bias)
    made.model.decoder.output_projection = new
    loss, grads, _ = step(made, layer="whole")
    same_loss, same_grads, _ = step(made, layer="blocks")
    assert_near(same_loss, loss, torch.float32)
    assert new.bias.grad.abs().sum() > 0
    for name, grad in grads.items():
        assert_near(same_grads[name], grad, torch.float32, name)


def test_auto_takes_blocks_for_large_outputs_only(build, monkeypatch):
    made = build()
    seen = []
    layers = "fairseq_eisl.criterions.output_layer"
    monkeypatch.setattr(f"{layers}.output_layer", lambda model: seen.append(model))
    step(made)
    assert made.criterion.layer == "auto" and not seen
    monkeypatch.setattr(f"{layers}.LARGE", 1)
    step(made)
    assert len(seen) == 1


def test_cross_entropy_and_validation_need_whole_logits(build):
    made = build(output_layer="blocks")
    target = made.sample(SENTENCES)["target"]
    assert made.criterion._layer_of_blocks(made.model, target) is not None
    made.criterion.eval()
    assert made.criterion._layer_of_blocks(made.model, target) is None
    made = build(output_layer="blocks", ce_factor=0.5)
    assert made.criterion._layer_of_blocks(made.model, target) is None


def test_other_models_keep_their_logits(build):
    made = build(arch="lstm", output_layer="blocks")
    assert output_layer(made.model) is None
    step(made)

    class Own(nn.Linear):
        """Does something else with features than a product, for all that is known."""

    made = build()
    assert output_layer(made.model) is made.model.decoder.output_projection

    class Unknown(nn.Module):
        """A wrapper that may keep the weights elsewhere."""

        def __init__(self, module):
            super().__init__()
            self.module = module

    assert output_layer(ModuleProxyWrapper(Unknown(made.model))) is None
    made.model.decoder.output_projection = Own(32, 10, bias=False)
    assert output_layer(made.model) is None
    decoder = type(made.model.decoder)
    other = type("Other", (decoder,), {"output_layer": lambda self, features: features})
    made = build()
    made.model.decoder.__class__ = other
    assert output_layer(made.model) is None


def test_the_limit_is_256_mb_of_logits():
    assert LARGE * 4 == 256 * 2**20
