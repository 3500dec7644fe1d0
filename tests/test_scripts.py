"""The shell scripts: help, wrong options, and the rules of the recipe, without training."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.conftest import TINY

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
        env={**variables, "FAIRSEQ_EISL_VENV": "none", **environment},
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_parse(script):
    assert bash("-n", script).returncode == 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["scripts/quickstart.sh", "sed=1"], "sed=1: there is no key sed; did you mean seed"),
        (["scripts/quickstart.sh", "--sed", "1"], "unrecognized arguments: --sed"),
        (
            ["scripts/multi30k.sh", "smal", "repeat:0.5"],
            "the first argument is the model, not 'smal' (choose from small, bart_small, bart)",
        ),
        (["scripts/multi30k.sh", "small"], "the second argument is the noise"),
        (["scripts/multi30k.sh", "small", "seed=2"], "the second argument is the noise"),
        (
            ["scripts/multi30k.sh", "small", "repaet:0.5", "data.folder=data"],
            "--target-noise: 'repaet:0.5'",
        ),
        (["scripts/nat.sh"], "the first argument is the model, not '' (choose from nat, nat_kd"),
        (["scripts/nat.sh", "glat"], "not 'glat' (choose from nat, nat_kd, nacrf, inat, levt"),
        (["scripts/wmt14.sh", "lev"], "nacrf_kd, inat, inat_kd, levt, levt_kd, cmlm, cmlm_kd, "),
        (["scripts/wmt18.sh", "small"], "--data DIR is needed"),
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


def test_a_script_is_a_recipe(tmp_path):
    """The smallest one, from its script to its page; key=value reaches the recipe."""
    done = bash(ROOT / "scripts/quickstart.sh", *TINY, "seed=2", "--runs", tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = tmp_path.glob("quickstart-seed2,*")  # and what else was changed
    assert (folder / "report.html").exists() and (folder / "rows.csv").exists()
    head, ce, eisl = done.stdout.splitlines()
    assert head.split()[:2] == ["system", "bleu"]
    assert [ce.split()[0], eisl.split()[0]] == ["CE", "EISL"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_check_never_writes():
    recipe = subprocess.run(
        ["make", "-n", "check"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    assert "--check" in recipe and "--fix" not in recipe
