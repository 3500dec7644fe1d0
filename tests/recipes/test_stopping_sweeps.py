"""Signals that reach a sweep, and signals that arrive while a command is being started."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from fairseq_eisl.recipes import processes, sweep_jobs
from fairseq_eisl.recipes.processes import Stopped, captured, stopping, supervised
from fairseq_eisl.recipes.sweep import Cell
from tests.toy import ROOT

SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]


def is_alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def signalled(monkeypatch):
    """Signals arrive when a process is there, and Popen has not yet returned."""
    started, real = [], subprocess.Popen
    before = {each: signal.signal(each, signal.SIG_DFL) for each in (signal.SIGTERM, signal.SIGINT)}

    def start(*args, **options):
        started.append(real(*args, **options))
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(processes.subprocess, "Popen", start)
    yield started
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.parametrize(
    "run",
    [
        lambda: captured(SLEEPER),
        lambda: supervised(
            lambda: subprocess.Popen(SLEEPER, start_new_session=True),
            lambda process: process.wait(),
        ),
    ],
)
def test_a_signal_in_the_moment_of_the_start_leaves_nothing_behind(signalled, run):
    with pytest.raises(Stopped) as stopped, stopping():
        run()
    assert stopped.value.number == signal.SIGTERM
    (process,) = signalled
    assert process.returncode == -signal.SIGTERM  # it did not inherit that signals are ignored


def test_after_a_start_signals_are_heeded_at_once():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(Stopped), stopping():
            assert captured([sys.executable, "-c", "print(1)"]).stdout == "1\n"
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
            raise AssertionError("the signal was lost")
    finally:
        signal.signal(signal.SIGTERM, before)


CELL = """
import os, signal, sys, time
def stop(*_):
    time.sleep(2)  # a training that saves
    open(sys.argv[1] + '.ended', 'w').close()
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
open(sys.argv[1] + '.begun', 'w').write(str(os.getpid()))
time.sleep(100)
"""
SWEEP = f"""
import os, signal, sys
from types import SimpleNamespace
for each in (signal.SIGTERM, signal.SIGINT):
    signal.signal(each, signal.SIG_DFL)
from fairseq_eisl.recipes import command, sweep_jobs
from fairseq_eisl.recipes.sweep import Cell
runs = sys.argv[1]
sweep_jobs.command_of = lambda sweep, cell, runs: [
    sys.executable, "-c", {CELL!r}, os.path.join(runs, cell.name)
]
options = sweep_jobs.Options("local", 2, 0, {{"timeout_min": 5}})
todo = [Cell(name, []) for name in ("one", "two", "three")]
command._run = lambda args: sweep_jobs.run_cells(SimpleNamespace(name="s"), todo, runs, options)
sys.exit(command.main(["run", "x"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_sweep_that_is_stopped_waits_for_its_cells(tmp_path, number):
    pytest.importorskip("submitit")
    words = [sys.executable, "-c", SWEEP, str(tmp_path)]
    sweep = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    begun = [tmp_path / f"{name}.begun" for name in ("one", "two")]
    while not all(path.exists() and path.read_text() for path in begun):
        assert sweep.poll() is None
        time.sleep(0.1)
    sweep.send_signal(number)
    error = sweep.communicate(timeout=60)[1]
    assert sweep.returncode == 128 + number
    assert "stopping one, two; waiting for at most 30 s\n" in error
    assert f"recipes: stopped by {number.name}; run it again to go on\n" in error
    assert "has not ended" not in error and "Traceback" not in error
    for path in begun:
        assert path.with_suffix(".ended").exists() and not is_alive(int(path.read_text()))
    assert not (tmp_path / "three.begun").exists()


def test_a_job_that_does_not_end_is_named(tmp_path, monkeypatch, capsys):
    pytest.importorskip("submitit")
    cancelled = []
    job = SimpleNamespace(
        job_id="7", done=lambda force_check: False, cancel=lambda check: cancelled.append(check)
    )
    monkeypatch.setattr(sweep_jobs, "_PATIENCE", 0.5)
    monkeypatch.setattr(sweep_jobs, "_STARTING", 0.0)
    options = sweep_jobs.Options("local", 1, 0, {})
    jobs = sweep_jobs._Jobs(SimpleNamespace(name="s"), str(tmp_path), options)
    jobs.active.append((Cell("slow", []), job))
    jobs.stop()
    assert cancelled == [False]
    assert "recipes: slow: has not ended, job 7\n" in capsys.readouterr().err


def test_a_job_that_is_being_started_is_stopped_with_the_others(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    job = SimpleNamespace(done=lambda force_check: True)

    def submit(_):
        os.kill(os.getpid(), signal.SIGTERM)
        return job

    jobs = sweep_jobs._Jobs(
        SimpleNamespace(name="s", recipe="r.yaml", tune=False),
        str(tmp_path),
        sweep_jobs.Options("local", 1, 0, {}),
    )
    monkeypatch.setattr(jobs, "executor", SimpleNamespace(submit=submit))
    try:
        with pytest.raises(Stopped), stopping():
            jobs.start(Cell("one", []))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert jobs.active == [(Cell("one", []), job)]
