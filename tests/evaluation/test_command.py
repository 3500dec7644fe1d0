import os
import subprocess
import sys

import pytest

from fairseq_eisl.evaluation.command import main
from fairseq_eisl.evaluation.metrics import bleu
from fairseq_eisl.evaluation.rows import append_row, read_rows

from .logs import generation_log, json_validation, row, simple_validation

REFERENCE = ["a man rides a bike .", "two dogs run in a field .", "a girl in a red hat ."]
CE = ["a a man rides bike .", "two dogs dogs run . .", ""]
EISL = ["a man rides a bike .", "two dogs run in a field", "a <unk> in a hat ."]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "ref.txt": "\n".join(REFERENCE) + "\n",
        "src.txt": "quelle 0\nquelle 1\nquelle 2\n",
        "ce.out": generation_log(CE, REFERENCE),
        "eisl.out": generation_log(EISL, REFERENCE),
        "short.out": generation_log(CE[:2], REFERENCE),
        "hole.out": generation_log(CE, REFERENCE, order=[0, 2]),
        "pieces.out": generation_log(["▁a ▁man", "▁b", "▁c"]),
        "short.txt": "\n".join(REFERENCE[:2]) + "\n",
        "pieces.txt": "a bi@@ ke\nb\nc\n",
        "empty": "",
        "ce.log": simple_validation(100, 5.0) + "\n",
        "eisl.log": json_validation(50, 9.0) + "\n",
        "header.csv": "system,bleu\n",
        "unlike.csv": "a,b\n1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    append_row("rows.csv", row("CE"))
    append_row("rows.csv", row("EISL"))
    append_row("mixed.csv", row("CE"))
    for count in (0, 4):
        append_row("lev.csv", row("EISL", iterations=count))
    append_row("half.csv", row("EISL", iterations="0.5"))
    append_row("twice.csv", row("EISL", iterations="1"))
    append_row("twice.csv", row("EISL", iterations="1"))
    append_row("mixed.csv", row("EISL", test_set="another"))
    return tmp_path


def run(capsys, *argv):
    assert main([str(a) for a in argv]) == 0
    return capsys.readouterr().out


def test_score_prints_a_line_and_appends_a_row(folder, capsys):
    score = ["score", "--reference", "ref.txt", "--rows", "out/rows.csv"]
    for system, log in (("CE", "ce.out"), ("EISL", "eisl.out")):
        named = [f"system={system}", "test_set=toy, 3 lines", "seed=1"]
        line = run(capsys, *score, "--log", log, "--set", *named, "--set", "note=a=b")
    assert line.count("\n") == 1 and "tok:none" in line and "3 sentences" in line
    rows = read_rows("out/rows.csv")
    assert [r["system"] for r in rows] == ["CE", "EISL"]
    assert rows[0]["bleu"] == f"{bleu(CE, REFERENCE).score:.2f}"
    # "a a man rides bike .", "two dogs dogs run . .", "": 3 of 12 words repeat; 20 in the reference
    assert rows[0]["repetition"] == "25.00" and rows[0]["length_ratio"] == "0.600"
    assert rows[0]["length_error"] == "2.67"  # the lengths 6, 6, 0 for 6, 7, 7: 8 of 3
    assert rows[0]["repetition_reference"] == "0.00" and rows[0]["sentences"] == "3"
    assert rows[1]["unk_rate"] == "5.56"  # 1 of 18
    assert rows[0]["note"] == "a=b" and rows[0]["test_set"] == "toy, 3 lines"
    for column in ("bleu_signature", "words_signature", "python", "sacrebleu", "cores", "date"):
        assert rows[0][column]


def test_score_of_one_line_and_of_nothing(folder, capsys):
    (folder / "one.txt").write_text("a man\n")
    (folder / "one.out").write_text(generation_log([""]))
    line = run(capsys, "score", "--log", "one.out", "--reference", "one.txt", "--lowercase")
    assert "BLEU 0.00" in line and "case:lc" in line and "repeated words nan %" in line


def test_score_takes_the_reference_file_not_the_log(folder, capsys):
    """The T lines would hold <<unk>> for words outside the dictionary."""
    (folder / "t.out").write_text(generation_log(REFERENCE, ["<<unk>>"] * 3))
    line = run(capsys, "score", "--log", "t.out", "--reference", "ref.txt")
    assert "BLEU 100.00" in line


def test_table(folder, capsys):
    out = run(capsys, "table", "--rows", "rows.csv", "--columns", "system", "bleu")
    assert out == "system   bleu\nCE       8.50\nEISL    32.10\n"
    out = run(capsys, "table", "--rows", "rows.csv", "--where", "system=CE", "--markdown")
    assert out.count("\n") == 3 and out.startswith("| system |") and "| CE " in out


