"""The gradient takes the logits' place only where nobody else needs them."""

import pytest
import torch

from fairseq_eisl.criterions import base, sequence_output
from tests.tolerances import assert_near
from tests.toy import LATENT_ARCHS, setup

MODELS = ["transformer", "nonautoregressive_transformer", *LATENT_ARCHS]
ENDINGS = {
    "tanh": torch.tanh,
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "sigmoid": torch.sigmoid,
    "linear": lambda x: x,
    "scaled": lambda x: 2 * x,
}


def updates(data, arch, ending, count=3):
    """The gradients of each of a few updates of a decoder whose output ends in ``ending``."""
    made = setup(str(data), arch=arch)

    class Ends(type(made.model.decoder)):
        def output_layer(self, features):
            return ending(super().output_layer(features))

    made.model.decoder.__class__ = Ends
    sample = made.sample(["w1 w2 w3", "w4 w1"])
    optimizer = torch.optim.SGD(made.model.parameters(), lr=1e-3)
    found = []
    for update in range(count):
        torch.manual_seed(update)
        optimizer.zero_grad()
        made.criterion(made.model, sample)[0].backward()
        named = made.model.named_parameters()
        found.append({name: p.grad.clone() for name, p in named if p.grad is not None})
        optimizer.step()
    return found


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("arch", MODELS)
def test_a_decoder_that_ends_in_an_operation_trains(toy, monkeypatch, arch, ending):
    found = updates(toy.bin, arch, ENDINGS[ending])
    monkeypatch.setattr(base, "may_overwrite", lambda logits: False)
    expected = updates(toy.bin, arch, ENDINGS[ending])
    assert len(found) == 3 and any(grad.abs().sum() > 0 for grad in found[-1].values())
    for ours, theirs in zip(found, expected):
        assert ours.keys() == theirs.keys() and len(ours) > 10
        for name, gradient in theirs.items():
            torch.testing.assert_close(ours[name], gradient)


@pytest.mark.parametrize("ending", ["tanh", "log_softmax"])
@pytest.mark.parametrize("arch", MODELS)
def test_that_test_fails_where_all_is_overwritten(toy, monkeypatch, arch, ending):
    monkeypatch.setattr(base, "may_overwrite", lambda logits: True)
    with pytest.raises(RuntimeError, match="in-?place"):
        updates(toy.bin, arch, ENDINGS[ending])


@pytest.mark.parametrize("arch", MODELS)
def test_a_plain_layer_is_overwritten(toy, monkeypatch, arch):
    """Else the comparison above would compare a path with itself."""
    asked = base.may_overwrite
    said = []
    monkeypatch.setattr(base, "may_overwrite", lambda x: said.append(asked(x)) or said[-1])
    updates(toy.bin, arch, ENDINGS["linear"], count=1)
    assert said == [True]


@pytest.mark.parametrize("arch", ["ctc_transformer", "dag_transformer"])
def test_eisl_and_likelihood_share_one_gradient_in_place(toy, monkeypatch, arch):
    """Both need the log-probabilities of the target's tokens, which are computed once."""
    calls, real = [], sequence_output.token_log_probs

    def counted(logits, targets, used, in_place):
        calls.append(in_place)
        return real(logits, targets, used, in_place)

    monkeypatch.setattr(sequence_output, "token_log_probs", counted)

    def gradients(**options):
        made = setup(str(toy.bin), arch=arch, position_selection="softmax", **options)
        made.model.double()  # in float32 two parts are rounded otherwise than their sum
        torch.manual_seed(1)
        made.criterion(made.model, made.sample(["w1 w2 w3", "w4 w1"]))[0].backward()
        return {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}

    both = gradients(ce_factor=0.5)
    assert calls == [True]
    monkeypatch.setattr(base, "may_overwrite", lambda logits: False)
    apart = gradients(), gradients(ce_factor=0.5, ngram_factor=0.0)
    assert calls[1:] == [False, False]
    assert both.keys() == apart[0].keys() == apart[1].keys() and len(both) > 10
    for name, gradient in both.items():
        assert_near(gradient, apart[0][name] + apart[1][name], torch.float32, name)
