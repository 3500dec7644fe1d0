"""Knowledge distillation: lines in the order of the data, none lost, the same dictionary."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.toy import ROOT, TINY, environment

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


SCRIPT = """
set -euo pipefail
source {root}/scripts/lib/common.sh
RUN={run} DATA={data} PIECES={raw}/train SEED=1 DEVICE=(--cpu) BPE="" EXTRA=() EVAL='{{}}'
TASK=(--task noisy_translation_lev --noise full_mask) MODEL=()
BATCH=(--max-tokens 1000 --optimizer adam) SIZE=({size}) TEACHER=(--lr 5e-3 --max-update 2)
source {root}/scripts/lib/recipe.sh
source {root}/scripts/lib/distil.sh
distil
distil
echo "$DATA" "${{TASK[1]}}"
"""


def test_a_teacher_makes_training_data_with_the_same_dictionary(toy, tmp_path):
    names = {"root": ROOT, "run": tmp_path, "data": toy.bin, "raw": toy.raw}
    path = f"{Path(sys.executable).parent}:{environment()['PATH']}"
    done = subprocess.run(
        ["bash", "-c", SCRIPT.format(**names, size=" ".join(TINY))],
        **{"capture_output": True, "text": True},
        env={**environment(), "PATH": path, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "data.kd"
    # What was set for the student is still set.
    assert done.stdout.splitlines()[-1] == f"{folder} noisy_translation_lev"
    assert "distillation: done before" in done.stderr  # the second call
    for side in ("en", "de"):
        assert (folder / f"dict.{side}.txt").read_bytes() == (
            toy.bin / f"dict.{side}.txt"
        ).read_bytes()
    assert len((tmp_path / "distilled.de").read_text().splitlines()) == 200
    assert (tmp_path / "distilled.en").read_text() == (toy.raw / "train.en").read_text()
    assert (folder / "train.en-de.de.idx").exists() and (folder / "test.en-de.de.idx").exists()
