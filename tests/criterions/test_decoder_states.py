"""What the hooks on a decoder read is what the model computes, and they leave no trace."""

import pytest
import torch

from fairseq_eisl.criterions.decoder_states import has_states, recorded
from tests import toy as toy_corpus
from tests.criterions.conftest import EXTRA, SENTENCES
from tests.tolerances import assert_near
from tests.toy import NAT_ARCHS

TWO = ["--decoder-layers", "2"]
INAT, LEV = "iterative_nonautoregressive_transformer", "levenshtein_transformer"


def make(toy, arch, *flags):
    return toy_corpus.setup(toy.bin, *TWO, *EXTRA.get(arch, []), *flags, arch=arch, scale=2)


def forward(made):
    sample = made.sample(SENTENCES)
    inputs = sample["net_input"]
    torch.manual_seed(3)
    outputs = made.model(
        *(inputs["src_tokens"], inputs["src_lengths"]),
        *(sample["prev_target"], sample["target"]),
    )
    return sample, outputs


@pytest.mark.parametrize("arch", NAT_ARCHS)
def test_the_pass_is_that_of_the_words_and_its_first(toy, arch):
    exits = ["--early-exit", "1,1,2"] if arch == LEV else []
    made = make(toy, arch, *exits)
    decoder = made.model.decoder
    before = forward(made)[1]["word_ins"]["out"]
    with recorded(decoder, attention=True) as recorder:
        sample, outputs = forward(made)
    words, found = outputs["word_ins"], recorder.words
    batch, length = sample["target"].shape
    assert torch.equal(words["out"], before)  # the hooks change nothing
    logits = decoder.output_layer(found.top)
    assert_near(logits, words["out"][:batch], torch.float32)
    assert [tuple(x.shape) for x in found.layers] == 2 * [(batch, length, 32)]
    top = found.layers[-1]
    top = top if decoder.layer_norm is None else decoder.layer_norm(top)
    assert_near(top, found.top, torch.float32)
    source = sample["net_input"]["src_tokens"]
    assert [tuple(w.shape) for w in found.attention] == 2 * [(batch, 2, length, source.size(1))]
    for weights in found.attention:
        assert weights.dtype == torch.float32 and weights.requires_grad
        assert_near(weights.sum(3), torch.ones(batch, 2, length), torch.float32)
        assert (weights.transpose(1, 3)[source.eq(1)] == 0).all()


def test_hooks_are_taken_off_even_after_an_error(toy):
    made = make(toy, INAT)
    decoder = made.model.decoder

    def hooks():
        return sum(
            len(module._forward_hooks) + len(module._forward_pre_hooks)
            for module in decoder.modules()
        )

    before = hooks()
    with pytest.raises(KeyError), recorded(decoder, attention=True):
        assert hooks() > before
        raise KeyError
    assert hooks() == before


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("attention", [True, False])
def test_a_layer_gives_what_it_was_asked_for(toy, training, attention):
    """In evaluation fairseq's layers ask for weights, the mean over heads."""
    made = make(toy, "nonautoregressive_transformer")
    made.model.train(training)
    layer, seen = made.model.decoder.layers[1], []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output[1]))
    forward(made)
    with recorded(made.model.decoder, attention):
        forward(made)
    if training:
        assert seen == [None, None]
    else:
        assert_near(seen[1], seen[0], torch.float32)


def test_an_autoregressive_decoder_has_one_pass(toy):
    made = make(toy, "transformer")
    inputs = made.sample(SENTENCES)["net_input"]
    with recorded(made.model.decoder) as recorder:
        features, extra = made.model(**inputs, features_only=True)
    found = recorder.latest()
    assert recorder.words is None and found.attention == [] and found.top is None
    for states, inner in zip(found.layers, extra["inner_states"][1:]):
        assert torch.equal(states, inner.transpose(0, 1))
    assert torch.equal(found.layers[-1], features)


def test_a_decoder_with_an_adaptive_softmax_has_no_states(toy):
    """It has the attribute, which is None."""
    made = toy_corpus.setup(toy.bin, criterion="cross_entropy")
    decoder = made.model.decoder
    assert has_states(decoder)
    decoder.output_projection = None
    assert not has_states(decoder)
