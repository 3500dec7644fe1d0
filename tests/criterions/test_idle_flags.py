"""Flags that change nothing are said, once; work that changes nothing is not done."""

import logging

import pytest
import torch

from fairseq_eisl.criterions import base
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near

FACTORS = {"crf_loss_factor": 0.5, "mask_ins_loss_factor": 0.5, "word_del_loss_factor": 0.5}


def said(caplog, made, updates=2):
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        for _ in range(updates):
            made.criterion(made.model, made.sample(SENTENCES))
    return [record.getMessage() for record in caplog.records if "no effect" in record.message]


AUTOREGRESSIVE = [
    # options, what the one line must hold; none, if there must be no line
    ({}, None),
    ({"output_layer": "blocks"}, None),
    ({"output_layer": "blocks", "ce_factor": 0.5}, "--output-layer blocks: no effect with --ce-f"),
    (
        {"candidate_after_eos": True, "train_decoding": "teacher-forcing"},
        "--candidate-after-eos: no effect with --train-decoding teacher-forcing",
    ),
    (
        {"candidate_avoid_eos": True, "train_decoding": "teacher-forcing"},
        "--candidate-avoid-eos: no effect with --train-decoding teacher-forcing",
    ),
    ({"candidate_after_eos": True, "parallel_decoding": True}, None),
    ({"label_smoothing": 0.1}, "--label-smoothing 0.1: no effect on the training with --ce-factor"),
    ({"label_smoothing": 0.1, "ce_factor": 0.1}, None),
    (
        {"position_selection": "uniform", "gumbel_temperature": 0.5, "selection_on": "prob"},
        "--gumbel-temperature 0.5, --selection-on prob: no effect with --position-selection uni",
    ),
    ({"position_selection": "hard", "gumbel_temperature": 0.5, "selection_on": "prob"}, None),
    (
        {"position_selection": "count", "gumbel_temperature": 0.5},
        "--gumbel-temperature 0.5: no effect with --position-selection count",
    ),
    (
        {"eisl_special": "include", "eisl_steps": "all", **FACTORS},
        "--eisl-special include, --eisl-steps all, --crf-loss-factor 0.5, --mask-ins-loss-factor",
    ),
    (
        {"ngram_factor": 0.0, "ce_factor": 1.0, "ngram": "1", "train_decoding": "sample"},
        "--ngram 1, --train-decoding sample: no effect with --ngram-factor 0",
    ),
    ({"ngram_factor": 0.0, "ce_factor": 1.0}, None),
]


@pytest.mark.parametrize("options, line", AUTOREGRESSIVE)
def test_a_flag_without_effect_is_said_once(build, caplog, options, line):
    lines = said(caplog, build(**options))
    assert len(lines) == (line is not None) and all(each.startswith(line) for each in lines), lines


def test_blocks_for_a_model_that_has_none(build, caplog):
    lines = said(caplog, build(arch="lstm", output_layer="blocks"))
    assert len(lines) == 1 and "no effect with this LSTMModel" in lines[0]
    made = build(output_layer="blocks")
    made.model.decoder.output_projection.register_forward_hook(lambda *_: None)
    assert len(said(caplog, made)) == 1


def test_validation_says_nothing(build, caplog):
    made = build(label_smoothing=0.1)
    made.criterion.eval()
    assert not said(caplog, made)


NAT = "nonautoregressive_transformer"
INAT, LEV = "iterative_nonautoregressive_transformer", "levenshtein_transformer"


