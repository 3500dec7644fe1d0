"""What a sweep lets know of a cell: its log while it runs, and why it failed."""

import threading
import time
from types import SimpleNamespace

import pytest

from fairseq_eisl.recipes import sweep_jobs
from fairseq_eisl.recipes.sweep import Cell

CASES = {
    "kill -KILL $$": "killed by SIGKILL",
    "echo first; echo 'disk full' >&2; exit 3": "disk full",
    "echo 'recipes: ce: fairseq-train ended with 1' >&2; echo later >&2; exit 1": (
        "ce: fairseq-train ended with 1"
    ),
}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run one cell, ``a``, that is a shell's script."""
    pytest.importorskip("submitit")
    monkeypatch.setattr(sweep_jobs, "gather", lambda sweep, runs: [])

    def run(script):
        monkeypatch.setattr(sweep_jobs, "command_of", lambda *arguments: ["sh", "-c", script])
        options = sweep_jobs.Options("local", 1, 0, {"timeout_min": 5})
        sweep = SimpleNamespace(name="s")
        return sweep_jobs.run_cells(sweep, [Cell("a", [])], str(tmp_path), options)

    return run


@pytest.mark.parametrize("script", CASES)
def test_the_reason_is_what_ended_the_cell(script, run):
    """Not the path of a log, with which submitit ends its message."""
    failed = run(script)
    assert list(failed) == ["a"] and failed["a"].endswith(CASES[script]), failed


def test_the_log_is_written_while_the_cell_runs(run, tmp_path):
    seen, go = [], tmp_path / "go"

    def look():
        end = time.monotonic() + 60
        while not seen and time.monotonic() < end:
            time.sleep(0.1)
            seen.extend(p for p in tmp_path.glob("s/jobs/*.err") if "halfway" in p.read_text())
        go.touch()

    watcher = threading.Thread(target=look)
    watcher.start()
    failed = run(f"echo halfway >&2; while ! [ -e {go} ]; do sleep 0.1; done")
    watcher.join()
    assert seen and not failed
