"""Running the smoke recipe, undisturbed and killed."""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.recipes.conftest import SMOKE, TINY, finish, recipes
from tests.toy import ROOT


def rows(path):
    with open(path, encoding="utf-8", newline="") as f:
        return [{k: v for k, v in row.items() if k not in VARIES} for row in csv.DictReader(f)]


def folder_of(runs):
    """The folder of the one run, which is named after its overrides, too."""
    (folder,) = runs.glob("smoke_multi30k_repeat50-seed1,*")
    return folder


VARIES = ("date", "training_seconds")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A finished run: (folder of runs, the run's own folder, seconds)."""
    runs = tmp_path_factory.mktemp("undisturbed")
    started = time.time()
    code, output = finish(recipes("run", SMOKE, *TINY, "--runs", runs))
    assert code == 0, output
    return runs, folder_of(runs), time.time() - started


def test_a_run_ends_in_rows_and_pictures(undisturbed):
    _, folder, _ = undisturbed
    found = rows(folder / "rows.csv")
    assert [row["system"] for row in found] == ["CE", "EISL"]
    for row in found:
        assert row["recipe"] == "smoke_multi30k_repeat50" and row["noise"] == "repeat:0.5"
        assert row["seed"] == "1" and row["sentences"] == "20" and row["bleu_signature"]
    assert {"compare.png", "curve.png", "recipe.yaml"} <= set(os.listdir(folder))
    assert (folder / "eisl/checkpoint_best.pt").exists()  # links to the stages
    assert "| eisl_1 " in (folder / "eisl/log").read_text()
    # The page's commands write where each stage's results are.
    commands = dict(json.loads((folder / "report.json").read_text())["commands"])
    for stage in ("ce", "eisl"):
        assert str((folder / stage).resolve()) in commands[stage].split("--save-dir ")[1]


def test_nothing_is_done_twice_and_a_change_runs_what_depends_on_it(undisturbed):
    runs, folder, _ = undisturbed
    code, output = finish(recipes("run", SMOKE, *TINY, "--runs", runs))
    assert code == 0 and output.count(": done before") == 7
    other = ["generate.beam=2", "--runs", runs, "--out", runs / "other"]
    code, output = finish(recipes("run", SMOKE, *TINY, *other))
    assert code == 0 and output.count(": done before") == 4, output


def test_two_stages_at_a_time_end_with_the_same_rows(undisturbed, tmp_path):
    code, output = finish(recipes("run", SMOKE, *TINY, "--runs", tmp_path, "--jobs", "2"))
    assert code == 0 and "done before" not in output and "waiting" not in output, output
    assert rows(folder_of(tmp_path) / "rows.csv") == rows(undisturbed[1] / "rows.csv")


def test_killed_at_five_random_moments_it_ends_with_the_same_rows(undisturbed, tmp_path):
    _, expected, seconds = undisturbed
    rng = random.Random(os.environ.get("KILLS", "1"))
    moments, outputs = [], []
    for attempt in range(5):
        process = recipes("run", SMOKE, *TINY, "--runs", tmp_path, start_new_session=True)
        # Early: a run may be much quicker than the first one was, when less runs beside it.
        moments.append(rng.uniform(0.1, 0.4) * seconds)
        try:
            outputs.append(process.communicate(timeout=moments[-1])[0])
            assert process.returncode == 0, outputs[-1]
            break  # all done before the moment came
        except subprocess.TimeoutExpired:
            # Now and then only the recipe: what it has started lives on for a while.
            kill = os.killpg if attempt % 2 else os.kill
            kill(process.pid, signal.SIGKILL)
            outputs.append(process.communicate()[0])
    code, output = finish(recipes("run", SMOKE, *TINY, "--runs", tmp_path))
    assert code == 0, (moments, output)
    assert len(moments) >= 2
    found = folder_of(tmp_path) / "rows.csv"
    assert rows(found) == rows(expected / "rows.csv"), moments


LATE = """
import sys
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.stage import Stage
command = "import time; print('first', flush=True); time.sleep(4); print('second', flush=True)"
Runner([Stage("slow", (("python", "-c", command),))], sys.argv[1]).run(sys.argv[1], None)
"""


def test_a_command_that_outlives_the_recipe_still_writes_its_log(tmp_path):
    # What fairseq-train saves after the recipe was killed is used, so its log is needed, too.
    process = subprocess.Popen([sys.executable, "-c", LATE, str(tmp_path)], cwd=ROOT)
    log = None
    while log is None or "first\n" not in log.read_text():
        assert process.poll() is None
        time.sleep(0.05)
        log = next(tmp_path.glob("stages/slow-*.part/log"), None)
    process.kill()
    process.wait()
    assert "second\n" not in log.read_text()
    deadline = time.time() + 60
    while "second\n" not in log.read_text() and time.time() < deadline:
        time.sleep(0.1)
    assert log.read_text().endswith("first\nsecond\n")


def test_a_training_killed_after_its_last_update_is_not_trained_on(undisturbed, tmp_path):
    runs, folder, _ = undisturbed
    shutil.copytree(runs, tmp_path / "runs", symlinks=True)
    done = (tmp_path / "runs" / folder.name / "eisl").resolve()
    (done / "stage.json").unlink()
    done.rename(f"{done}.part")
    code, output = finish(recipes("run", SMOKE, *TINY, "--runs", tmp_path / "runs"))
    assert code == 0 and "eisl: going on" in output, output
    log = (done / "log").read_text()
    assert "num_updates 6" in log and "num_updates 7" not in log and log.count("$ ") == 1


def test_a_failed_stage_is_named_with_its_log(tmp_path):
    code, output = finish(
        recipes("run", SMOKE, *TINY, "train.ce.flags.max-tokens=1", "--runs", tmp_path)
    )
    last = output.splitlines()[-1]
    assert code == 1 and last.startswith("recipes: ce: fairseq-train ended with 1 (log: ")
    log = last.split("(log: ")[1].rstrip(")")
    assert "exceeds max_tokens" in open(log).read() or "max_tokens" in open(log).read()
