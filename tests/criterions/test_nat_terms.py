"""NAT-REG and hints beside the losses of the words: what they are, and what must hold."""

import re

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.criterions import base
from fairseq_eisl.criterions.decoder_states import recorded
from fairseq_eisl.criterions.eisl import EISLCriterion
from fairseq_eisl.losses import reference
from tests import toy as toy_corpus
from tests.criterions.conftest import (
    EXTRA,
    SENTENCES,
    assert_update_freq_changes_nothing,
    loss_and_gradient,
)
from tests.criterions.terms import CMLM, FACTORS, INAT, NAMES, NAT, options, save_teacher
from tests.tolerances import assert_near

PAD = 1
CRITERIONS = ("eisl", "bag_of_ngrams", "oaxe", "token_weighted")
# Every architecture, every criterion.
PAIRS = [*(("eisl", arch) for arch in toy_corpus.NAT_ARCHS), *((c, CMLM) for c in CRITERIONS[1:])]
each_pair = pytest.mark.parametrize("criterion, arch", PAIRS)


@pytest.fixture(scope="module")
def teacher(toy, tmp_path_factory):
    path = tmp_path_factory.mktemp("teacher") / "teacher.pt"
    return path, save_teacher(toy.bin, path)


@pytest.fixture(scope="module")
def make(toy, teacher):
    def make(criterion, arch, *flags, terms=True, **more):
        chosen = options(teacher[0], **more) if terms else more
        flags = (*EXTRA.get(arch, []), *flags)
        return toy_corpus.setup(toy.bin, *flags, arch=arch, criterion=criterion, scale=2, **chosen)

    return make


def parts(made, sentences, ids=None):
    torch.manual_seed(4)
    log = made.criterion(made.model, made.sample(sentences, ids))[2]
    return {name: log[f"part_{name}"] for name in NAMES}


# -- what they are -------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", ["w1 w2 al@@ x w7 w9", "w3", ("w1 w2 w3 w4", "w5 w6 w6"), ""])
def test_the_terms_are_those_of_the_literal_references(toy, make, teacher, sentence):
    """The teacher reads an ordinary batch, as it was trained on: no start symbols; its place t
    is beside the student's t + 1, which is to say the same word."""
    made = make("oaxe", NAT)
    sample = made.sample([sentence])
    source, target = sample["net_input"]["src_tokens"], sample["target"]
    decoder = made.model.decoder
    with recorded(decoder, attention=True) as recorder:
        made.model(source, sample["net_input"]["src_lengths"], sample["prev_target"], target)
    student = recorder.words
    ordinary = toy_corpus.setup(toy.bin, arch="transformer").sample([sentence])
    with recorded(teacher[1].decoder, attention=True) as recorder:
        teacher[1](**ordinary["net_input"])
    known = recorder.words
    assert ordinary["target"].tolist() == target[:, 1:].tolist()
    real = torch.ones_like(target, dtype=torch.bool)
    words = decoder.embed_tokens.weight[target]
    expected = {
        "nat_reg": reference.similarity_loss(student.top, words, real),
        "hint_hidden": reference.hidden_hint_loss(
            [states[:, 1:] for states in student.layers], known.layers, real[:, 1:], -1, 1
        ),
        "hint_align": reference.align_hint_loss(
            [weights[:, :, 1:] for weights in student.attention],
            [F.pad(weights, (1, 0)) for weights in known.attention],  # nothing at the start
            real[:, 1:],
            torch.ones_like(source, dtype=torch.bool),
        ),
    }
    found = parts(made, [sentence])
    for name, value in expected.items():
        assert_near(found[name], value.sum(), torch.float32, name)
    assert found["nat_reg"] > 0 and found["hint_align"] > 0
    assert (found["hint_hidden"] > 0) == (target.size(1) > 2)


def test_the_thresholds_are_those_of_the_flags(make):
    every = parts(make("oaxe", NAT), SENTENCES)["hint_hidden"]
    some = parts(make("oaxe", NAT, hint_student_threshold=0.9), SENTENCES)["hint_hidden"]
    none = parts(make("oaxe", NAT, hint_teacher_threshold=-1.0), SENTENCES)["hint_hidden"]
    # The states of this model are much alike.
    assert 0 < some < every and none == 0


def test_inat_has_those_of_its_first_step(make):
    """The same weights in one pass: iNAT and vanilla NAT are the same model there."""
    iterative, vanilla = make("eisl", INAT), make("eisl", NAT)
    vanilla.model.load_state_dict(iterative.model.state_dict())
    found, expected = parts(iterative, SENTENCES), parts(vanilla, SENTENCES)
    for name in NAMES:
        assert_near(found[name], expected[name], torch.float32, name)


@each_pair
def test_the_loss_has_them_with_their_factors(make, criterion, arch):
    without = make(criterion, arch, terms=False)
    expected, _, plain, _ = loss_and_gradient(without, without.sample(SENTENCES))
    assert without.criterion.terms.teacher is None
    assert not [key for key in plain if key[len("part_") :] in NAMES]
    made = make(criterion, arch)
    loss, _, log, _ = loss_and_gradient(made, made.sample(SENTENCES))
    added = sum(FACTORS[f"{name}_factor"] * log[f"part_{name}"] for name in NAMES)
    assert_near(loss, expected + added, torch.float32)
    assert made.criterion.name() in log


def test_one_term_alone_asks_for_nothing_else(make):
    made = make("oaxe", NAT, terms=False, nat_reg_factor=1.0)
    log = made.criterion(made.model, made.sample(SENTENCES))[2]
    assert made.criterion.terms.teacher is None
    assert "part_nat_reg" in log and "part_hint_align" not in log


