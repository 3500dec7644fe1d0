"""How losses grow with edits."""

import pytest
import torch

from fairseq_eisl.analyses.outputs import mean_losses, on_candidate
from fairseq_eisl.analyses.sensitivity import sensitivity
from fairseq_eisl.analyses.sentences import SentencePairs
from fairseq_eisl.analyses.trained import load_trained
from fairseq_eisl.losses import EISLOptions
from tests.tolerances import assert_near

OPTIONS = EISLOptions((1, 2), selection="softmax")


@pytest.mark.parametrize("noise", ["none", "repeat:0.5"])
def test_the_values_are_those_of_the_criterion_in_validation(case, noise):
    """EISL of the greedy candidate and the likelihood of the targets, over all sentences."""
    cfg = case.setup.cfg.criterion.copy()
    cfg.update(ngram="1,2", position_selection="softmax")
    criterion = case.setup.task.build_criterion(cfg).eval()
    with torch.no_grad():
        logs = [criterion(case.trained.model, batch)[2] for batch in case.pairs.noisy(noise, 1)]
    total = {key: sum(float(log[key]) for log in logs) for key in ("eisl", "nll", "nll_tokens")}
    ce, (eisl,) = mean_losses(case.trained, case.pairs.noisy(noise, 1), [OPTIONS])
    assert_near(torch.tensor(eisl), torch.tensor(total["eisl"] / 12), torch.float32)
    assert_near(torch.tensor(ce), torch.tensor(total["nll"] / total["nll_tokens"]), torch.float32)


def test_positions_after_the_end_count_on_request(case):
    (batch,) = list(case.pairs.clean())[-1:]
    cut, whole = (on_candidate(case.trained, batch, after) for after in (False, True))
    assert whole.candidates.mask.sum() == batch["target"].ne(1).sum()
    assert cut.candidates.mask.sum() <= whole.candidates.mask.sum()


def test_unigrams_do_not_see_order_and_cross_entropy_does(checkpoints):
    trained = load_trained(str(checkpoints.late), data=str(checkpoints.data))
    assert trained.updates > 100 and not trained.model.training
    pairs = SentencePairs(trained.task, "valid", most=20, batch=20)
    losses = {"1": EISLOptions((1,), selection="softmax"), "1,2": OPTIONS}
    rows = list(sensitivity(trained, pairs, losses, ["shuffle:all", "none"], [1]))
    share = {(row["noise"], row["system"]): float(row["share"]) for row in rows}
    assert share["shuffle:all", "EISL 1"] == pytest.approx(0, abs=1e-4)
    assert 0.01 < share["shuffle:all", "EISL 1,2"] < share["shuffle:all", "CE"]
    assert {share["none", name] for name in ("CE", "EISL 1", "EISL 1,2")} == {0.0}
    for row in rows:
        value, clean, other = (float(row[name]) for name in ("value", "clean", "unrelated"))
        assert float(row["ratio"]) == pytest.approx(value / clean, rel=1e-4)
        assert float(row["share"]) == pytest.approx((value - clean) / (other - clean), abs=1e-4)


def test_a_model_that_tells_nothing_apart_is_refused(case, monkeypatch):
    monkeypatch.setattr("fairseq_eisl.analyses.sensitivity.mean_losses", lambda *args: (1.0, [2.0]))
    with pytest.raises(ValueError, match="CE is 1 of the own targets and 1 of others"):
        list(sensitivity(case.trained, case.pairs, {"1,2": OPTIONS}, ["repeat:1"], [1]))
