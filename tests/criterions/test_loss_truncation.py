"""``--criterion loss_truncation``: which sentences it leaves out, and what it counts."""

import math

import pytest
import torch
from fairseq.trainer import Trainer
from torch.nn import functional as F

from fairseq_eisl.criterions.averages import Sums
from fairseq_eisl.criterions.sequence_output import SequenceOutput
from fairseq_eisl.decoding.fairseq.model_scores import Scores
from fairseq_eisl.losses.loss_truncation import LossWindow
from tests import toy as toy_corpus
from tests.criterions.conftest import (
    EXTRA,
    SENTENCES,
    assert_update_freq_changes_nothing,
    loss_and_gradient,
)
from tests.tolerances import assert_near

PAD = 1
ARCHS = ["transformer", "lstm", "nonautoregressive_transformer", "cmlm_transformer"]
ARCHS += ["iterative_nonautoregressive_transformer"]


@pytest.fixture(scope="module")
def make(toy):
    """A criterion whose threshold is fixed: at the median of SENTENCES, or where it is given."""

    def make(arch, threshold=None, *flags, **more):
        flags = (*EXTRA.get(arch, []), *flags)
        # Larger weights than these make differences of float32's rounding too large to compare.
        rest = {"criterion": "loss_truncation", "truncation_interval": 10**9, "scale": 2, **more}
        made = toy_corpus.setup(toy.bin, *flags, arch=arch, **rest)
        made.criterion.window.threshold = math.inf
        if threshold is None:
            made.criterion.window.threshold = losses_of(made).median().item()
        else:
            made.criterion.window.threshold = threshold
        return made

    return make


def losses_of(made, sentences=SENTENCES):
    """(B,) the losses that the window notes, the last in it."""
    window = made.criterion.window
    before = window.seen
    sample = made.sample(sentences)
    torch.manual_seed(4)
    with torch.no_grad():
        made.criterion(made.model, sample)
    assert window.seen == before + len(sentences)
    return torch.tensor(list(window.values)[-len(sentences) :])


@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_kept_has_the_gradient_of_cross_entropy(make, arch):
    made = make(arch)
    losses, threshold = losses_of(made), made.criterion.window.threshold
    keep = losses < threshold
    assert 0 < keep.sum() < len(keep)
    sample = made.sample(SENTENCES)
    loss, size, log, grads = loss_and_gradient(made, sample)
    assert size == log["sample_size"] == keep.sum() and log["truncated"] == (~keep).sum()

    plain = make(arch, threshold=math.inf)
    torch.manual_seed(4)
    each, count, _ = plain.criterion(plain.model, sample, reduce=False)
    assert count == len(SENTENCES)
    assert_near(loss, each[keep].sum(), torch.float32, "loss")
    plain.model.zero_grad()
    each[keep].sum().backward()
    for name, parameter in plain.model.named_parameters():
        if parameter.grad is not None:
            assert_near(grads[name], parameter.grad, torch.float32, name)


@pytest.mark.parametrize("arch", ["transformer", "cmlm_transformer"])
def test_padding_changes_nothing(make, arch):
    made = make(arch)

    def run(more):
        sample = made.sample(SENTENCES)
        for name in ["target", *(["prev_target"] if arch == "cmlm_transformer" else [])]:
            sample[name] = F.pad(sample[name], (0, more), value=PAD)
        inputs = sample["net_input"]
        inputs["prev_output_tokens"] = F.pad(inputs["prev_output_tokens"], (0, more), value=PAD)
        return loss_and_gradient(made, sample)

    (loss, size, _, grads), (padded, padded_size, _, padded_grads) = run(0), run(3)
    assert size == padded_size
    assert_near(padded, loss, torch.float32, "loss")
    for name in grads:
        assert_near(padded_grads[name], grads[name], torch.float32, name)


@pytest.mark.parametrize("arch", ["transformer", "cmlm_transformer"])
def test_update_freq_gives_the_gradients_of_the_whole_batch(make, arch):
    assert_update_freq_changes_nothing(lambda: make(arch, None, "--lr", "0"))


def test_the_loss_of_a_sentence_is_the_mean_of_its_own_tokens(make):
    """Two sentences of three tokens: [0, 1, 2] and [3, 4, 5] are 1 and 4, not 2 and 3."""
    made, nll = make("transformer", math.inf), torch.arange(6.0).view(2, 3)
    mask = torch.ones(2, 3).bool()
    scores = Scores(torch.stack([-nll, torch.zeros(2, 3)], 2), normalized=True)
    seeds = torch.zeros(2).long()
    output = SequenceOutput(torch.zeros(2, 3).long(), mask, mask, seeds, scores)
    assert made.criterion.sequence_losses(output)[0].tolist() == [1.0, 4.0]


