"""Knowledge distillation: lines in the order of the data, none lost, the same dictionary."""

import subprocess
import sys

import pytest

from tests.toy import ROOT, environment

DISTILLED = ROOT / "scripts/prepare/distilled.py"


def distilled(tmp_path, log: str, sources: int):
    (tmp_path / "log").write_text(log)
    (tmp_path / "source").write_text("x\n" * sources)
    files = ["--log", "log", "--source", "source", "--out", "out"]
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


@pytest.mark.parametrize(
    "log, sources, words",
    [
        ("H-0\t-0.1\ta\n", 2, "1 translations for 2 source lines"),
        ("H-0\t-0.1\ta\nH-2\t-0.1\ta\n", 3, "no hypothesis for id 1"),
        ("", 1, "the file is empty"),
    ],
)
def test_a_lost_line_is_an_error_and_writes_nothing(tmp_path, log, sources, words):
    done = distilled(tmp_path, log, sources)
    assert done.returncode == 2 and words in done.stderr
    assert not (tmp_path / "out").exists()