@pytest.mark.parametrize(
    "arch, options, line",
    [
        (NAT, {}, None),
        (
            NAT,
            {"train_decoding": "sample", "candidate_after_eos": True, "output_layer": "blocks"},
            "--train-decoding sample, --candidate-after-eos, --output-layer blocks: no effect with",
        ),
        (NAT, {"parallel_decoding": True}, "--parallel-decoding: no effect with NATransformerM"),
        (NAT, FACTORS, "--crf-loss-factor 0.5, --mask-ins-loss-factor 0.5, --word-del-loss"),
        (LEV, {"mask_ins_loss_factor": 0.5, "word_del_loss_factor": 0.5}, None),
        ("nacrf_transformer", {"crf_loss_factor": 0.5}, None),
        (NAT, {"eisl_steps": "all"}, "--eisl-steps all: no effect with NATransformerModel"),
        (INAT, {"eisl_steps": "all"}, None),
        (
            INAT,
            {"eisl_compat": "released", "eisl_steps": "all", "eisl_special": "include"},
            "--eisl-special include, --eisl-steps all: no effect with --eisl-compat released",
        ),
        (NAT, {"label_smoothing": 0.1}, "--label-smoothing 0.1: no effect"),
        (INAT, {"label_smoothing": 0.1}, None),  # its other steps keep their cross entropy
        (NAT, {"ngram_factor": 0.0, "ce_factor": 1.0, "ngram": "1"}, "--ngram 1: no effect"),
        (
            NAT,
            {"position_selection": "uniform", "gumbel_temperature": 0.5},
            "--gumbel-temperature 0.5: no effect",
        ),
    ],
)
def test_the_same_for_models_that_are_not_autoregressive(toy, caplog, arch, options, line):
    made = toy_corpus.setup(
        toy.bin, *toy_corpus.LANGUAGES, *toy_corpus.NAT_TASK, arch=arch, scale=1.0, **options
    )
    lines = said(caplog, made)
    assert len(lines) == (line is not None) and all(each.startswith(line) for each in lines), lines


# -- what is not done ----------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
def test_without_eisl_nothing_is_decoded(build, monkeypatch, training):
    def fail(*_, **__):
        raise AssertionError("decoded")

    for name in ("decode", "decode_in_parallel", "teacher_forced"):
        monkeypatch.setattr(base, name, fail)
    made = build(ngram_factor=0.0, ce_factor=2.0)
    made.criterion.train(training)
    log = made.criterion(made.model, made.sample(SENTENCES))[2]
    assert float(log["loss"]) == pytest.approx(2 * float(log["ce"]))
    made.criterion.reduce_metrics([log])  # without what there is not
    assert "eisl" not in log and "candidate_tokens" not in log


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("arch", toy_corpus.ARCHS)
def test_the_encoder_runs_once_for_both_prefixes(build, monkeypatch, arch, training):
    """Loss and gradients are those of a batch in which every sentence stands twice."""
    seen, outcomes = [], []
    for once in (True, False):
        made = build(arch=arch, ce_factor=0.5)
        made.criterion.train(training)
        if not once:
            monkeypatch.setattr(
                "fairseq_eisl.criterions.model_outputs.encodes_once", lambda *_: False
            )
        rows = []
        made.model.encoder.register_forward_hook(
            lambda module, inputs, output, rows=rows: rows.append(torch.is_grad_enabled())
        )
        sizes = []
        made.model.encoder.register_forward_pre_hook(
            lambda module, inputs, named, sizes=sizes: sizes.append(
                len(inputs[0] if inputs else named["src_tokens"])
            ),
            with_kwargs=True,
        )
        torch.manual_seed(1)
        loss = made.criterion(made.model, made.sample(SENTENCES))[0]
        loss.backward()
        seen.append([size for size, grad in zip(sizes, rows) if grad])
        outcomes.append((loss, {n: p.grad for n, p in made.model.named_parameters()}))
        assert not [
            h for h in made.model.encoder._forward_hooks.values() if h.__name__ == "repeat"
        ]  # ours is gone
    assert seen == [[len(SENTENCES)], [2 * len(SENTENCES)]]
    (loss, grads), (expected, expected_grads) = outcomes
    assert_near(loss, expected, torch.float32)
    for name, grad in expected_grads.items():
        if grad is not None:
            assert_near(grads[name], grad, torch.float32, name)


def test_a_model_with_another_forward_runs_as_before(build):
    """Nobody knows what it does with the encoder's output."""
    made = build(ce_factor=0.5)
    kind = type(made.model)
    forward = {"forward": lambda self, **inputs: kind.forward(self, **inputs)}
    expected = made.criterion(made.model, made.sample(SENTENCES))[0]
    made.model.__class__ = type("Mine", (kind,), forward)
    assert_near(made.criterion(made.model, made.sample(SENTENCES))[0], expected, torch.float32)
