"""Likelihoods and EISL on models with latent alignments."""

import math

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.losses import EISLOptions
from fairseq_eisl.losses.latent import eisl_ctc_terms, eisl_dag_terms
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES, loss_and_gradient
from tests.tolerances import assert_near
from tests.toy import LATENT_ARCHS

OWN = {"ctc_transformer": "ctc_loss", "dag_transformer": "dag_loss"}
MIXES = {
    "likelihood": {},
    "eisl": {"criterion": "eisl"},
    "with likelihood": {"criterion": "eisl", "ce_factor": 0.5},
    "whole words": {"criterion": "eisl", "ngram_units": "words", "position_selection": "sinkhorn"},
    "counts without specials": {
        "criterion": "eisl",
        "position_selection": "count",
        "eisl_special": "exclude",
        "ngram": "1,2",
    },
}
each_arch = pytest.mark.parametrize("arch", LATENT_ARCHS)
each_mix = pytest.mark.parametrize("mix", MIXES)
# The target has far more words than the source has slots.
LONG = ("w3", " ".join(f"w{i}" for i in range(19)))


@pytest.fixture(scope="module")
def build(toy):
    """``tests.toy.setup`` of a model with latent alignments."""

    def make(arch, *flags, **options):
        options = {"criterion": OWN[arch], "scale": 2, **options}
        return toy_corpus.setup(toy.bin, *flags, arch=arch, **options)

    return make


@each_arch
@each_mix
def test_more_padding_changes_nothing(build, arch, mix):
    made = build(arch, **MIXES[mix])

    def run(more):
        sample = made.sample(SENTENCES)
        for name in ("target", "prev_target"):
            sample[name] = F.pad(sample[name], (0, more), value=1)
        return loss_and_gradient(made, sample)

    loss, _, log, grads = run(0)
    padded_loss, _, padded_log, padded_grads = run(3)
    assert_near(padded_loss, loss, torch.float32, "loss")
    for name in log:
        assert float(padded_log[name]) == pytest.approx(float(log[name]), rel=1e-4, abs=1e-5), name
    for name in grads:
        assert_near(padded_grads[name], grads[name], torch.float32, name)


@each_arch
@each_mix
def test_a_batch_is_the_sum_of_its_sentences_in_any_order(build, arch, mix):
    made = build(arch, **MIXES[mix])

    def losses(sentences, ids):
        torch.manual_seed(4)
        sample = made.sample(sentences, ids)
        loss, size, _ = made.criterion(made.model, sample, reduce=False)
        assert size == len(sentences)
        return dict(zip(sample["id"].tolist(), loss))

    sentences = [*SENTENCES, LONG]
    together = losses(sentences, range(9))
    shuffled = losses(sentences[::-1], range(8, -1, -1))
    alone = {i: losses([sentence], [i])[i] for i, sentence in enumerate(sentences)}
    for i in range(9):
        assert_near(shuffled[i], together[i], torch.float32)
        assert_near(alone[i], together[i], torch.float32)


@each_arch
def test_eisl_is_the_loss_of_the_models_outputs(build, arch):
    options = {"position_selection": "softmax", "ngram": "2,3"}
    made = build(arch, criterion="eisl", **options)
    sample = made.sample(SENTENCES)
    net_input = sample["net_input"]
    words = made.model(net_input["src_tokens"], net_input["src_lengths"], None, sample["target"])
    words, targets = words["word_ins"], sample["target"]
    rest = {
        "output_mask": words["output_mask"],
        "target_mask": words["mask"],
        "options": EISLOptions((2, 3), selection="softmax"),
    }
    if arch == "ctc_transformer":
        expected = eisl_ctc_terms(words["out"], targets, words["out"].size(2) - 1, **rest)
    else:
        expected = eisl_dag_terms(words["out"], words["links"], targets, **rest)
    loss = made.criterion(made.model, sample, reduce=False)[0]
    assert_near(loss, expected.total(), torch.float32)


@each_arch
def test_a_target_without_room_is_counted_and_skipped(build, arch):
    made = build(arch, "--upsample-scale", "2")
    loss, size, log, grads = loss_and_gradient(made, made.sample([*SENTENCES, LONG]))
    without, _, other, kept = loss_and_gradient(made, made.sample(SENTENCES))
    # Two of the others are too long for CTC: blanks between equal words.
    assert int(log["too_long"]) == int(other["too_long"]) + 1 and size == 9
    assert_near(loss, without, torch.float32)
    assert log["nll_tokens"] == other["nll_tokens"]
    for name in grads:
        assert_near(grads[name], kept[name], torch.float32, name)
    made.criterion.reduce_metrics([log])


