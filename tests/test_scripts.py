"""The shell scripts: help, wrong options, and the rules of the recipe, without training."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(ROOT.glob("scripts/**/*.sh")) + [ROOT / ".ci/run"]


def bash(*arguments, **environment):
    # The environment of this test run, so that no script installs anything.
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**variables, **environment},
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse(script):
    assert bash("-n", script).returncode == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            ["scripts/quickstart.sh", "--sed", "1"],
            "unknown option --sed (choose from --out, --seed",
        ),
        (["scripts/quickstart.sh", "--seed", "x"], "--seed needs a whole number, not 'x'"),
        (["scripts/quickstart.sh", "--out"], "--out needs a folder"),
        (["scripts/multi30k.sh", "--smal"], "unknown option --smal (choose from --data"),
        (
            ["scripts/multi30k.sh", "--small", "--bart", "x"],
            "--small and --bart exclude each other",
        ),
        (
            ["scripts/nat.sh"],
            "the first argument is the architecture, not '' (choose from nat, nacrf",
        ),
        (
            ["scripts/nat.sh", "glat", "--small"],
            "not 'glat' (choose from nat, nacrf, inat, levt, cmlm",
        ),
        (["scripts/nat.sh", "nat"], "WMT14 needs --data DIR (or give --small)"),
        (
            ["scripts/nat.sh", "cmlm", "--small", "--iterations", "0;1"],
            "--iterations needs numbers",
        ),
        (
            ["scripts/nat.sh", "cmlm", "--small", "--epochs", "1", "--updates", "5k"],
            "--epochs and --updates need whole numbers, not '1', '5k'",
        ),
        (["scripts/nat.sh", "cmlm", "--smal"], "unknown option --smal (choose from --data"),
        (["scripts/prepare/multi30k.sh"], "usage"),
        (["scripts/prepare/multi30k.sh", "OUT", "--test", "test_2017"], "there is no test_2017"),
        (["scripts/prepare/multi30k.sh", "OUT", "--data", "nowhere"], "there is no folder nowhere"),
        (["scripts/prepare/multi30k.sh", "OUT", "--data", "."], "has no file train.lc.norm.tok.de"),
    ],
)
def test_wrong_options_are_named(tmp_path, arguments, message):
    script, *rest = arguments
    rest = [str(tmp_path / "out") if part == "OUT" else part for part in rest]
    done = bash(ROOT / script, *rest)
    assert done.returncode != 0 and message in done.stderr


def test_a_file_with_another_checksum_is_refused_and_removed(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.lc.norm.tok.de").write_text("ein anderer text\n")
    done = bash(ROOT / "scripts/prepare/multi30k.sh", tmp_path / "out", "--data", data)
    assert done.returncode == 2 and "sha256" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def fake_training(tmp_path, *calls, fails=False):
    """Run ``train`` of the recipe with a fairseq-train that only writes down its flags."""
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    fake = tools / "fairseq-train"
    fake.write_text(
        '#!/bin/bash\necho "$@" >> "$CALLS"\n'
        'while [ $# -gt 0 ]; do [ "$1" != --save-dir ] || folder="$2"; shift; done\n'
        'touch "$folder/checkpoint_last.pt"\n' + ("exit 1\n" if fails else "")
    )
    fake.chmod(0o755)
    script = f"""
        set -euo pipefail
        source {ROOT}/scripts/lib/common.sh
        RUN={tmp_path}/run DATA=data BPE="" DEVICE=(--cpu) TASK=() MODEL=() BATCH=() SEED=1
        source {ROOT}/scripts/lib/recipe.sh
        {"; ".join(calls)}
    """
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}
    return bash("-c", script, **environment)


def calls(tmp_path):
    path = tmp_path / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_a_finished_stage_is_skipped_and_a_changed_one_starts_over(tmp_path):
    for _ in range(2):
        assert fake_training(tmp_path, 'train ce "" --lr 1').returncode == 0
    assert len(calls(tmp_path)) == 1
    done = fake_training(tmp_path, 'train ce "" --lr 2')
    assert len(calls(tmp_path)) == 2 and "starting over" in done.stderr


def test_a_killed_stage_goes_on_from_its_last_checkpoint(tmp_path):
    start = tmp_path / "ce.pt"
    start.write_text("weights")
    first = fake_training(tmp_path, f"train eisl {start} --lr 1", fails=True)
    assert first.returncode == 2 and "training failed" in first.stderr
    assert fake_training(tmp_path, f"train eisl {start} --lr 1").returncode == 0
    begun, resumed = calls(tmp_path)
    assert "--restore-file" in begun and "--reset-dataloader" in begun
    assert "--restore-file" not in resumed and "--reset" not in resumed


def test_another_start_makes_a_stage_start_over(tmp_path):
    start = tmp_path / "ce.pt"
    for weights in ("weights", "other weights"):
        start.write_text(weights)
        fake_training(tmp_path, f"train eisl {start} --lr 1")
    assert len(calls(tmp_path)) == 2 and all("--restore-file" in line for line in calls(tmp_path))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_check_never_writes():
    recipe = subprocess.run(
        ["make", "-n", "check"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert "--check" in recipe and "--fix" not in recipe
