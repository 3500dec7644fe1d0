"""Models whose output is no logits: their own log-probabilities count, as under cross entropy."""

import importlib

import pytest
import torch
from fairseq.models.transformer import TransformerDecoder, TransformerModel

from fairseq_eisl.criterions.output_layer import output_layer
from fairseq_eisl.decoding.fairseq.cached_transformer import is_known
from fairseq_eisl.decoding.fairseq.model_scores import gives_logits
from fairseq_eisl.losses import EISLOptions, eisl_log_prob_terms, eisl_logit_terms, eisl_loss
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near


class OwnDecoder(TransformerDecoder):
    """Probabilities, sharpened; its class decides what they are called."""

    def output_layer(self, features):
        return super().output_layer(features).mul(0.5).softmax(-1)

    def get_normalized_probs(self, net_output, log_probs, sample=None):
        return net_output[0].log() if log_probs else net_output[0]


def as_probabilities(model):
    model.decoder.__class__ = OwnDecoder


def as_log_probabilities(model):
    """By the model; the decoder's output are log-probabilities."""
    old = type(model.decoder)
    forward = {"output_layer": lambda self, x: old.output_layer(self, x).mul(0.5).log_softmax(-1)}
    model.decoder.__class__ = type("LogDecoder", (old,), forward)

    def normalized(self, net_output, log_probs, sample=None):
        return net_output[0] if log_probs else net_output[0].exp()

    model.__class__ = type("LogModel", (type(model),), {"get_normalized_probs": normalized})


def on_the_instance(model):
    """What the methods give, put on one object."""
    inner = model.decoder.get_normalized_probs

    def normalized(net_output, log_probs, sample=None):
        return inner((net_output[0] * 0.5, None), log_probs)

    model.decoder.get_normalized_probs = normalized


KINDS = [as_probabilities, as_log_probabilities, on_the_instance]


def plain(build, **options):
    """A model whose logits are half as large: what the others' probabilities come from."""
    made = build(**options)
    old = type(made.model.decoder)
    made.model.decoder.__class__ = type(
        "Half", (old,), {"output_layer": lambda self, x: old.output_layer(self, x) * 0.5}
    )
    return made


def outcome(made, training):
    made.criterion.train(training)
    made.model.train(training)
    made.model.zero_grad()
    torch.manual_seed(3)
    loss, _, log = made.criterion(made.model, made.sample(SENTENCES))
    loss.backward()
    grads = {n: p.grad for n, p in made.model.named_parameters()}
    return loss, log, grads


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"train_decoding": "greedy", "output_layer": "blocks"},
        {"train_decoding": "sample", "ce_factor": 0.5, "label_smoothing": 0.1},
        {"parallel_decoding": True},
        {"train_decoding": "teacher-forcing", "ngram": "0"},
        {"ngram_factor": 0.0, "ce_factor": 1.0},
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_models_own_normalisation_counts(build, kind, options, training):
    """Loss, gradients, candidates and logged values are those of the same model in logits."""
    expected = outcome(plain(build, **options), training)
    made = build(**options)
    kind(made.model)
    assert not gives_logits(made.model) and output_layer(made.model) is None
    loss, log, grads = outcome(made, training)
    assert_near(loss, expected[0], torch.float32)
    assert log.keys() == expected[1].keys()
    for name, value in log.items():
        assert float(value) == pytest.approx(float(expected[1][name]), rel=1e-3, abs=1e-4), name
    for name, grad in expected[2].items():
        assert_near(grads[name], grad, torch.float32, name)


def test_stock_models_give_logits(build):
    for arch in toy_corpus.ARCHS:
        assert gives_logits(build(arch=arch).model), arch


def test_log_probabilities_are_taken_as_they_are():
    """Not normalised again: a model may leave something out."""
    torch.manual_seed(1)
    logits, targets = torch.randn(2, 5, 9, dtype=torch.float64), torch.randint(9, (2, 4))
    options = EISLOptions((1, 2), selection="softmax")
    rest = {
        "output_mask": torch.ones(2, 5) > 0,
        "target_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]) > 0,
        "options": options,
    }
    log_probs = logits.log_softmax(2)
    same = eisl_log_prob_terms(log_probs, targets, **rest).total()
    assert_near(same, eisl_logit_terms(logits, targets, **rest).total(), torch.float64)
    less = eisl_log_prob_terms(log_probs - 0.5, targets, **rest)
    assert_near(less.total(), same + 0.5, torch.float64)
    assert_near(
        same[:1],
        eisl_loss(
            *(logits, targets),
            output_mask=rest["output_mask"],
            target_mask=rest["target_mask"],
            ngrams=(1, 2),
            selection="softmax",
            reduction="none",
        )[:1],
        torch.float64,
    )


def test_a_normalisation_of_another_shape_is_refused(build):
    made = build()
    kind = type(made.model)
    time_first = {"get_normalized_probs": lambda self, out, log_probs: out[0].transpose(0, 1)}
    made.model.__class__ = type("TimeFirst", (kind,), time_first)
    with pytest.raises(ValueError, match="this model gives a tensor of shape") as error:
        made.criterion.decoding = "teacher-forcing"
        made.criterion(made.model, made.sample(SENTENCES[:3]))
    assert "\n" not in str(error.value)


@pytest.fixture(scope="module")
def pointer(toy):
    importlib.import_module("fairseq.examples.pointer_generator.pointer_generator_src")
    flags = [*toy_corpus.TINY, "--share-all-embeddings", "--dropout", "0"]

    def make(criterion, **options):
        return toy_corpus.setup(
            *(toy.bin, *flags, "--source-position-markers", "0"),
            **{"arch": "transformer_pointer_generator", "criterion": criterion, **options},
        )

    return make


def test_a_pointer_network_has_the_nll_of_cross_entropy(pointer):
    ours, ce = pointer("eisl"), pointer("cross_entropy")
    assert not is_known(ours.model.decoder) and isinstance(ours.model, TransformerModel)
    sample = ours.sample(SENTENCES)
    for made in (ours, ce):
        made.model.eval()
        made.criterion.eval()
    nll = ours.criterion(ours.model, sample)[2]["nll"]
    assert_near(nll, ce.criterion(ce.model, sample)[0].detach(), torch.float32)


@pytest.mark.parametrize("decoding", ["greedy", "sample"])
def test_a_pointer_network_trains(pointer, decoding):
    made = pointer("eisl", train_decoding=decoding, output_layer="blocks", ce_factor=0.1)
    loss = made.criterion(made.model, made.sample(SENTENCES))[0]
    loss.backward()
    assert made.model.decoder.project_p_gens.weight.grad.abs().sum() > 0