def test_pictures(folder, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    run(capsys, "plot", "--rows", "rows.csv", "--kind", "compare", "--out", "compare.png")
    run(capsys, "iterations", "--rows", "lev.csv", "--where", "system=EISL", "--out", "lev.png")
    logs = ["--log", "CE=ce.log", "--log", "EISL=eisl.log"]
    run(capsys, "curve", *logs, "--out", "curve.svg", "--title", "toy, seed 1")
    assert os.path.getsize("compare.png") > 1000 and os.path.getsize("lev.png") > 1000
    assert b"toy, seed 1" in (folder / "curve.svg").read_bytes()


def test_examples(folder, capsys):
    systems = ["--system", "CE=ce.out", "--system", "EISL=eisl.out"]
    texts = ["examples", "--source", "src.txt", "--reference", "ref.txt", *systems]
    out = run(capsys, *texts, "-n", 5, "--seed", 1)
    assert out.count("sentence ") == 3
    assert "a [a] man rides bike ." in out and "missing: girl red" in out
    assert run(capsys, *texts, "-n", 1, "--seed", 4) == run(capsys, *texts, "-n", 1, "--seed", 4)


SCORE = "score --log ce.out --reference ref.txt"
EXAMPLES = "examples --source src.txt --reference ref.txt"


@pytest.mark.parametrize(
    "command, message",
    [
        ("score --log none.out --reference ref.txt", "--log none.out: No such file"),
        ("score --log . --reference ref.txt", "--log .: Is a directory"),
        ("score --log empty --reference ref.txt", "--log empty: the file is empty"),
        ("score --log ref.txt --reference ref.txt", "--log ref.txt: no H-<id> or D-<id> lines"),
        ("score --log ce.out --reference none", "--reference none: No such file"),
        ("score --log ce.out --reference empty", "--reference empty: the file is empty"),
        ("score --log ce.out --reference pieces.txt", "--reference pieces.txt: sentence 0 holds"),
        ("score --log ce.out", "required: --reference"),
        ("score --log hole.out --reference ref.txt", "--log hole.out: no hypothesis for id 1 "),
        (
            "score --log short.out --reference ref.txt",
            "2 hypotheses for the 3 lines of --reference",
        ),
        ("score --log short.out --reference ref.txt", "--required-batch-size-multiple 1"),
        ("score --log ce.out --reference short.txt", "--log ce.out: 3 hypotheses for the 2 lines"),
        ("score --log pieces.out --reference ref.txt", "--remove-bpe sentencepiece"),
        (f"{SCORE} --tokenize moses", "--tokenize: invalid choice: 'moses'"),
        (f"{SCORE} --set seed", "--set seed: key=value is needed"),
        (f"{SCORE} --set seed=", "--set seed=: key=value is needed"),
        (f"{SCORE} --set seed=1 seed=2", "--set seed=2: seed is given twice"),
        (f"{SCORE} --set bleu=99", "--set bleu=99: bleu is a computed column"),
        (f"{SCORE} --rows .", "--rows .: "),
        (f"{SCORE} --rows /dev/null", "--rows /dev/null: not a regular file"),
        (f"{SCORE} --rows ref.txt/rows.csv", "--rows ref.txt/rows.csv: "),
        (f"{SCORE} --rows unlike.csv", "--rows unlike.csv: line 2 has 1 cells"),
        ("table --rows none.csv", "--rows none.csv: No such file"),
        ("table --rows empty", "--rows empty: the file is empty"),
        ("table --rows header.csv", "--rows header.csv: there is a header but no row"),
        ("table --rows rows.csv --columns blue", "--columns blue: no column blue; there is system"),
        ("table --rows rows.csv --where seed=9", "--where seed=9: no row has seed=9; there is 1"),
        ("table --rows rows.csv --where seed", "--where seed: key=value is needed"),
        ("plot --rows rows.csv --out x.jpg", "--out x.jpg: a picture ends in .png or .svg"),
        ("plot --rows mixed.csv --out x.png", "--rows mixed.csv: rows of several test_set"),
        ("plot --rows rows.csv --kind pie --out x.png", "--kind: invalid choice: 'pie'"),
        ("iterations --rows lev.csv --out x.pdf", "--out x.pdf: a picture ends in .png or .svg"),
        ("iterations --rows rows.csv --out x.png", "--rows rows.csv: no column iterations; there"),
        ("iterations --rows half.csv --out x.png", "iterations is '0.5', no integer of 0 or more"),
        ("iterations --rows twice.csv --out x.png", "--rows twice.csv: two rows of the same run: "),
        ("curve --log CE=none --out x.png", "--log CE=none: No such file"),
        ("curve --log ce.log --out x.png", "--log ce.log: key=value is needed"),
        ("curve --log CE=ref.txt --out x.png", "--log CE=ref.txt: no validation of 'valid'"),
        ("curve --log CE=ce.log --out x.pdf", "--out x.pdf: a picture ends in"),
        (f"{EXAMPLES} --system CE=none", "--system CE=none: No such file"),
        (f"{EXAMPLES} --system CE=short.out", "--system CE=short.out: 2 hypotheses for the 3"),
        (f"{EXAMPLES} --system CE=ce.out -n 0", "-n: a number of 1 or more is needed, not '0'"),
        (
            "examples --source short.txt --reference ref.txt --system CE=ce.out",
            "--reference ref.txt: 3 lines for the 2 of --source short.txt",
        ),
        ("", "required: COMMAND"),
    ],
)
def test_errors_are_one_line_that_names_flag_and_value(folder, capsys, command, message):
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.endswith("\n")
    assert not os.path.exists("x.png")


def test_the_command_needs_neither_torch_nor_fairseq_nor_matplotlib(folder):
    code = (
        "import runpy, sys\n"
        "for name in ('torch', 'fairseq', 'matplotlib'): sys.modules[name] = None\n"
        "runpy.run_module('fairseq_eisl.evaluation', run_name='__main__', alter_sys=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *SCORE.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"BLEU ")
