"""Several stages of a run at a time, without fairseq."""

import os
import signal
import subprocess
import sys
import time

import pytest

from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.placeholders import folder
from fairseq_eisl.recipes.processes import stopping
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import RecipeError
from fairseq_eisl.recipes.side_by_side import each_once
from fairseq_eisl.recipes.stage import Stage
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT

# Writes a file, and ends well when another one is there.
MEETS = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
until = time.time() + float("{seconds}")
while not other.exists() and time.time() < until:
    time.sleep(0.05)
if not other.exists():
    sys.exit(1)
"""


def python(code, *words):
    return ((sys.executable, "-c", code, *map(str, words)),)


def meeting(tmp_path, seconds=60.0):
    """Two stages of which each waits for the other, and one that needs both."""
    code, a, b = MEETS.format(seconds=seconds), tmp_path / "a", tmp_path / "b"
    both = "import os, sys; sys.exit(not all(map(os.path.isdir, sys.argv[1:])))"
    last = ((sys.executable, "-c", both, folder("a"), folder("b")),)
    return [
        Stage("a", python(code, a, b)),
        Stage("b", python(code, b, a)),
        Stage("both", last, needs=("a", "b")),
    ]


def test_stages_that_do_not_need_each_other_run_at_once(tmp_path, capfd):
    runner = Runner(meeting(tmp_path), str(tmp_path / "runs"))
    runner.run_stages(str(tmp_path / "out"), jobs=3)
    assert all(runner.cache.is_done(runner.path(name)) for name in ("a", "b", "both"))
    assert sorted(os.listdir(tmp_path / "out")) == ["a", "b", "both"]
    said = capfd.readouterr().err
    for number, name in enumerate(("a", "b", "both"), 1):
        assert said.count(f"[{number}/3] {name}: done in ") == 1
    assert "waiting" not in said and "done before" not in said
    Runner(meeting(tmp_path), str(tmp_path / "runs")).run_stages(str(tmp_path / "out"), jobs=2)
    assert capfd.readouterr().err.count("done before") == 3


def test_two_runs_of_one_recipe_share_the_work(tmp_path, capfd):
    """Of one stage at a time each: alone, neither would end."""
    runs = str(tmp_path / "runs")
    other = os.fork()
    if other == 0:
        code = 1
        try:
            Runner(meeting(tmp_path), runs).run_stages(str(tmp_path / "other"))
            code = 0
        finally:
            os._exit(code)
    Runner(meeting(tmp_path), runs).run_stages(str(tmp_path / "out"))
    assert os.waitpid(other, 0)[1] == 0
    for name in ("other", "out"):
        assert sorted(os.listdir(tmp_path / name)) == ["a", "b", "both"]
    assert capfd.readouterr().err.count(": done in ") == 3


def test_one_at_a_time_is_one_after_the_other(tmp_path):
    with pytest.raises(RecipeError, match="^a: .* ended with 1"):
        Runner(meeting(tmp_path, 0.5), str(tmp_path / "runs")).run_stages(str(tmp_path / "out"))
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("fails", ["first", "second"])
def test_a_failure_ends_the_run_when_the_other_stage_is_through(tmp_path, fails, capfd):
    """Whichever process it comes to; nothing more is begun, and no work is lost."""
    there = tmp_path / "slow is at work"
    slow = python(
        "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(2)", there
    )
    broken = python(
        MEETS.format(seconds=60) + "print('what was wrong')\nsys.exit(7)", tmp_path / "x", there
    )
    first, second = (broken, slow) if fails == "first" else (slow, broken)
    names = ("broken", "slow") if fails == "first" else ("slow", "broken")
    stages = [Stage(names[0], first), Stage(names[1], second)]
    stages.append(Stage("later", python("pass"), needs=("slow",)))
    runner = Runner(stages, str(tmp_path / "runs"))
    with pytest.raises(RecipeError, match="^broken: .* ended with 7"):
        runner.run_stages(str(tmp_path / "out"), jobs=2)
    assert runner.cache.is_done(runner.path("slow"))
    assert not runner.cache.is_done(runner.path("later"))
    said = capfd.readouterr().err
    assert said.count("\nwhat was wrong\n") == said.count("a stage has failed") == 1


def test_tasks_are_called_once_each_some_at_a_time(tmp_path):
    def task(name, other=None):
        with open(tmp_path / "called", "a", encoding="utf-8") as f:
            f.write(name)
        until = time.time() + 60
        while other and other not in (tmp_path / "called").read_text() and time.time() < until:
            time.sleep(0.05)
        if time.time() > until:
            raise RecipeError(f"{name} has waited in vain")

    each_once([lambda: task("a", "b"), lambda: task("b", "a"), lambda: task("c")], 2)
    assert sorted((tmp_path / "called").read_text()) == ["a", "b", "c"]
    (tmp_path / "called").unlink()
    each_once([lambda name=name: task(name) for name in "abc"], 1)
    assert (tmp_path / "called").read_text() == "abc"
    each_once([], 2)


def test_a_task_that_fails_ends_the_others_when_they_are_through(tmp_path):
    def ends(name, wait=0.0, reason=None):
        time.sleep(wait)
        if reason:
            raise RecipeError(reason)
        (tmp_path / name).touch()

    tasks = [lambda: ends("slow", 2.0), lambda: ends("broken", 0.2, "why"), lambda: ends("later")]
    with pytest.raises(RecipeError, match="^why$"):
        each_once(tasks, 2)
    assert os.listdir(tmp_path) == ["slow"]


@pytest.mark.parametrize(
    "ends, message",
    [
        (RecipeError("why"), "^why$"),
        (OSError(28, "No space left on device", "/x"), "No space left on device"),
        (signal.SIGKILL, "of this run ended with -9; run it again to go on"),
        (signal.SIGTERM, "of this run ended with 143; run it again"),
    ],
    ids=["error", "disk", "killed", "stopped"],
)
def test_a_task_of_another_process_that_fails_last_is_not_lost(ends, message):
    first = os.getpid()

    def task():
        if os.getpid() == first:
            time.sleep(0.3)  # the other one takes its task meanwhile
            return
        time.sleep(1.0)  # the first process has nothing more to begin
        if isinstance(ends, Exception):
            raise ends
        with stopping():
            os.kill(os.getpid(), ends)
            time.sleep(60)

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(RecipeError, match=message):
            each_once([task, task], 2)
    finally:
        signal.signal(signal.SIGTERM, before)


PROGRAM = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_DFL)
from fairseq_eisl.recipes import command
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.stage import Stage
begin = "import os, sys, time; print('pid', os.getpid(), flush=True); "
ends = {"a": sys.argv[2], "b": "time.sleep(60)"}
stages = [Stage(name, (("python", "-c", begin + ends[name]),)) for name in "ab"]
command._run = lambda args: Runner(stages, sys.argv[1]).run(sys.argv[1], None, 2)
sys.exit(command.main(["run", "x"]))
"""


