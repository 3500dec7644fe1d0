"""The shell scripts: help, wrong options, and the rules of the recipe, without training."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.conftest import TINY

ROOT = Path(__file__).resolve().parents[1]
SHELL = [path for path in sorted(ROOT.glob("scripts/**/*.sh")) if path.parent.name != "lib"]
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
        (["scripts/prepare/multi30k.sh", "OUT", "--test", "train"], "there is no train"),
        (["scripts/prepare/multi30k.sh", "OUT", "--data", "nowhere"], "there is no folder nowhere"),
        (["scripts/prepare/multi30k.sh", "OUT", "--data", "."], "has no file train.lc.norm.tok.de"),
    ],
)
def test_wrong_options_are_named(tmp_path, arguments, message):
    script, *rest = arguments
    rest = [str(tmp_path / "out") if part == "OUT" else part for part in rest]
    done = bash(ROOT / script, *rest)
    assert done.returncode != 0 and message in done.stderr


def test_a_file_with_another_checksum_is_refused(tmp_path):
    """A part of Multi30k is a text of one's own, and the refusal says how it is prepared."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.lc.norm.tok.de").write_text("ein anderer text\n")
    done = bash(ROOT / "scripts/prepare/multi30k.sh", tmp_path / "out", "--data", data)
    assert done.returncode == 2 and "sha256" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []
    assert (data / "train.lc.norm.tok.de").read_text() == "ein anderer text\n"
    assert "data.prepare=text" in done.stderr and done.stderr.count("\n") == 1
    # The command that it names works.
    for split in ("train", "valid", "test"):
        for language in ("de", "en"):
            (data / f"{split}.{language}").write_text("ein satz\n")
    named = re.search("bash (scripts/prepare/text.sh .*?);", done.stderr)[1].split()
    done = bash(ROOT / named[0], *named[1:])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/test.en").read_text() == "ein satz\n"


@pytest.mark.parametrize("script", SHELL, ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.parametrize("flags", [["-h"], ["--help"], ["out", "--help"]], ids=" ".join)
def test_help_has_no_side_effects(tmp_path, script, flags):
    """The comment that a script begins with; nothing is fetched, installed or written."""
    copy = tmp_path / "there"
    copy.mkdir()
    # Whatever a script would start is missing.
    for name in ("bash", "sed", "dirname", "date"):
        (copy / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        ["bash", str(script), *flags],
        **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL},
        cwd=tmp_path,
        env={"PATH": str(copy)},
    )
    assert done.returncode == 0 and done.stderr == ""
    assert f"{script.name} " in done.stdout and "set -euo" not in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("script", sorted(ROOT.glob("scripts/prepare/*.py")), ids=lambda p: p.name)
def test_help_of_python_scripts(tmp_path, script):
    done = subprocess.run(
        [sys.executable, str(script), "--help"],
        **{"capture_output": True, "text": True, "cwd": tmp_path},
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0 and "usage: " in done.stdout and not list(tmp_path.iterdir())


@pytest.mark.parametrize("script", sorted(ROOT.glob("scripts/prepare/*.sh")), ids=lambda p: p.name)
def test_no_arguments_are_one_line(tmp_path, script):
    done = bash(script)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"usage: {script.name} " in done.stderr


@pytest.mark.parametrize("script", ["toy.sh", "multi30k.sh", "bart_base.sh"])
def test_an_option_is_no_folder_to_write_to(script):
    done = bash(ROOT / "scripts/prepare" / script, "--data")
    assert done.returncode == 2 and "comes first, not --data" in done.stderr
    assert not os.path.exists("--data")


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
