"""``--share-encoder-output``: the candidate from the encoder's output of the training forward."""

import logging

import pytest
import torch

from fairseq_eisl.decoding.fairseq.candidates import decode
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near
from tests.toy import ARCHS

PAD, EOS = 1, 2
MIXES = {
    "eisl": {},
    "with cross entropy": {"ce_factor": 0.5},
    "in parallel": {"parallel_decoding": True},
    "sampled": {"train_decoding": "sample"},
    "blocks": {"output_layer": "blocks"},
}


def step(made, seed=4):
    """Loss, gradients, the rows of each call of the encoder, and the candidates."""
    calls, candidates = [], []
    encoder = made.model.encoder
    handle = encoder.register_forward_pre_hook(
        lambda module, inputs, named: calls.append(
            len(inputs[0] if inputs else named["src_tokens"])
        ),
        with_kwargs=True,
    )
    sequence_losses = made.criterion.sequence_losses

    def watched(output):
        candidates.append(output)
        return sequence_losses(output)

    made.criterion.sequence_losses = watched
    torch.manual_seed(seed)
    made.model.zero_grad()
    loss, _, log = made.criterion(made.model, made.sample(SENTENCES))
    loss.backward()
    handle.remove()
    made.criterion.sequence_losses = sequence_losses
    grads = {n: p.grad.clone() for n, p in made.model.named_parameters() if p.grad is not None}
    return loss.detach(), grads, calls, log


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("arch", ARCHS)
def test_without_dropout_only_the_number_of_encoder_runs_changes(build, arch, mix):
    loss, grads, calls, log = step(build(arch=arch, share_encoder_output=True, **MIXES[mix]))
    expected, expected_grads, expected_calls, expected_log = step(build(arch=arch, **MIXES[mix]))
    assert calls == [len(SENTENCES)] and len(expected_calls) == 2
    assert_near(loss, expected, torch.float32)
    assert log.keys() == expected_log.keys() and grads.keys() == expected_grads.keys()
    for name in log:
        assert float(log[name]) == pytest.approx(float(expected_log[name]), rel=1e-4, abs=1e-5), (
            name
        )
    for name, grad in expected_grads.items():
        assert_near(grads[name], grad, torch.float32, name)


@pytest.mark.parametrize("ce_factor", [0.0, 0.5])
def test_the_candidate_is_of_the_output_with_dropout(build, monkeypatch, ce_factor):
    made = build(share_encoder_output=True, ce_factor=ce_factor)
    for module in made.model.encoder.modules():
        if hasattr(module, "apply_during_inference"):
            module.p = 0.5
    outputs, tokens = [], []
    made.model.encoder.register_forward_hook(lambda module, inputs, out: outputs.append(out))
    sequence_losses = made.criterion.sequence_losses
    monkeypatch.setattr(
        *(made.criterion, "sequence_losses"),
        lambda output: tokens.append(output.mask) or sequence_losses(output),
    )
    sample = made.sample(SENTENCES)
    made.criterion(made.model, sample)[0].backward()
    (output,) = outputs
    found = decode(made.model, sample, PAD, EOS, encoder_out=output)
    assert torch.equal(found.mask, tokens[0])
    clean = decode(made.model, sample, PAD, EOS)
    assert not torch.equal(found.tokens, clean.tokens)  # else the dropout shows too little
    assert made.model.training and all(m.training for m in made.model.modules())


def test_validation_decodes_as_generation_does(build):
    made = build(share_encoder_output=True)
    made.criterion.eval()
    made.model.eval()
    sample, calls = made.sample(SENTENCES), []
    made.model.encoder.register_forward_hook(lambda *_: calls.append(1))
    made.criterion(made.model, sample)
    assert len(calls) == 2


def test_no_hook_stays_even_after_an_error(build, monkeypatch):
    made = build(share_encoder_output=True)

    def fail(*_, **__):
        raise RuntimeError("no")

    monkeypatch.setattr("fairseq_eisl.criterions.base.decode", fail)
    with pytest.raises(RuntimeError, match="no"):
        made.criterion(made.model, made.sample(SENTENCES))
    for part in (made.model.encoder, made.model.decoder):
        assert not part._forward_hooks and not part._forward_pre_hooks


def test_a_model_with_another_forward_decodes_as_before_and_says_so(build, caplog):
    made, plain = build(share_encoder_output=True), build()
    for each in (made, plain):
        kind = type(each.model)
        forward = {"forward": lambda self, kind=kind, **inputs: kind.forward(self, **inputs)}
        each.model.__class__ = type("Mine", (kind,), forward)
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        loss = made.criterion(made.model, made.sample(SENTENCES))[0]
    assert_near(loss, plain.criterion(plain.model, plain.sample(SENTENCES))[0], torch.float32)
    lines = [r.getMessage() for r in caplog.records if "no effect" in r.message]
    assert len(lines) == 1 and "--share-encoder-output: no effect with this Mine" in lines[0]


@pytest.mark.parametrize(
    "options, why",
    [
        ({"train_decoding": "teacher-forcing"}, "teacher-forcing, which decodes nothing"),
        ({"ngram_factor": 0.0, "ce_factor": 1.0}, "with --ngram-factor 0"),
    ],
)
def test_where_nothing_is_decoded_it_says_so(build, caplog, options, why):
    made = build(share_encoder_output=True, **options)
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        made.criterion(made.model, made.sample(SENTENCES))
    lines = [r.getMessage() for r in caplog.records if "no effect" in r.message]
    assert len(lines) == 1 and "--share-encoder-output" in lines[0] and why in lines[0]


def test_hooks_of_others_on_the_decoder_see_the_candidate_and_stay(build):
    """One that changes the decoder's input counts as without the option."""

    def run(**options):
        made, seen = build(**options), []

        def change(module, inputs):
            if torch.is_grad_enabled():
                seen.append(inputs[0].clone())
                return (inputs[0].index_fill(1, torch.tensor([2]), 4), *inputs[1:])

        made.model.decoder.register_forward_pre_hook(change)
        loss, grads, _, _ = step(made)
        return loss, grads, seen

    loss, grads, seen = run(share_encoder_output=True)
    expected, expected_grads, expected_seen = run()
    assert_near(loss, expected, torch.float32)
    assert len(seen) == len(expected_seen) == 1 and torch.equal(seen[0], expected_seen[0])
    for name, grad in expected_grads.items():
        assert_near(grads[name], grad, torch.float32, name)


def test_an_encoder_with_a_decoding_method_of_its_own_is_asked_for_it(build):
    made, asked = build(share_encoder_output=True), []
    kind = type(made.model.encoder)

    def forward_torchscript(self, net_input):
        asked.append(self.training)
        return kind.forward_torchscript(self, net_input)

    own = {"forward_torchscript": forward_torchscript}
    made.model.encoder.__class__ = type("Own", (kind,), own)
    step(made)
    assert asked == [False]  # for decoding, without dropout
