"""Flags of metrics that are not asked for."""

from argparse import Namespace

import pytest

from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.metrics import Column, Flag, Metric, register, unregister
from fairseq_eisl.evaluation.metrics.registry import idle_flags

from .logs import generation_log


def score(tmp_path, *flags):
    (tmp_path / "log").write_text(generation_log(["a b c", "d e"]))
    (tmp_path / "ref").write_text("a b c\nd e\n")
    return main(["score", "--log", f"{tmp_path}/log", "--reference", f"{tmp_path}/ref", *flags])


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--wanted-styles", "w"), "--wanted-styles w: needs --style-classifier CHECKPOINT"),
        (
            ("--detokenize-language", "de"),
            "--detokenize-language de: needs --detokenized-reference FILE",
        ),
    ],
)
def test_a_flag_without_effect_is_refused_before_anything_is_scored(
    tmp_path, monkeypatch, capsys, flags, words
):
    monkeypatch.setattr(Metric, "asked", lambda *_: pytest.fail("it is scored"))
    with pytest.raises(SystemExit):
        score(tmp_path, *flags)
    assert f"error: {words}\n" in capsys.readouterr().err


def test_a_default_is_no_such_flag(tmp_path):
    assert score(tmp_path, "--detokenize-language", "en") == 0


@pytest.fixture
def two():
    """Metrics that share a flag; a recipe gives another of theirs itself."""
    shared, own = Flag("--shared", "X", ""), Flag("--own", "X", "", in_run=("training", "log"))
    for name in ("one", "two"):
        flags = (Flag(f"--{name}", "X", ""), shared, own)
        register(Metric(name, (Column(name),), lambda job: {}, flags=flags))
    yield
    for name in ("one", "two"):
        unregister(name)


def test_what_another_metric_reads_or_a_recipe_gives_is_not_idle(two):
    def idle(**given):
        return [flag.name for flag, _ in idle_flags(lambda f: f.value(Namespace(**given)))]

    assert idle(shared="x", two="x") == [] and idle(own="x") == []
    assert idle(shared="x") == ["--shared", "--shared"]
