"""Building a generator for a BART model changes nothing that the model computes."""

from argparse import Namespace

import pytest
import torch
from fairseq.models.bart import BARTModel

from fairseq_eisl import fairseq_fixes
from tests.criterions.conftest import SENTENCES
from tests.toy import make_sample, setup

BLEU = ["--eval-bleu", "--eval-bleu-args", '{"beam": 5, "max_len_b": 9}']
PAIRS = [SENTENCES[i % 7] for i in range(10)]
OPTIONS = {"max_len_a": 0, "max_len_b": 9}


def losses(made, pairs=PAIRS):
    """Of training and validation, and the gradient's size, which hears of every sentence."""
    found = []
    for training in (True, False):
        made.model.train(training)
        made.criterion.train(training)
        made.model.zero_grad()
        torch.manual_seed(1)
        loss = made.criterion(made.model, make_sample(made.task, pairs))[0]
        loss.backward()
        size = sum(p.grad.norm() for p in made.model.parameters() if p.grad is not None)
        found += [loss.item(), size.item()]
    return found


@pytest.mark.parametrize("task", ["noisy_translation", "translation"])
@pytest.mark.parametrize("criterion", ["eisl", "cross_entropy"])
def test_training_and_validation_do_not_depend_on_the_beam(toy, task, criterion):
    flags = ["--task", task, "-s", "en", "-t", "de"]
    plain = setup(toy.bin, *flags, arch="bart_base", criterion=criterion)
    with_bleu = setup(toy.bin, *flags, *BLEU, arch="bart_base", criterion=criterion)
    assert with_bleu.task.sequence_generator.beam_size == 5
    expected = losses(plain)
    assert losses(with_bleu) == expected
    with_bleu.task.build_generator([with_bleu.model], Namespace(beam=3, **OPTIONS))
    assert losses(with_bleu) == expected
    # A number of sentences that no beam divides.
    assert losses(with_bleu, PAIRS[:7]) == losses(plain, PAIRS[:7])


def hypotheses(made, generator, size):
    """By a generator, in batches of ``size`` sentences."""
    made.model.eval()
    found = []
    for start in range(0, len(PAIRS), size):
        sample = make_sample(made.task, PAIRS[start : start + size])
        batch = generator.generate([made.model], sample)
        order = sample["id"].argsort().tolist()
        found += [[h["tokens"].tolist() for h in batch[i]] for i in order]
    return found


def test_a_generator_does_not_depend_on_another_or_on_batches(toy):
    made = setup(toy.bin, arch="bart_base", scale=2)
    build = made.task.build_generator
    five = build([made.model], Namespace(beam=5, **OPTIONS))
    expected = hypotheses(made, five, 10)
    greedy = build([made.model], Namespace(beam=1, **OPTIONS))
    one = hypotheses(made, greedy, 10)
    build([made.model], Namespace(beam=2, **OPTIONS))
    for size in (1, 3, 10):
        assert hypotheses(made, five, size) == expected
        assert hypotheses(made, greedy, size) == one
    assert len(expected[0]) == 5 and len(one[0]) == 1
    scores = build([made.model], Namespace(score_reference=True, beam=5))
    sample = make_sample(made.task, PAIRS)
    before = [float(h[0]["score"]) for h in scores.generate([made.model], sample)]
    fresh = setup(toy.bin, arch="bart_base", scale=2)
    fresh.model.eval()
    after = [float(h[0]["score"]) for h in scores.generate([fresh.model], sample)]
    assert before == after


def test_fairseq_still_needs_the_mend(toy):
    """If this fails, ``mend_bart_beams`` is no longer needed with this fairseq."""
    assert BARTModel.set_beam_size is fairseq_fixes.keep_no_beam_size
    made = setup(toy.bin, arch="bart_base")
    before = losses(made)
    for layer in made.model.decoder.layers:  # what fairseq's own method does
        layer.encoder_attn.set_beam_size(5)
    assert losses(made) != before
