"""Knowledge distillation: lines in the order of the data, none lost, the same dictionary."""

import subprocess
import sys

import pytest

from tests.toy import ROOT, environment

DISTILLED = ROOT / "scripts/prepare/distilled.py"


def distilled(tmp_path, log: str, sources: int, targets=None):
    (tmp_path / "log").write_text(log)
    (tmp_path / "source").write_text("x\n" * sources)
    files = ["--log", "log", "--source", "source", "--out", "out"]
    if targets is not None:
        (tmp_path / "target").write_text("".join(f"{line}\n" for line in targets))
        files += ["--target", "target"]
    return subprocess.run(
        [sys.executable, str(DISTILLED), *files],
        **{"cwd": tmp_path, "capture_output": True, "text": True},
        env={**environment(), "PYTHONPATH": str(ROOT)},
    )


def test_lines_come_in_the_order_of_the_data_and_stay_in_pieces(tmp_path):
    log = "S-1\tx\nH-1\t-0.5\t\u2581b c\nS-0\tx\nH-0\t-0.1\ta@@ a\nS-2\tx\nH-2\t-0.1\t\n"
    done = distilled(tmp_path, log, 3)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "a@@ a\n\u2581b c\n\n"
    assert "3 lines, 1 of them empty" in done.stdout


def test_what_is_too_long_for_the_teacher_keeps_its_target(tmp_path):
    log = "H-0\t-0.1\ta\nH-2\t-0.1\tc\n"
    done = distilled(tmp_path, log, 3, ["x y z", "x y z b", "x"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "a\nx y z b\nc\n"
    assert "1 of 3 pairs, too long for the teacher" in done.stdout


@pytest.mark.parametrize("targets", [["x y z", "x y", "x"], ["x y", "x y", "x"]])
def test_what_is_not_the_longest_was_lost(tmp_path, targets):
    done = distilled(tmp_path, "H-0\t-0.1\ta\nH-2\t-0.1\tc\n", 3, targets)
    assert done.returncode == 2 and "the first that is missing is H-1" in done.stderr
    assert not (tmp_path / "out").exists()


def test_targets_of_other_lines_are_an_error(tmp_path):
    done = distilled(tmp_path, "H-0\t-0.1\ta\n", 2, ["x"])
    assert done.returncode == 2 and "--target target: 1 lines, source has 2" in done.stderr


@pytest.mark.parametrize(
    "log, sources, words",
    [
        ("H-0\t-0.1\ta\n", 2, "1 translations for 2 source lines"),
        ("H-0\t-0.1\ta\nH-2\t-0.1\ta\n", 3, "the first that is missing is H-1"),
        ("H-0\t-0.1\ta\nH-1\t-0.1\ta\n", 1, "a translation of line 2, source has 1"),
        ("", 1, "the file is empty"),
    ],
)
def test_a_lost_line_is_an_error_and_writes_nothing(tmp_path, log, sources, words):
    done = distilled(tmp_path, log, sources)
    assert done.returncode == 2 and words in done.stderr
    assert not (tmp_path / "out").exists()
