"""What a sweep says of a cell that failed."""

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


@pytest.mark.parametrize("script", CASES)
def test_the_reason_is_what_ended_the_cell(script, monkeypatch, tmp_path):
    """Not the path of a log, with which submitit ends its message."""
    pytest.importorskip("submitit")
    monkeypatch.setattr(sweep_jobs, "gather", lambda sweep, runs: [])
    monkeypatch.setattr(sweep_jobs, "command_of", lambda *arguments: ["sh", "-c", script])
    options = sweep_jobs.Options("local", 1, 0, {"timeout_min": 5})
    failed = sweep_jobs.run_cells(
        SimpleNamespace(name="s"), [Cell("a", [])], str(tmp_path), options
    )
    assert list(failed) == ["a"] and failed["a"].endswith(CASES[script]), failed
