"""Each of several jobs of a machine has its own part of ``gpus``."""

import sys
from types import SimpleNamespace

import pytest
import torch

from fairseq_eisl.recipes import sweep_jobs
from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.gpus import JOB, check_gpus, of_this_job, to_generate
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import RecipeError, load
from fairseq_eisl.recipes.side_by_side import each_once
from fairseq_eisl.recipes.stage import Stage
from fairseq_eisl.recipes.stage_cache import StageCache
from fairseq_eisl.recipes.sweep import Cell
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT

KD = ROOT / "configs/nat/nat_kd_small.yaml"

# Writes the GPUs that it sees, and ends when the other file is there.
SEES = """
import os, pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.with_suffix(".part").write_text(os.environ["CUDA_VISIBLE_DEVICES"])
mine.with_suffix(".part").rename(mine)
until = time.time() + 60
while not other.exists() and time.time() < until:
    time.sleep(0.05)
"""


def meeting(tmp_path, gpus):
    """Two stages that are at work at once, and the files of what they see."""
    one, two = tmp_path / "one", tmp_path / "two"
    commands = [
        ((sys.executable, "-c", SEES, str(a), str(b)),) for a, b in ((one, two), (two, one))
    ]
    return [Stage(name, c, gpus=gpus) for name, c in zip("ab", commands)], (one, two)


@pytest.mark.parametrize("gpus, seen", [("0,1; 2", ["0,1", "2"]), ("3", ["3", "3"])])
def test_stages_at_once(tmp_path, gpus, seen):
    stages, files = meeting(tmp_path, gpus)
    Runner(stages, str(tmp_path / "runs")).run_stages(str(tmp_path / "out"), jobs=2)
    assert sorted(path.read_text() for path in files) == seen


def test_trials_at_once_and_their_stages(tmp_path):
    stages, files = meeting(tmp_path, "5;6")
    runs = str(tmp_path / "runs")
    tasks = [
        lambda stage=stage: Runner([stage], runs).run_stages(str(tmp_path / stage.name))
        for stage in stages
    ]
    each_once(tasks, 2)
    assert sorted(path.read_text() for path in files) == ["5", "6"]


@pytest.fixture
def local(tmp_path):
    """The jobs of a sweep on this machine."""
    pytest.importorskip("submitit")
    sweep = SimpleNamespace(name="s", recipe="r.yaml", tune=False)
    return sweep_jobs._Jobs(sweep, str(tmp_path), sweep_jobs.Options("local", 2, 0, {}))


def test_a_cell_takes_the_number_that_is_free(local, monkeypatch):
    started = []

    def submit(command):
        started.append([word for word in command if word.startswith(f"{JOB}=")])
        return SimpleNamespace(paths=SimpleNamespace(stderr="log"))

    monkeypatch.setattr(local, "executor", SimpleNamespace(submit=submit))
    monkeypatch.setattr(local, "function", lambda command, verbose: command)
    cells = [Cell(name, []) for name in ("one", "two", "three", "four")]
    local.start(cells[0])
    local.start(cells[1])
    del local.active[0]  # it has ended
    local.start(cells[2])
    local.start(cells[1])  # once more, while its first attempt is not over
    assert started == [[f"{JOB}=0"], [f"{JOB}=1"], [f"{JOB}=0"], [f"{JOB}=2"]]


def test_a_job_alone_has_the_first_part(monkeypatch):
    monkeypatch.delenv(JOB, raising=False)
    assert of_this_job("4;5") == "4" and of_this_job("4,5") == "4,5" and of_this_job("") == ""
    monkeypatch.setenv(JOB, "1")
    assert of_this_job("4;5") == "5" and of_this_job("4,5") == "4,5"


def test_the_plan_has_the_first_part(capsys, quick_check):
    assert main(["plan", str(SMOKE), "device=auto", "gpus='2;3'"]) == 0
    out = capsys.readouterr().out
    assert "CUDA_VISIBLE_DEVICES=2 " in out and "2;3" not in out


@pytest.mark.parametrize(
    "gpus, seen",
    [("0,1, 2", "0120"), ("0,1;2,3", "0213"), ("5", "5555"), ("4;6", "4646")],
)
def test_what_uses_one_gpu_has_another_in_each_job(gpus, seen, monkeypatch):
    found = ""
    for job in range(4):
        monkeypatch.setenv(JOB, str(job))
        found += of_this_job(gpus, one=True)
    assert found == seen and of_this_job("", one=True) == ""


