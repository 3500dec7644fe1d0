"""``best_of_n`` and ``contrastive_margin``: which outputs they learn from."""

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.decoding.fairseq.beam import beam_outputs
from fairseq_eisl.losses.contrastive_margin import contrastive_margin_loss
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near
from tests.toy import ARCHS

PAD, EOS = 1, 2
LIMIT = {"output_max_len_a": 0.0, "output_max_len_b": 8}


def make(toy, criterion, arch="transformer", **more):
    return toy_corpus.setup(toy.bin, arch=arch, criterion=criterion, **LIMIT, **more)


def outputs_of(made, sample, count=4):
    """Of a generator that is built here, in evaluation mode."""
    from fairseq.sequence_generator import SequenceGenerator

    dictionary = made.task.target_dictionary
    made.model.eval()
    generator = SequenceGenerator(
        [made.model], dictionary, beam_size=count, max_len_a=0.0, max_len_b=8
    )
    found = generator.generate([made.model], sample)
    made.model.train()
    return [[hypothesis["tokens"] for hypothesis in each] for each in found]


def mean_nll(made, sample, row, tokens):
    """Of one output, teacher-forced."""
    prefix = torch.cat([torch.tensor([EOS]), tokens[:-1]]).unsqueeze(0)
    inputs = {k: v[row : row + 1] for k, v in sample["net_input"].items()}
    logits = made.model(**{**inputs, "prev_output_tokens": prefix})[0]
    return F.cross_entropy(logits[0].float(), tokens)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_beam_is_fairseqs(toy, arch):
    made = make(toy, "best_of_n", arch)
    sample = made.sample(SENTENCES)
    made.model.encoder.eval()
    found = beam_outputs(made.model, sample, made.task.target_dictionary, 4, 0.0, 8)
    assert not made.model.encoder.training and made.model.decoder.training  # as they were
    for ours, theirs in zip(found, outputs_of(made, sample)):
        assert [row[row.ne(PAD)].tolist() for row in ours] == [t.tolist() for t in theirs]


@pytest.mark.parametrize("criterion", ["best_of_n", "contrastive_margin"])
def test_losses_are_those_of_the_chosen_outputs(toy, criterion):
    made = make(toy, criterion)
    sample = made.sample(SENTENCES)
    before = {k: v.clone() for k, v in sample["net_input"].items()}
    losses, size, log = made.criterion(made.model, sample, reduce=False)
    assert size == len(SENTENCES) and not list(made.criterion.parameters())
    for name, value in before.items():
        assert torch.equal(value, sample["net_input"][name])
    for row, outputs in enumerate(outputs_of(made, sample)):
        targets = sample["target"][row : row + 1]
        rewards = [made.criterion.rewards(t.unsqueeze(0), targets).item() for t in outputs]
        best = max(range(4), key=lambda i: (rewards[i], -i))
        worst = min(range(4), key=lambda i: (rewards[i], -i))
        expected = mean_nll(made, sample, row, outputs[best])
        if criterion == "contrastive_margin":
            other = mean_nll(made, sample, row, outputs[worst])
            pair = torch.tensor([[rewards[best], rewards[worst]]])
            expected = contrastive_margin_loss(expected[None], other[None], pair)[0]
        assert_near(losses[row], expected, torch.float32, str(row))


def test_what_is_logged(toy):
    made = make(toy, "contrastive_margin", hypotheses=3)
    log = made.criterion(made.model, made.sample(SENTENCES))[2]
    other = make(toy, "best_of_n", hypotheses=3)
    other_log = other.criterion(other.model, other.sample(SENTENCES))[2]
    assert other_log["hypotheses"] == 24 and other_log["best"] == log["pairs"] == 8
    assert log["rewards_worst"] <= log["rewards_best"]
    assert other_log["rewards_best"] == pytest.approx(float(log["rewards_best"]))
    from fairseq.logging import metrics

    for criterion, logs in ((made.criterion, log), (other.criterion, other_log)):
        with metrics.aggregate(new_root=True) as shown:
            criterion.reduce_metrics([logs, logs])
        assert shown["reward_best"].avg == pytest.approx(float(logs["rewards_best"]) / 8)


def test_one_hypothesis_is_its_own_best(toy):
    made = make(toy, "best_of_n", hypotheses=1)
    sample = made.sample(SENTENCES)
    losses, _, _ = made.criterion(made.model, sample, reduce=False)
    (first,) = outputs_of(made, sample, count=1)[0]
    assert_near(losses[0], mean_nll(made, sample, 0, first), torch.float32)


@pytest.mark.parametrize("left", [False, True])
def test_outputs_begin_with_the_symbol_that_decoding_begins_with(toy, left):
    """Also where the targets are padded on the left, so that padding stands first."""
    flags = ["--left-pad-target"] if left else []
    made = toy_corpus.setup(toy.bin, *flags, criterion="best_of_n", **LIMIT)
    sample = made.sample(SENTENCES)
    assert sample["net_input"]["prev_output_tokens"][:, 0].eq(PAD).any() == left
    assert made.criterion.hypotheses(made.model, sample).prefix[:, :, 0].eq(EOS).all()