def pids(tmp_path):
    """The process of each stage's command, as soon as they are known."""
    found, until = [], time.time() + 60
    while len(found) < 2:
        assert time.time() < until
        time.sleep(0.05)
        logs = [tmp_path / name / "log" for name in "ab"]
        texts = [log.read_text() for log in logs if log.exists()]
        found = [int(text.split("\npid ")[1]) for text in texts if text.count("\npid ")
                 and text.endswith("\n")]  # fmt: skip
    return found


@pytest.mark.parametrize("first", ["time.sleep(60)", "time.sleep(4); sys.exit(3)"])
def test_a_signal_ends_all_of_them(tmp_path, first):
    """Also when one has failed and the others are awaited."""
    words = [sys.executable, "-c", PROGRAM, str(tmp_path), first]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    children = pids(tmp_path)
    if "exit" in first:
        assert any("a stage has failed" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert error.count("stopped by SIGTERM") == 1 and "Traceback" not in error
    for child in children:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


@pytest.mark.parametrize("command", ["run", "tune"])
def test_a_wrong_number_of_stages_is_named(tmp_path, capsys, command):
    assert main([command, str(SMOKE), "--jobs", "0", "--runs", str(tmp_path / "runs")]) == 2
    assert "--jobs: 1 or more is needed, not 0" in capsys.readouterr().err