def test_an_update_without_a_sentence_moves_nothing(make):
    made = make("transformer", 0.0, "--lr", "0.5")
    trainer = Trainer(made.cfg, made.task, made.model, made.criterion)
    before = {name: p.clone() for name, p in trainer.model.named_parameters()}
    trainer.train_step([made.sample(SENTENCES)])
    assert trainer.get_num_updates() == 1
    assert all(torch.equal(p, before[name]) for name, p in trainer.model.named_parameters())


def test_a_batch_without_a_sentence_is_a_zero_of_the_graph(make):
    made = make("transformer", threshold=0.0)
    loss, size, log, grads = loss_and_gradient(made, made.sample(SENTENCES))
    assert loss == 0 and size == 0 and log["truncated"] == len(SENTENCES)
    assert grads and all((grad == 0).all() for grad in grads.values())


def test_validation_leaves_nothing_out_and_notes_nothing(make):
    made = make("transformer", threshold=0.0)
    made.model.eval(), made.criterion.eval()
    seen = made.criterion.window.seen
    with torch.no_grad():
        loss, size, log = made.criterion(made.model, made.sample(SENTENCES))
    assert loss > 0 and size == len(SENTENCES) and "truncated" not in log
    assert made.criterion.window.seen == seen and "sentence_losses" not in log
    assert {"nll", "nll_tokens", "ce"} <= log.keys()


def test_averages_are_of_what_was_counted(make):
    made = make("transformer")
    _, size, log, _ = loss_and_gradient(made, made.sample(SENTENCES))
    from fairseq.logging import metrics

    with metrics.aggregate(new_root=True) as seen:
        made.criterion.reduce_metrics([log, log])
    assert seen["loss"].avg == pytest.approx(float(log["loss"]) / size, rel=1e-4)
    assert seen["truncated"].avg == pytest.approx(100 * (1 - size / len(SENTENCES)))
    lengths = sum(len(s[1].split() if isinstance(s, tuple) else s.split()) + 1 for s in SENTENCES)
    assert seen["target_length"].avg == pytest.approx(lengths / len(SENTENCES), abs=0.01)
    assert Sums([log]).total("entries") == len(SENTENCES)


def test_the_state_goes_into_another_criterion(make):
    made, other = make("transformer"), make("transformer", threshold=1.0)
    made.criterion.window.note(torch.arange(5.0))
    other.criterion.load_kept_state(made.criterion.kept_state())
    assert other.criterion.window.threshold == made.criterion.window.threshold
    assert other.criterion.window.values == made.criterion.window.values


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"truncation_fraction": 1.0}, r"--truncation-fraction must be in \[0, 1\), not 1.0"),
        ({"truncation_window": 0}, "--truncation-window must be 1 or more, not 0"),
        ({"truncation_warmup": -1}, "--truncation-warmup must be 0 or more, not -1"),
        ({"truncation_interval": -1}, "--truncation-interval must be 0 or more, not -1"),
        ({"ce_factor": 0.1}, "--ce-factor 0.1: loss_truncation is cross entropy itself"),
    ],
)
def test_a_wrong_flag_is_named(toy, options, words):
    with pytest.raises(ValueError, match=words):
        toy_corpus.setup(toy.bin, criterion="loss_truncation", **options)


def test_the_warmup_is_said(toy, caplog):
    made = toy_corpus.setup(toy.bin, criterion="loss_truncation")
    with caplog.at_level("INFO", logger="fairseq_eisl"):
        for _ in range(2):
            made.criterion(made.model, made.sample(SENTENCES))
    lines = [r.getMessage() for r in caplog.records if "loss truncation" in r.message]
    assert lines == [
        "loss truncation: plain cross entropy for the next 10000 sentences (--truncation-warmup)"
    ]
    assert isinstance(made.criterion.window, LossWindow)


def test_a_batch_that_only_fills_up_is_not_remembered(make):
    made = make("transformer", math.inf)
    trainer = Trainer(made.cfg, made.task, made.model, made.criterion)
    trainer.begin_epoch(1)
    trainer._dummy_batch = made.sample(SENTENCES)  # as the loader of batches does
    trainer.train_step([made.sample(SENTENCES)])
    seen = made.criterion.window.seen
    assert seen > 0
    trainer.train_step([{}])  # of a worker that has no batch left
    assert made.criterion.window.seen == seen
    trainer.train_step([made.sample(SENTENCES)])
    assert made.criterion.window.seen == 2 * seen