def test_generation_chooses_among_the_gpus_of_the_machine(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert to_generate(None, 3) == "0,1,2" and to_generate("4;5", 8) == "4;5"
    assert to_generate(None, 1) is None and to_generate(None, 0) is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-7,GPU-9")
    assert to_generate(None, 2) == "GPU-7,GPU-9"


def test_translations_have_one_gpu_and_trainings_all(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    kd = load(str(KD), ["device=auto", "teacher_parts=2"])
    gpus = {stage.name: (stage.gpus, stage.one_gpu) for stage in build(kd, 4)}
    assert gpus["teacher"] == gpus["ce"] == (None, False)
    every = ("0,1,2,3", True)
    assert gpus["distil_0"] == gpus["distil_1"] == gpus["generate_eisl_0"] == every


def test_several_gpus_make_another_training(tmp_path):
    """Its batches are larger; how many the machine has counts where the recipe does not say it."""

    def keys(gpus, *overrides):
        return StageCache(str(tmp_path)).keys(
            build(load(str(SMOKE), ["device=auto", *overrides]), gpus)
        )

    one, four = keys(1), keys(4)
    assert one["preprocess"] == four["preprocess"]
    assert one["ce"] != four["ce"] and one["eisl"] != four["eisl"]
    assert keys(4, "gpus='2'") == keys(1, "gpus='0'") == keys(8, "gpus='0;1'") == one
    assert keys(8, "gpus='0,1,2,3'") == keys(8, "gpus='0,1,2,3;4,5,6,7'") == four
    told = "flags.distributed-world-size=1"
    assert keys(1, told) == keys(4, told)
    launched = "launcher=[torchrun,--nproc_per_node,'2',--no-python]"
    assert keys(1, launched)["ce"] == keys(4, launched)["ce"] != one["ce"]
    # Without a GPU nothing is spread.
    assert keys(0) == StageCache(str(tmp_path)).keys(build(load(str(SMOKE), ["device=cpu"]), 4))


@pytest.mark.parametrize(
    "gpus, jobs, slurm, message",
    [
        ("0;1", 3, False, "--jobs 3: gpus: 0;1 has 2 parts"),
        ("0;1", 1, True, "SLURM gives each job its own GPUs"),
    ],
)
def test_parts_that_cannot_be_meant(gpus, jobs, slurm, message):
    with pytest.raises(RecipeError, match=message):
        check_gpus([SimpleNamespace(gpus=gpus)], jobs, slurm)


@pytest.mark.parametrize("gpus", ["0;;1", "0;", ";", "0; "])
def test_a_part_that_is_empty(gpus, capsys, quick_check):
    assert main(["plan", str(SMOKE), "device=auto", f"gpus='{gpus}'"]) == 2
    assert f": gpus: {gpus}: a part is empty" in capsys.readouterr().err


def test_parts_have_as_many_gpus(capsys, quick_check):
    assert main(["plan", str(SMOKE), "device=auto", "gpus='0;1,2'"]) == 2
    assert ": gpus: 0;1,2: parts of several sizes" in capsys.readouterr().err
    assert main(["plan", str(SMOKE), "device=auto", "gpus='0,3;1,2'"]) == 0


def test_one_part_is_shared_and_as_many_as_jobs_are_right():
    for gpus in (None, "", "0", "0,1"):
        check_gpus([SimpleNamespace(gpus=gpus)], 3, slurm=True)
    check_gpus([SimpleNamespace(gpus="0;1;2")], 3)


@pytest.mark.parametrize("words", [["run"], ["tune"], ["sweep", "--axis", "seed=1,2"]])
def test_too_few_parts_are_named_before_anything_runs(words, tmp_path, capsys, quick_check):
    tune = ["+tune.eisl={settings:{a:[lr=1e-4],b:[lr=2e-4]}}"] if words == ["tune"] else []
    runs = tmp_path / "runs"
    given = [str(SMOKE), "device=auto", "gpus='0;1'", *tune, "--jobs", "3", "--runs", str(runs)]
    assert main([*words, *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("recipes: --jobs 3: gpus: 0;1 has 2 parts")
    assert not runs.exists()


def test_cells_of_slurm_need_a_gpu_on_their_own_machines_alone(
    tmp_path, monkeypatch, capsys, quick_check
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    words = ["sweep", str(SMOKE), "--axis", "seed=1,2", "device=cuda", "--plan"]
    words += ["--runs", str(tmp_path)]
    assert main(words) == 2
    assert "device: cuda, but torch finds no usable GPU here" in capsys.readouterr().err
    assert main([*words, "--cluster", "slurm"]) == 0
    assert capsys.readouterr().out.count("device=cuda") == 2
