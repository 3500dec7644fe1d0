"""Modules that somebody hooked, parametrised or replaced take the general path, everywhere."""

import types

import pytest
import torch
from fairseq.modules.quant_noise import quant_noise
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from fairseq_eisl.criterions.output_layer import output_layer
from fairseq_eisl.decoding.fairseq.cached_transformer import is_known
from fairseq_eisl.decoding.fairseq.plain_modules import is_plain
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near

# Parts of a decoder that the cached decoder replaces or calls in its own way.
PARTS = [
    *("", "output_projection", "embed_tokens", "embed_positions", "layernorm_embedding"),
    *("layer_norm", "dropout_module", "layers", "layers.1"),
    *(f"layers.0.{name}" for name in ("self_attn", "encoder_attn", "fc1", "fc2")),
    *(f"layers.1.{name}_layer_norm" for name in ("self_attn", "encoder_attn", "final")),
    *(f"layers.0.{name}_attn.{p}_proj" for name in ("self", "encoder") for p in ("k", "out")),
    *("layers.1.dropout_module", "layers.0.self_attn.dropout_module"),
]
LINEAR = ["output_projection", "layers.0.fc1", "layers.1.self_attn.q_proj"]


@pytest.fixture
def made(build):
    return build("--decoder-normalize-before", "--layernorm-embedding", "--decoder-layers", "2")


def subclass(module):
    module.__class__ = type("Mine", (type(module),), {})


def other_forward(module):
    old = module.forward
    module.forward = types.MethodType(lambda self, *args, **kwargs: old(*args, **kwargs), module)


def keep(*_, **__):
    """A hook that changes nothing, for all that is known it could."""


CHANGES = {
    "hook": lambda module: module.register_forward_hook(keep),
    "pre-hook": lambda module: module.register_forward_pre_hook(keep),
    "backward hook": lambda module: module.register_full_backward_hook(keep),
    "forward": other_forward,
}


@pytest.mark.parametrize(
    "part, change",
    [(p, c) for p in PARTS for c in CHANGES if (p, c) != ("layers", "forward")],  # not called
)
def test_a_hook_anywhere_keeps_fairseqs_decoder(made, part, change):
    decoder = made.model.decoder
    assert is_known(decoder)
    CHANGES[change](decoder.get_submodule(part))
    assert not is_known(decoder)


@pytest.mark.parametrize("part", [p for p in PARTS if p not in ("", "layers.1")])
def test_a_subclass_anywhere_keeps_fairseqs_decoder(made, part):
    """(Decoders and layers are known by their methods.)"""
    subclass(made.model.decoder.get_submodule(part))
    assert not is_known(made.model.decoder)


WEIGHTS = {
    "weight_norm": nn.utils.weight_norm,
    "new weight_norm": parametrizations.weight_norm,
    "spectral_norm": nn.utils.spectral_norm,
    "orthogonal": parametrizations.spectral_norm,
    "pruning": lambda layer: prune.l1_unstructured(layer, "weight", amount=0.5),
    "parametrization": lambda layer: parametrize.register_parametrization(
        layer, "weight", nn.Identity()
    ),
    "quant noise": lambda layer: quant_noise(layer, 0.5, 4),
    "LoRA": subclass,
    "forward": other_forward,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", WEIGHTS)
@pytest.mark.parametrize("part", LINEAR)
def test_weights_that_are_made_anew_keep_fairseqs_code(made, part, change):
    WEIGHTS[change](made.model.decoder.get_submodule(part))
    assert not is_known(made.model.decoder)
    assert (output_layer(made.model) is None) == (part == "output_projection")


@pytest.mark.parametrize("where", ["model", "decoder", "output_projection"])
@pytest.mark.parametrize("change", CHANGES)
def test_logits_that_somebody_changes_are_built(made, where, change):
    """And what only makes the features may be anything."""
    CHANGES["hook"](made.model.decoder.layers[0])
    assert output_layer(made.model) is not None
    CHANGES[change](
        {"model": made.model, "decoder": made.model.decoder}.get(
            where, made.model.decoder.output_projection
        )
    )
    assert output_layer(made.model) is None


def test_hooks_of_every_module_count(made):
    handle = torch.nn.modules.module.register_module_forward_hook(keep)
    try:
        assert not is_known(made.model.decoder) and output_layer(made.model) is None
    finally:
        handle.remove()
    assert is_known(made.model.decoder) and output_layer(made.model) is not None


def test_a_method_that_was_replaced_in_its_class_counts(monkeypatch):
    assert is_plain(nn.Linear(1, 1), nn.Linear)
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x)
    assert not is_plain(nn.Linear(1, 1), nn.Linear)


def test_dropout_that_stays_on_keeps_fairseqs_decoder(made):
    made.model.decoder.layers[1].dropout_module.apply_during_inference = True
    assert not is_known(made.model.decoder)


def test_candidates_see_a_hook(build):
    """Not only is the decoder refused: the tokens are those of the hooked model."""
    made = build()
    sample = made.sample(SENTENCES)
    made.model.decoder.register_forward_hook(
        lambda module, inputs, output: (output[0].index_fill(2, torch.tensor([7]), 1e4), output[1])
    )
    criterion = made.criterion
    tokens = criterion._candidates(made.model, sample, criterion.seeds(sample))
    assert tokens.tokens[tokens.mask].eq(7).all()


def test_candidates_see_a_hook_of_the_encoder(build):
    made = build()
    seen = []
    made.model.encoder.register_forward_hook(lambda *_: seen.append(1))
    sample = made.sample(SENTENCES)
    made.criterion._candidates(made.model, sample, made.criterion.seeds(sample))
    assert seen == [1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", ["weight_norm", "new weight_norm", "pruning"])
def test_weights_behind_the_weight_get_their_gradient(build, change):
    losses = {}
    for layer in ("whole", "blocks"):
        made = build("--decoder-layers", "2", arch="transformer_tiny", output_layer=layer)
        projection = made.model.decoder.output_projection
        WEIGHTS[change](projection)
        torch.manual_seed(1)
        losses[layer] = made.criterion(made.model, made.sample(SENTENCES))[0]
        losses[layer].backward()
        for name, parameter in projection.named_parameters():
            assert parameter.grad.abs().sum() > 0, name
    assert_near(losses["blocks"], losses["whole"], torch.float32)