def test_the_released_loss_has_their_means_over_the_batch(make):
    plain, made = (
        make("eisl", NAT, terms=terms, eisl_compat="released", ce_factor=1.0)
        for terms in (False, True)
    )
    expected = loss_and_gradient(plain, plain.sample(SENTENCES))[0]
    loss, size, log, _ = loss_and_gradient(made, made.sample(SENTENCES))
    sums = parts(make("eisl", NAT), SENTENCES)
    assert size == 1
    for name in NAMES:
        assert_near(log[f"part_{name}"] * len(SENTENCES), sums[name], torch.float32, name)
        expected = expected + FACTORS[f"{name}_factor"] * log[f"part_{name}"]
    assert_near(loss, expected, torch.float32)


# -- what must hold ------------------------------------------------------------------------


@each_pair
def test_more_padding_changes_nothing(make, criterion, arch):
    made = make(criterion, arch)

    def run(more, sources):
        sample = made.sample(SENTENCES)
        for name in ("target", "prev_target"):
            sample[name] = F.pad(sample[name], (0, more), value=PAD)
        inputs = sample["net_input"]
        inputs["src_tokens"] = F.pad(inputs["src_tokens"], (0, sources), value=PAD)
        return loss_and_gradient(made, sample)

    (loss, _, log, grads), (padded_loss, _, padded_log, padded_grads) = run(0, 0), run(3, 2)
    assert_near(padded_loss, loss, torch.float32, "loss")
    for name in NAMES:
        assert_near(padded_log[f"part_{name}"], log[f"part_{name}"], torch.float32, name)
    for name in grads:
        assert_near(padded_grads[name], grads[name], torch.float32, name)


@each_pair
def test_a_batch_is_the_sum_of_its_sentences(make, criterion, arch):
    made = make(criterion, arch)
    together = parts(made, SENTENCES, range(8))
    alone = [parts(made, [sentence], [i]) for i, sentence in enumerate(SENTENCES)]
    for name in NAMES:
        assert_near(sum(each[name] for each in alone), together[name], torch.float32, name)


@each_pair
def test_update_freq_gives_the_gradients_of_the_whole_batch(make, criterion, arch):
    assert_update_freq_changes_nothing(lambda: make(criterion, arch, "--lr", "0"))


@each_pair
def test_the_gradient_reaches_the_student_only(make, criterion, arch):
    made, plain = make(criterion, arch), make(criterion, arch, terms=False)
    grads = loss_and_gradient(made, made.sample(SENTENCES))[3]
    others = loss_and_gradient(plain, plain.sample(SENTENCES))[3]
    assert any((grads[name] - others[name]).abs().max() > 1e-4 for name in others)
    known = made.criterion.terms.teacher.model
    assert all(p.grad is None and not p.requires_grad for p in known.parameters())
    assert not known.training
    # Nothing of the teacher is in a checkpoint of the criterion, or wrapped or moved with it.
    made.criterion.train()
    assert not known.training and not made.criterion.state_dict()
    assert not list(made.criterion.parameters()) and not list(made.criterion.children())


@pytest.mark.parametrize("criterion", ["eisl", "oaxe"])
def test_gradients_are_right_where_the_backward_overwrites_logits(make, monkeypatch, criterion):
    made = make(criterion, NAT)
    grads = loss_and_gradient(made, made.sample(SENTENCES))[3]
    monkeypatch.setattr(base, "may_overwrite", lambda _: False)
    for name, grad in loss_and_gradient(made, made.sample(SENTENCES))[3].items():
        assert_near(grads[name], grad, torch.float32, name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@each_pair
def test_half_precision_is_finite_and_the_teacher_has_none(make, criterion, arch, dtype):
    made = make(criterion, arch)
    made.model.to(dtype)
    made.criterion.to(dtype)
    loss, _, log, grads = loss_and_gradient(made, made.sample(SENTENCES))
    assert loss.isfinite() and all(grad.isfinite().all() for grad in grads.values())
    assert {p.dtype for p in made.criterion.terms.teacher.model.parameters()} == {torch.float32}
    assert log["part_hint_align"] > 0


def test_under_autocast_the_losses_stay_float32(make):
    made = make("oaxe", NAT)
    expected = parts(made, SENTENCES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = parts(made, SENTENCES)
    for name in NAMES:
        assert found[name].dtype == torch.float32
        assert (found[name] - expected[name]).abs() < 0.1 * expected[name].abs() + 0.1, name


def test_validation_has_them_and_may_choose_by_them(make):
    made = make("oaxe", NAT)
    made.criterion.eval()
    made.model.eval()
    with torch.no_grad():
        found = parts(made, SENTENCES)
    assert all(value.isfinite() for value in found.values())
    assert all(re.fullmatch(EISLCriterion.validated(), name) for name in NAMES)


def test_training_brings_each_of_them_down(make):
    made = make("token_weighted", NAT)
    optimizer = torch.optim.Adam(made.model.parameters(), lr=3e-3)
    sample = made.sample(SENTENCES)
    before = parts(made, SENTENCES)
    for _ in range(30):
        optimizer.zero_grad()
        made.criterion(made.model, sample)[0].backward()
        optimizer.step()
    after = parts(made, SENTENCES)
    assert all(after[name] < before[name] for name in NAMES), (before, after)


def test_checkpointed_activations_have_hints_on_states(make):
    flags = ["--checkpoint-activations"]
    terms = {"hint_align_factor": 0.0}
    plain, made = (make("oaxe", NAT, *more, **terms) for more in ([], flags))
    expected = loss_and_gradient(plain, plain.sample(SENTENCES))
    found = loss_and_gradient(made, made.sample(SENTENCES))
    assert_near(found[0], expected[0], torch.float32)
    for name, grad in expected[3].items():
        assert_near(found[3][name], grad, torch.float32, name)
