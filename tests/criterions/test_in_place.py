"""The gradient takes the logits' place only where nobody else needs them."""

import pytest
import torch

from fairseq_eisl.criterions import eisl as module
from tests.toy import setup


def gradients(data, ending, **options):
    """Of every parameter, after one batch through a decoder whose output ends in ``ending``."""
    _, task, model, criterion = built = setup(str(data), **options)
    kind = type(model.decoder)

    class Ends(kind):
        def output_layer(self, features):
            return ending(super().output_layer(features))

    model.decoder.__class__ = Ends
    torch.manual_seed(3)
    loss, _, _ = criterion(model, built.sample(["w1 w2 w3", "w4 w1"]))
    loss.backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    "ending",
    [torch.tanh, lambda x: torch.log_softmax(x, -1), torch.sigmoid, lambda x: x, lambda x: 2 * x],
    ids=["tanh", "log_softmax", "sigmoid", "linear", "scaled"],
)
def test_a_decoder_that_ends_in_an_operation_trains(toy, monkeypatch, ending):
    found = gradients(toy.bin, ending)
    monkeypatch.setattr(module, "may_overwrite", lambda logits: False)
    expected = gradients(toy.bin, ending)
    assert expected.keys() == found.keys() and len(found) > 10
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient)


@pytest.mark.parametrize("ending", [torch.tanh, lambda x: torch.log_softmax(x, -1)])
def test_the_test_can_fail(toy, monkeypatch, ending):
    monkeypatch.setattr(module, "may_overwrite", lambda logits: True)
    with pytest.raises(RuntimeError, match="in-?place"):
        gradients(toy.bin, ending)
