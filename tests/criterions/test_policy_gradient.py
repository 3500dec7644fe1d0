"""Policy gradient on a model: it learns what is rewarded, and says what it does."""

import pytest
import torch
from fairseq.trainer import Trainer

from fairseq_eisl.criterions.policy_gradient import PolicyGradientCriterion
from fairseq_eisl.evaluation.metrics.sentence_bleu import sentence_bleu
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES

PG = {"criterion": "policy_gradient"}


class FirstWord(PolicyGradientCriterion):
    """1 where the first token is the one that is asked for."""

    wanted = 7

    def rewards(self, tokens, targets):
        return tokens[:, 0].eq(self.wanted).float()


@pytest.mark.parametrize("baseline, samples", [("self_critical", 4), ("rloo", 4)])
def test_it_learns_the_word_that_is_rewarded(toy, baseline, samples):
    made = toy_corpus.setup(toy.bin, scale=1, **PG, pg_baseline=baseline, pg_samples=samples)
    criterion = FirstWord(made.cfg.criterion, made.task).train()
    optimizer = torch.optim.Adam(made.model.parameters(), lr=0.005)
    sample = made.sample(SENTENCES[:6])

    def probability():
        net_input = sample["net_input"]
        with torch.no_grad():
            logits = made.model(**net_input)[0][:, 0]
        return logits.softmax(1)[:, criterion.wanted].min().item()

    assert probability() < 0.5
    for update in range(200):
        torch.manual_seed(update)
        optimizer.zero_grad()
        criterion(made.model, sample)[0].backward()
        optimizer.step()
        if probability() > 0.9:
            break
    assert probability() > 0.9


def test_what_is_logged(toy):
    made = toy_corpus.setup(toy.bin, **PG, pg_samples=2, ce_factor=0.5)
    log = made.criterion(made.model, made.sample(SENTENCES))[2]
    assert log["samples"] == 16 and log["greedy"] == 8
    assert 0 <= float(log["rewards"]) <= 16 and 0 <= float(log["samples_cut"]) <= 16
    from fairseq.logging import metrics

    with metrics.aggregate() as shown:
        made.criterion.reduce_metrics([log, log])
    values = shown.get_smoothed_values()
    assert {"reward", "reward_greedy", "advantage_std", "sample_length", "cut"} <= values.keys()
    assert values["reward"] == pytest.approx(float(log["rewards"]) / 16, abs=1e-3)


def test_samples_are_longer_than_the_target_where_the_source_is(toy):
    made = toy_corpus.setup(toy.bin, **PG, scale=1)
    sample = made.sample([("w1 w2 w3 w4 w5 w6 w1 w2", "w1")])
    samples = made.criterion.samples(made.model, sample, 1)
    assert samples.tokens.shape[:2] == (1, 1)
    limit = int(1.2 * sample["net_input"]["src_lengths"][0]) + 10
    assert sample["target"].size(1) < samples.tokens.size(2) <= limit


def test_pieces_become_words_before_they_are_compared(toy):
    made = toy_corpus.setup(toy.bin, **PG)
    d = made.task.target_dictionary
    rows = [[d.index(p) for p in text.split()] + [d.eos()] for text in ("al@@ x w1", "w1 al@@ x")]
    rows = torch.tensor(rows)
    reward = made.criterion.rewards(rows[:1], rows[1:]).item()
    assert reward == pytest.approx(sentence_bleu(["alx", "w1"], ["w1", "alx"]))
    made.criterion.cfg.reward_remove_bpe = "none"
    pieces = sentence_bleu(["al@@", "x", "w1"], ["w1", "al@@", "x"])
    assert made.criterion.rewards(rows[:1], rows[1:]).item() == pytest.approx(pieces) != reward


def test_a_non_autoregressive_model_is_refused(toy):
    with pytest.raises(ValueError, match="--criterion policy_gradient trains autoregressive"):
        toy_corpus.setup(toy.bin, arch="cmlm_transformer", **PG)


def test_a_batch_that_only_fills_up_has_no_part_in_the_running_mean(toy):
    made = toy_corpus.setup(toy.bin, **PG, pg_baseline="ema", pg_samples=2)
    trainer = Trainer(made.cfg, made.task, made.model, made.criterion)
    trainer.begin_epoch(1)
    trainer._dummy_batch = made.sample(SENTENCES)  # as the loader of batches does
    trainer.train_step([made.sample(SENTENCES)])
    kept = made.criterion.kept_state()
    assert kept["weight"] > 0
    trainer.train_step([{}])  # of a worker that has no batch left
    assert made.criterion.kept_state() == kept
