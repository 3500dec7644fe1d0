"""Stages that are stopped, fail or have nothing to do, without fairseq."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from fairseq_eisl.recipes import stage_cache
from fairseq_eisl.recipes.placeholders import folder
from fairseq_eisl.recipes.processes import stopping
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import RecipeError
from fairseq_eisl.recipes.stage import Stage
from tests.toy import ROOT

PROGRAM = """
import signal, sys
for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(each, signal.SIG_DFL)  # pytest may run with nohup or in the background
from fairseq_eisl.recipes import command
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.stage import Stage
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


def test_a_signal_that_was_ignored_before_stays_ignored():
    """As nohup, and a shell that puts a command into the background, want it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("kept", ["checkpoint_best.pt", "checkpoint_last.pt"])
def test_a_training_without_an_update_is_named_with_its_log(tmp_path, kept):
    stages = [
        Stage("ce", (("python", "-c", "pass"),), resumes=True),
        Stage("later", (("cat", folder("ce") / kept),), ("ce",)),
    ]
    with pytest.raises(RecipeError, match=f"^ce: .*{kept}.*no update.*log: ") as err:
        Runner(stages, str(tmp_path)).run(str(tmp_path / "out"), None)
    assert os.path.exists(str(err.value).split("(log: ")[1].rstrip(")"))


def test_without_git_a_stage_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = Runner([Stage("one", ((sys.executable, "-c", "pass"),))], str(tmp_path))
    runner.run_stages(str(tmp_path / "out"))
    assert (tmp_path / "out/one/stage.json").exists()


def test_one_thread_unless_the_user_says_otherwise(tmp_path, monkeypatch):
    code = "import os; print('threads', os.environ['OMP_NUM_THREADS'])"
    for given, wanted in ((None, "1"), ("3", "3")):
        if given is None:
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OMP_NUM_THREADS", given)
        runner = Runner([Stage("one", (("python", "-c", code),))], str(tmp_path / wanted))
        assert f"export OMP_NUM_THREADS={wanted}" in runner.plan()
        runner.run_stages(str(tmp_path / f"out{wanted}"))
        log = (tmp_path / f"out{wanted}/one/log").read_text()
        assert log.startswith(f"$ OMP_NUM_THREADS={wanted} ") and f"threads {wanted}\n" in log


def test_a_waiting_process_is_told_who_is_at_it(tmp_path):
    store = Runner([], str(tmp_path)).cache
    code = "import sys; from fairseq_eisl.recipes.stage_cache import StageCache\n"
    code += "store = StageCache(sys.argv[1])\n"
    code += "with store.held(sys.argv[2]) as lock:\n"
    code += "    assert lock is None; print(store.holder(sys.argv[2]).shown)"
    with store.held(store.path("a", "b")):
        words = [sys.executable, "-c", code, str(tmp_path), store.path("a", "b")]
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert done.stdout.startswith(f"process {os.getpid()} on ") and "since 2" in done.stdout


def test_a_file_system_without_locks_is_named_and_not_waited_for(tmp_path, monkeypatch):
    def flock(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(stage_cache.fcntl, "flock", flock)
    runner = Runner([Stage("one", (("true",),))], str(tmp_path / "runs"))
    with pytest.raises(RecipeError, match="stages: its file system has no file locks.*--runs"):
        runner.run_stages(str(tmp_path / "out"))


def test_a_training_on_several_gpus_says_so(tmp_path, capsys):
    stages = [Stage("one", (("true",),), workers=4), Stage("two", (("true",),))]
    Runner(stages, str(tmp_path / "runs")).run_stages(str(tmp_path / "out"))
    assert "trainings use 4 GPUs each, and batches are as many times" in capsys.readouterr().err
    Runner(stages[1:], str(tmp_path / "runs")).run_stages(str(tmp_path / "out"))
    assert "GPUs" not in capsys.readouterr().err


def test_a_closed_pipe_and_missing_matplotlib(tmp_path, monkeypatch, capsys):
    from fairseq_eisl.recipes import command
    from tests.recipes.conftest import SMOKE

    monkeypatch.setattr(command, "open_recipe", lambda *_: (_Recipe, [Stage("s", ())]))
    monkeypatch.setattr(command, "run_name", lambda *_: "x")
    monkeypatch.setattr(command, "why_no_pictures", lambda: "pictures need matplotlib: pip ...")
    assert command.main(["run", str(SMOKE), "--runs", str(tmp_path / "runs")]) == 2
    assert capsys.readouterr().err == "recipes: pictures need matplotlib: pip ...\n"
    assert not (tmp_path / "runs").exists()

    def closed(_):
        raise BrokenPipeError

    monkeypatch.setattr(command, "_plan", closed)
    assert command.main(["plan", str(SMOKE)]) == 141 and capsys.readouterr().err == ""


class _Recipe:
    gpus = None
    name, seed = "x", 1
