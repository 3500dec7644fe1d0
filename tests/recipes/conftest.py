"""A recipe of a few seconds, and running recipes as users do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_eisl.recipes import flag_check, opening
from tests.toy import ROOT

SMOKE = ROOT / "configs/smoke/multi30k_repeat50.yaml"
# The smoke recipe, cut to a few updates of a tiny model.
TINY = [
    "data.options=['--train','300','--valid','20','--test','20','--seed','1']",
    *("flags.encoder-layers=1", "flags.encoder-embed-dim=32"),
    *("flags.decoder-layers=1", "flags.decoder-embed-dim=32"),
    *("train.ce.flags.max-epoch=2", "train.ce.flags.save-interval-updates=4"),
    *("train.eisl.flags.max-update=6", "train.eisl.flags.save-interval-updates=2"),
]  # fmt: skip


def recipes(*arguments, **options):
    """Start ``python -m fairseq_eisl.recipes``."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "fairseq_eisl.recipes", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        **options,
    )


def finish(process) -> tuple:
    """(exit code, output)."""
    output, _ = process.communicate(timeout=1200)
    return process.returncode, output


@pytest.fixture
def write(tmp_path):
    """Write a YAML file; its path."""

    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return make


@pytest.fixture
def quick_check(monkeypatch):
    """The flags are checked in this process, which has loaded fairseq before."""

    def run(words, input, **_):
        assert words[1:] == ["-m", "fairseq_eisl.recipes.flag_check"]
        answer = json.dumps(flag_check.check(json.loads(input)))
        return subprocess.CompletedProcess(words, 0, answer, "")

    monkeypatch.setattr(opening, "captured", run)
