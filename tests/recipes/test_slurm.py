"""A sweep under a real SLURM, which the test starts."""

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from fairseq_eisl.recipes import slurm_states, sweep_jobs
from fairseq_eisl.recipes.sweep import Cell
from tests.recipes.conftest import SMOKE, TINY
from tests.slurm import Slurm, why_not
from tests.toy import ROOT


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    pytest.importorskip("submitit")
    reason = why_not()
    if reason:
        pytest.skip(reason)
    try:
        cluster = Slurm(tmp_path_factory.mktemp("slurm") / "cluster")
    except (OSError, RuntimeError, subprocess.SubprocessError) as err:
        pytest.skip(str(err))
    yield cluster
    cluster.stop()


def sweep(slurm, *words):
    """Start ``recipes sweep --cluster slurm``."""
    environment = {**slurm.environment, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), environment["PATH"]])
    command = [sys.executable, "-m", "fairseq_eisl.recipes", "sweep", *map(str, words)]
    return subprocess.Popen(
        [*command, "--cluster", "slurm", "--jobs", "2"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(what, seconds=600):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "too slow"
        time.sleep(0.2)
    return found


def names(folder, file):
    with open(folder / file, encoding="utf-8", newline="") as f:
        return [row["cell"] for row in csv.DictReader(f)]


def test_all_cells_but_a_killed_one_which_is_run_again_alone(slurm, write, tmp_path):
    """Two cells as jobs of a node, without accounts; one is killed, the other is done. The next
    time only the killed one runs."""
    settings = "\n".join(f'  - "{text}"' for text in TINY)
    text = f"name: s\nrecipe: {SMOKE}\noverrides:\n{settings}\naxes:\n  seed: [1, 2]\n"
    path = write("s.yaml", text)
    folder = tmp_path / "runs/s"
    arguments = [path, "--runs", tmp_path / "runs"]
    process = sweep(slurm, *arguments)
    try:
        running = wait_for(lambda: len(ids := slurm.jobs("RUNNING")) == 2 and sorted(ids, key=int))
        wait_for(lambda: list((tmp_path / "runs").glob("stages/ce-*")))
        slurm.run("scancel", running[1])
        output, _ = process.communicate(timeout=1200)
    finally:
        process.kill()
    assert process.returncode == 1, output
    assert "seed=2: FAILED: " in output and "1 of 2 cells" in output, output
    assert names(folder, "cells.csv") == ["seed=1"] and not slurm.jobs()
    process = sweep(slurm, *arguments)
    output, _ = process.communicate(timeout=1200)
    assert process.returncode == 0 and "2 cells, 1 done before" in output, output
    assert output.count(": started ") == 1 and "seed=2: started" in output
    assert names(folder, "cells.csv") == ["seed=1", "seed=2"]
    assert names(folder, "rows.csv") == ["seed=1", "seed=1", "seed=2", "seed=2"]


def test_a_sweep_that_is_stopped_cancels_its_jobs(slurm, tmp_path):
    process = sweep(slurm, SMOKE, *TINY, "--axis", "seed=1,2", "--runs", tmp_path / "runs")
    try:
        wait_for(lambda: len(slurm.jobs("RUNNING")) == 2)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode not in (0, None) and "stopping " in output, output
    wait_for(lambda: not slurm.jobs(), seconds=60)


def test_a_job_that_leaves_no_result_is_not_waited_for(slurm, monkeypatch, tmp_path):
    """Killed at once, as on a node that fails; there are no accounts."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    monkeypatch.setattr(slurm_states, "GRACE", 1.0)
    monkeypatch.setattr(slurm_states, "BETWEEN", 0.5)
    monkeypatch.setattr(sweep_jobs, "gather", lambda sweep, runs: [])
    job = tmp_path / "job"
    commands = {"lost": ["sh", "-c", f"echo $PPID > {job}; exec sleep 300"], "next": ["true"]}
    monkeypatch.setattr(sweep_jobs, "command_of", lambda sweep, cell, runs: commands[cell.name])

    def kill():
        # Not by scancel, which lets the job see its cell die and leave a result that says so.
        os.kill(int(wait_for(lambda: job.exists() and job.read_text())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    options = sweep_jobs.Options("slurm", 1, 0, {"timeout_min": 5})
    todo = [Cell(name, []) for name in commands]
    failed = sweep_jobs.run_cells(SimpleNamespace(name="s"), todo, str(tmp_path), options)
    killer.join()
    assert list(failed) == ["lost"] and failed["lost"].startswith("SLURM says "), failed


def test_parameters_reach_slurm(slurm, write, tmp_path):
    process = sweep(
        slurm, SMOKE, "--axis", "seed=1", "--runs", tmp_path / "runs", "--parameters", "slurm_x=1"
    )
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0 and "--parameters: " in output and "slurm_x" in output, output


def test_what_squeue_says(slurm, monkeypatch):
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])

    def submit(script, *flags):
        words = ("sbatch", "--parsable", "-o", "/dev/null", *flags, "--wrap", script)
        return slurm.run(*words).strip()

    kept, ended, killed = submit("sleep 60"), submit("exit 3"), submit("true", "--hold")
    slurm.run("scancel", killed)
    found = wait_for(
        lambda: len(f := slurm_states.final_states([kept, ended, killed, "999"])) == 3 and f, 60
    )
    assert found == {ended: "FAILED", killed: "CANCELLED", "999": "forgotten"}
    assert slurm_states.final_states(["999"]) == {"999": "forgotten"}
    slurm.run("scancel", kept)
    assert slurm_states.final_states([]) == {}


def test_an_ended_job_is_given_time_for_its_result(monkeypatch):
    clock, asked = [0.0], []
    monkeypatch.setattr(slurm_states.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(
        slurm_states, "final_states", lambda ids: asked.append(ids) or {"1": "FAILED"}
    )
    jobs = slurm_states.EndedJobs()
    assert jobs.states(["1", "2"]) == {} and jobs.states(["1", "2"]) == {}
    assert len(asked) == 1  # not at every look
    clock[0] = slurm_states.GRACE
    assert jobs.states(["1", "2"]) == {"1": "FAILED"} and jobs.states(["2"]) == {}


def test_without_an_answer_nothing_is_over(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert slurm_states.final_states(["1"]) == {}