@each_arch
def test_the_share_of_skipped_targets_is_logged(build, arch):
    from fairseq.logging import metrics

    made = build(arch, "--upsample-scale", "1")
    _, _, log, _ = loss_and_gradient(made, made.sample([LONG, "w1 w2 w3 w4 w5"]))
    with metrics.aggregate() as found:
        made.criterion.reduce_metrics([log])
    values = found.get_smoothed_values()
    assert values["too_long"] == 50.0
    bits = float(log["nll"]) / int(log["nll_tokens"]) / math.log(2)
    assert values["nll_loss"] == pytest.approx(bits, abs=1e-3)


@each_arch
def test_validation_says_the_likelihood_and_how_long_outputs_are(build, arch):
    made = build(arch, criterion="eisl")
    own = build(arch)
    sample = made.sample(SENTENCES)
    for part in (made.model, made.criterion, own.model, own.criterion):
        part.eval()
    with torch.no_grad():
        log = made.criterion(made.model, sample)[2]
        likelihood = own.criterion(own.model, sample)[2]
    assert float(log["nll"]) == pytest.approx(float(likelihood["nll"]))
    assert float(log["ce"]) == pytest.approx(float(likelihood[OWN[arch]]))
    generator = made.task.build_generator([made.model], {})
    generator.blank = None  # a piece that no text has, but this model may
    found = generator.generate([made.model], sample)
    assert int(log["candidate_tokens"]) == sum(len(f[0]["tokens"]) - 2 for f in found)
    words = sample["target"].gt(3).sum() + sample["target"].eq(3).sum()
    assert int(log["target_tokens"]) == int(words)


@each_arch
def test_validation_is_repeatable_and_moves_no_random_number(build, arch):
    made = build(arch, "--glancing-ratio", "0.5", criterion="eisl")
    sample = made.sample(SENTENCES)
    made.model.eval(), made.criterion.eval()
    state = torch.get_rng_state()
    with torch.no_grad():
        values = [made.criterion(made.model, sample)[0].item() for _ in range(2)]
    assert values[0] == values[1] and torch.equal(state, torch.get_rng_state())


@each_arch
def test_factors_add_up(build, arch):
    made = build(arch, criterion="eisl", ce_factor=0.5, ngram_factor=2.0)
    _, _, log, grads = loss_and_gradient(made, made.sample(SENTENCES))
    assert float(log["loss"]) == pytest.approx(
        2 * float(log["eisl"]) + 0.5 * float(log["ce"]), rel=1e-5
    )
    parts = [
        build(arch, criterion="eisl"),
        build(arch, criterion="eisl", ce_factor=1.0, ngram_factor=0.0),
    ]
    one, other = (loss_and_gradient(part, part.sample(SENTENCES))[3] for part in parts)
    for name in grads:
        assert_near(grads[name], 2 * one[name] + 0.5 * other[name], torch.float32, name)


# -- what does not go together ---------------------------------------------------------------------


@each_arch
@pytest.mark.parametrize("criterion", ["nat_loss", "axe", "bag_of_ngrams", "oaxe"])
def test_losses_of_slots_are_refused_before_training(build, arch, criterion):
    with pytest.raises(ValueError, match=f"--criterion {criterion} needs a slot for every target"):
        build(arch, criterion=criterion)


def test_likelihoods_are_for_their_own_model(build, toy):
    with pytest.raises(ValueError, match="--criterion dag_loss needs a slot.*ctc_loss, eisl"):
        build("ctc_transformer", criterion="dag_loss")
    with pytest.raises(ValueError, match="--criterion ctc_loss is for --arch ctc_transformer"):
        toy_corpus.setup(toy.bin, arch="cmlm_transformer", criterion="ctc_loss")
    with pytest.raises(ValueError, match="--criterion ctc_loss trains non-autoregressive models"):
        toy_corpus.setup(toy.bin, criterion="ctc_loss")


@each_arch
def test_flags_without_meaning_are_refused(build, arch):
    with pytest.raises(ValueError, match="--ce-factor 0.5: the loss of .* is the likelihood"):
        build(arch, ce_factor=0.5)
    made = build(arch, criterion="eisl", eisl_compat="released")
    with pytest.raises(ValueError, match="--eisl-compat released is for models with a slot"):
        made.criterion(made.model, made.sample(SENTENCES))
    made = build(arch, criterion="eisl", nat_reg_factor=0.5)
    with pytest.raises(ValueError, match="--nat-reg-factor 0.5 needs"):
        made.criterion(made.model, made.sample(SENTENCES))
