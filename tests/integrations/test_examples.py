"""The examples run as they are; here with few sentences and updates."""

import importlib
import re
import subprocess
import sys

import pytest

from fairseq_eisl.common.rows import read_rows
from tests.integrations.conftest import needs_hugging_face
from tests.toy import ROOT, environment

EXAMPLES = ROOT / "scripts/examples"
FEW = "--train 150 --test 10 --ce-updates 3 --eisl-updates 2 --seed 2".split()


def run(*words, cwd=None):
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={**environment(), "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
    )


@needs_hugging_face
def test_the_page_runs_as_it_is_written(tmp_path):
    page = (ROOT / "docs/pages/hugging_face.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    done = run("-c", "\n".join(blocks), cwd=tmp_path)
    assert done.returncode == 0 and "train_loss" in done.stdout, done.stderr[-3000:]


@needs_hugging_face
@pytest.mark.parametrize(
    "words", [["seq2seq.py", "--model", "bart"], ["seq2seq.py", "--model", "t5"], ["gpt2.py"]]
)
def test_an_example_trains_and_scores(words, tmp_path):
    name, *flags = words
    done = run(EXAMPLES / name, *flags, *FEW, "--rows", tmp_path / "rows.csv")
    assert done.returncode == 0, done.stderr[-3000:]
    ce, eisl = read_rows(str(tmp_path / "rows.csv"))
    assert (ce["system"], eisl["system"]) == ("CE", "EISL")
    assert (ce["updates"], eisl["updates"], ce["noise"]) == ("3", "2", "repeat:0.5")
    assert "tok:none" in ce["bleu_signature"] and ce["test_set"] == "toy test, 10 sentences"
    assert done.stdout.count("bleu ") == 2


@pytest.fixture
def toy(monkeypatch):
    """The module that the examples share."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module("toy")


@needs_hugging_face
@pytest.mark.parametrize(
    "words, message",
    [
        (["--noise", "repeat:2"], "--noise: "),
        (["--noise", "substitute:0.1"], "random words need a vocabulary"),
        (["--eisl-updates", "0"], "--eisl-updates: 1 or more is needed, not 0"),
    ],
)
def test_wrong_flags_are_one_line(toy, monkeypatch, capsys, words, message):
    monkeypatch.setattr(sys, "argv", ["gpt2.py", *words])
    with pytest.raises(SystemExit) as end:
        toy.parsed(toy.parser_of("Says it.", ce_updates=1, eisl_updates=1))
    assert end.value.code == 2 and message in capsys.readouterr().err.splitlines()[-1]


@needs_hugging_face
def test_the_noise_is_that_of_the_task(toy):
    """Of the training targets alone; the same for the same seed, as every noise of ours."""
    args = toy.argparse.Namespace(noise="repeat:0.5", seed=3, train=40, test=5)
    train, test = toy.corpus(args)
    assert (train, test) == toy.corpus(args)
    clean, same = toy.corpus(toy.argparse.Namespace(noise="none", seed=3, train=40, test=5))
    assert same == test and [source for source, _ in clean] == [source for source, _ in train]
    words = sum(len(target.split()) for _, target in clean)
    noisy = sum(len(target.split()) for _, target in train)
    assert 1.4 < noisy / words < 1.6
