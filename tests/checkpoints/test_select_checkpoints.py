"""Which checkpoints of a folder are the last and the best."""

import argparse
import os

import pytest
import torch

from fairseq_eisl.checkpoints import best_checkpoints, last_checkpoints

from .fairseq_checkpoints import save


@pytest.fixture
def many(folder):
    for name in ["checkpoint_best.pt", "checkpoint_last.pt", "checkpoint1-shard0.pt", "x.txt"]:
        (folder / name).write_text("")
    for name in ["9", "10", "11", "_1_500", "_2_1000", "_2_1500", "10.pt.tmp"]:
        (folder / f"checkpoint{name}.pt").write_text("")
    for value in ["9.5000", "10.2501", "10.2500", "31.0004"]:
        save(f"checkpoint.best_bleu_{value}.pt", {"w": torch.ones(1)})
    return folder


def names(paths):
    return [os.path.basename(path)[len("checkpoint") : -len(".pt")] for path in paths]


def test_the_last_by_number_not_by_name(many):
    assert names(last_checkpoints(".", 2)) == ["10", "11"]
    assert names(last_checkpoints(".", 3)) == ["9", "10", "11"]
    assert names(last_checkpoints(".", 2, upper_bound=10)) == ["9", "10"]
    assert names(last_checkpoints(".", 2, by_updates=True)) == ["_2_1000", "_2_1500"]
    assert names(last_checkpoints(".", 1, by_updates=True, upper_bound=1499)) == ["_2_1000"]


def test_the_best_by_value_with_the_best_last(many):
    best = [".best_bleu_10.2500", ".best_bleu_10.2501", ".best_bleu_31.0004"]
    assert names(best_checkpoints(".", 3)) == best
    assert names(best_checkpoints(".", 1, maximize=False)) == [".best_bleu_9.5000"]
    assert names(best_checkpoints(".", 1, maximize=True)) == best[2:]


def test_what_is_better_stands_in_the_checkpoint(many):
    settings = {"best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False}
    for value in ("3.1000", "2.9001"):
        cfg = {"checkpoint": settings}
        save(f"checkpoint.best_loss_{value}.pt", {"w": torch.ones(1)}, cfg=cfg)
    with pytest.raises(ValueError, match="several metrics, choose: bleu, loss"):
        best_checkpoints(".", 1)
    assert names(best_checkpoints(".", 1, metric="loss")) == [".best_loss_2.9001"]
    assert names(best_checkpoints(".", 1, metric="bleu")) == [".best_bleu_31.0004"]
    with pytest.raises(ValueError, match="no checkpoints by the metric 'ppl', there is bleu, loss"):
        best_checkpoints(".", 1, metric="ppl")


def test_old_arguments_say_it_too(folder):
    args = argparse.Namespace(best_checkpoint_metric="f1", maximize_best_checkpoint_metric=True)
    for value in ("-0.5000", "0.1000"):
        save(f"checkpoint.best_f1_{value}.pt", {"w": torch.ones(1)}, args=args, cfg=None)
    assert names(best_checkpoints(".", 1)) == [".best_f1_0.1000"]


def test_a_metric_that_the_training_did_not_have(folder):
    save("checkpoint.best_ppl_3.1000.pt", {"w": torch.ones(1)})
    with pytest.raises(ValueError, match="a higher ppl is better .*metric: bleu.: choose max"):
        best_checkpoints(".", 1)
    save("checkpoint.best_ppl_3.1000.pt", {"w": torch.ones(1)}, cfg=None)
    with pytest.raises(ValueError, match="metric: unknown"):
        best_checkpoints(".", 1)


def test_too_few(many):
    for choose, message in [
        (
            lambda: last_checkpoints(".", 4),
            r"4 .*checkpointN.pt are needed, there is 3: ch.*9.pt, ",
        ),
        (lambda: last_checkpoints(".", 2, upper_bound=9), "up to 9 .* is 1: checkpoint9.pt$"),
        (lambda: last_checkpoints(".", 4, by_updates=True), "3: checkpoint_1_500.pt, "),
        (lambda: best_checkpoints(".", 5), "there is 4: checkpoint.best_bleu_10.2500.pt, "),
        (lambda: last_checkpoints(".", 2, upper_bound=1), "there is none$"),
        (lambda: last_checkpoints(".", 0), "1 or more is needed, not 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            choose()
