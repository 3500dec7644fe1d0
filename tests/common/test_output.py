"""Standard output that ends early: ``| head``, a full disk, a closed stream."""

import subprocess
import sys

import pytest

from fairseq_eisl.common.output import run_command
from tests.toy import ROOT, environment


def shell(command, tmp_path):
    rows = "".join(f"s{i},{i}\n" for i in range(9000))
    (tmp_path / "rows.csv").write_text(f"system,bleu\n{rows}")
    return subprocess.run(
        ["bash", "-c", command.replace("PYTHON", sys.executable)],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


TABLE = "PYTHON -m fairseq_eisl.evaluation table --rows rows.csv"


def test_a_reader_that_goes_ends_it_quietly(tmp_path):
    done = shell(f"{TABLE} --columns system bleu | head -1; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert done.stdout.split() == ["system", "bleu", "141"] and done.stderr == ""


@pytest.mark.parametrize("command", [TABLE, "yes | PYTHON -m fairseq_eisl.noise --noise repeat:1"])
def test_a_full_disk_is_one_line(tmp_path, command):
    done = shell(f"{command} > /dev/full", tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("python -m fairseq_eisl.") and line.endswith("No space left on device")


def test_a_closed_output_is_no_fault(tmp_path):
    done = shell(f"{TABLE} >&-", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_is_missing_is_named(capsys):
    def main():
        open("/nowhere/at/all").close()
        return 0

    assert run_command(main, "name") == 1
    assert capsys.readouterr().err == "name: error: /nowhere/at/all: No such file or directory\n"


def test_noise_ends_quietly_when_its_reader_goes(tmp_path):
    command = "seq 100000 | PYTHON -m fairseq_eisl.noise --noise repeat:1 | head -1"
    done = shell(f"{command}; echo ${{PIPESTATUS[1]}}", tmp_path)
    assert done.stdout.splitlines()[-1] == "141" and done.stderr == ""


def test_noise_without_an_input_is_one_line(tmp_path):
    done = shell("PYTHON -m fairseq_eisl.noise --noise repeat:1 <&-", tmp_path)
    assert done.returncode == 2 and "standard input is closed" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_the_folder_on_a_full_disk_is_one_line(tmp_path):
    done = shell("PYTHON -m fairseq_eisl > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "python -m fairseq_eisl: error: standard output: No space left on device"
    ]
