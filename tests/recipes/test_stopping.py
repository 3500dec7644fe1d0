"""Stages that are stopped, fail or have nothing to do, without fairseq."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import RecipeError
from fairseq_eisl.recipes.stages import Stage
from tests.toy import ROOT

PROGRAM = """
import sys
from fairseq_eisl.recipes import command
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.stages import Stage
sleeper = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)"
runner = Runner([Stage("slow", (("python", "-c", sleeper),))], sys.argv[1])
command._run = lambda args: runner.run(sys.argv[1], None)
sys.exit(command.main(["run", "x"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_commands_too(tmp_path, number):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    log, text = tmp_path / "slow/log", ""
    while "\npid " not in text or not text.endswith("\n"):
        assert process.poll() is None
        time.sleep(0.05)
        text = log.read_text() if log.exists() else ""
    child = int(text.split("\npid ")[1])
    holder = next(tmp_path.glob("stages/*.lock")).read_text().splitlines()
    assert holder[0] == str(process.pid)
    process.send_signal(number)
    error = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number and f"stopped by {number.name}" in error
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_training_without_an_update_is_named_with_its_log(tmp_path):
    stages = [
        Stage("ce", (("python", "-c", "pass"),), resumes=True),
        Stage("later", (("cat", "{ce}/checkpoint_best.pt"),), ("ce",)),
    ]
    with pytest.raises(RecipeError, match="^ce: .*no update.*log: ") as err:
        Runner(stages, str(tmp_path)).run(str(tmp_path / "out"), None)
    assert os.path.exists(str(err.value).split("(log: ")[1].rstrip(")"))


def test_without_git_a_stage_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = Runner([Stage("one", ((sys.executable, "-c", "pass"),))], str(tmp_path))
    runner._run(runner.stages[0], str(tmp_path / "one"), "")
    assert (tmp_path / "one/stage.json").exists()
