"""The Transformer decoder of our own, step by step: what fairseq's computes, where it is known."""

import pytest
import torch
from torch import nn

from fairseq_eisl.decoding.fairseq.cached_transformer import CachedTransformer, is_known
from tests.criterions.conftest import SENTENCES
from tests.devices import DEVICES
from tests.tolerances import assert_near

KNOWN = [
    ("transformer", ()),
    ("transformer", ("--decoder-normalize-before", "--activation-fn", "gelu")),
    ("transformer", ("--decoder-learned-pos", "--no-scale-embedding")),
    ("transformer", ("--no-token-positional-embeddings", "--layernorm-embedding")),
    ("transformer", ("--decoder-normalize-before", "--no-decoder-final-norm")),
    ("transformer", ("--share-decoder-input-output-embed",)),
    # Widths that differ: of the embedding, of the encoder, of the output.
    ("transformer_tiny", ("--decoder-embed-dim", "24", "--decoder-output-dim", "12")),
    ("transformer_tiny", ("--encoder-embed-dim", "8", "--decoder-attention-heads", "1")),
    ("transformer", ("--decoder-layerdrop", "0.5")),
    ("transformer", ("--checkpoint-activations",)),
    ("bart_base", ()),
]
UNKNOWN = [
    ("transformer", ("--cross-self-attention",)),
    ("transformer", ("--no-cross-attention",)),
    ("transformer", ("--quant-noise-pq", "0.5", "--quant-noise-pq-block-size", "4")),
    ("lstm", ()),
]


@torch.no_grad()
def both(model, net_input):
    """Logits of every step, ours and those of the decoder on the whole prefix."""
    tokens = net_input["prev_output_tokens"].clone()
    model.eval()
    encoder_out = model.encoder.forward_torchscript(net_input)
    cached = CachedTransformer(model.decoder, encoder_out, tokens)
    ours = torch.stack([cached.logits(step) for step in range(tokens.size(1))], 1)
    whole = model.decoder(tokens, encoder_out=encoder_out)[0]
    real = tokens.ne(1)
    return ours[real], whole[real]


@pytest.mark.parametrize("arch, flags", KNOWN)
def test_every_step_has_the_logits_of_the_whole_prefix(build, arch, flags):
    made = build(*flags, arch=arch)
    assert is_known(made.model.decoder)
    ours, whole = both(made.model, made.sample(SENTENCES)["net_input"])
    assert ours.dtype == whole.dtype and whole.std() > 0.1
    assert_near(ours, whole, torch.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_no_less_exact_than_fairseqs(build, dtype, device):
    made = build("--decoder-normalize-before", scale=1.0)
    net_input = {k: v.to(device) for k, v in made.sample(SENTENCES)["net_input"].items()}
    exact = both(made.model.to(device), net_input)[1]
    ours, whole = both(made.model.to(dtype), net_input)
    assert ours.dtype == dtype
    error, theirs = ((x.float() - exact).norm() / exact.norm() for x in (ours, whole))
    assert error < 1.5 * theirs < 0.1


def test_it_runs_under_autocast(build):
    """As with ``--amp``: half-precision products, and whatever the norms make of them."""
    made = build(scale=1.0)
    net_input = made.sample(SENTENCES)["net_input"]
    exact = both(made.model, net_input)[1]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = both(made.model, net_input)[0]
    assert (ours.float() - exact).norm() < 0.05 * exact.norm()


def test_sources_of_one_length_have_no_mask(build):
    made = build()
    ours, whole = both(made.model, made.sample(["w1 w2 w3", "w4 w5 w6"])["net_input"])
    assert_near(ours, whole, torch.float32)


def test_tokens_that_are_written_as_they_come_are_read(build):
    """The buffer is the caller's: only what stands left of a step counts."""
    made = build()
    sample = made.sample(SENTENCES)
    tokens = sample["net_input"]["prev_output_tokens"]
    made.model.eval()
    with torch.no_grad():
        encoder_out = made.model.encoder.forward_torchscript(sample["net_input"])
        given = torch.full_like(tokens, 1)
        cached = CachedTransformer(made.model.decoder, encoder_out, given)
        whole = CachedTransformer(made.model.decoder, encoder_out, tokens)
        for step in range(tokens.size(1)):
            given[:, step] = tokens[:, step]
            assert torch.equal(cached.logits(step), whole.logits(step))


@pytest.mark.parametrize("arch, flags", UNKNOWN)
def test_other_decoders_are_not_taken_over(build, arch, flags):
    assert not is_known(build(*flags, arch=arch).model.decoder)


@pytest.mark.parametrize("change", ["forward", "attention", "linear", "hook", "norm", "zero"])
def test_a_changed_layer_is_not_taken_over(build, change):
    decoder = build().model.decoder
    assert is_known(decoder)
    layer = decoder.layers[-1]
    if change == "forward":
        kind = type(layer)
        layer.__class__ = type(
            "Mine", (kind,), {"forward": lambda self, x, *a, **k: (x, None, None)}
        )
    elif change == "attention":
        kind = type(layer.self_attn)
        layer.self_attn.__class__ = type("Mine", (kind,), {})
    elif change == "linear":
        old = layer.encoder_attn.v_proj
        layer.encoder_attn.v_proj = type("LoRA", (nn.Linear,), {})(*old.weight.shape)
    elif change == "hook":  # never called where three products are one
        layer.self_attn.k_proj.register_forward_hook(lambda module, inputs, output: output + 1)
    elif change == "norm":
        layer.attn_ln = nn.LayerNorm(16)
    else:
        layer.self_attn.add_zero_attn = True
    assert not is_known(decoder)
