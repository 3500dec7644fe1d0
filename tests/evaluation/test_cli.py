import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from fairseq_eisl.common.rows import append_row, read_rows
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.metrics.bleu import bleu
from fairseq_eisl.evaluation.metrics.chrf import chrf
from fairseq_eisl.evaluation.metrics.ter import ter

from .logs import generation_log, json_validation, row, simple_validation
from .run_folders import run_folder

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
    append_row("blend.csv", row(noise="repeat:0.1,blank:0.2"))
    run_folder(tmp_path / "run")
    run_folder(tmp_path / "wrong", titel="x")
    paper = {"setting": "toy", "noise": "repeat:0.5", "system": "CE", "bleu": "9", "source": "T2"}
    append_row("paper.csv", paper)
    append_row("blended.csv", {**paper, "noise": "a:1,b:2"})
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
    assert rows[0]["ter_signature"] in line and rows[1]["chrf_signature"] in line
    assert rows[0]["ter"] == f"{ter(CE, REFERENCE).score:.2f}"
    assert rows[0]["chrf"] == f"{chrf(CE, REFERENCE).score:.2f}"
    assert "bleu_detok" not in rows[0] and "bleurt" not in rows[0]
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


def test_optional_scores_are_columns(folder, capsys, monkeypatch):
    class Moses:
        def __init__(self, lang):
            self.lang = lang

        def detokenize(self, words):
            return " ".join(words).replace(" .", f".{self.lang}")

    class Bleurt:
        def __init__(self, checkpoint):
            assert checkpoint == "run"

        def score(self, references, candidates):
            return [0.25] * len(references)

    monkeypatch.setitem(sys.modules, "sacremoses", SimpleNamespace(MosesDetokenizer=Moses))
    monkeypatch.setitem(sys.modules, "bleurt", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "bleurt.score", SimpleNamespace(BleurtScorer=Bleurt))
    (folder / "plain.txt").write_text("\n".join(REFERENCE).replace(" .", ".de") + "\n")
    (folder / "good.out").write_text(generation_log(REFERENCE))
    score = ["score", "--log", "good.out", "--reference", "ref.txt", "--rows", "out.csv"]
    detokenized = ["--detokenized-reference", "plain.txt", "--detokenize-language", "de"]
    line = run(capsys, *score, *detokenized, "--bleurt", "run")
    (scored,) = read_rows("out.csv")
    assert scored["bleu_detok"] == "100.00" and scored["bleurt"] == "0.2500"
    for column in ("bleu_detok_signature", "bleurt_signature"):
        assert scored[column] and scored[column] in line


def test_table(folder, capsys):
    out = run(capsys, "table", "--rows", "rows.csv", "--columns", "system", "bleu")
    assert out == "system   bleu\nCE       8.50\nEISL    32.10\n"
    out = run(capsys, "table", "--rows", "rows.csv", "--where", "system=CE", "--markdown")
    assert out.count("\n") == 3 and out.startswith("| system |") and "| CE " in out
    append_row("ways.csv", {**row("CE"), "search": "greedy", "bleu": "9.00"})
    append_row("ways.csv", {**row("CE"), "search": "", "bleu": "7.00"})
    columns = ["--columns", "system", "bleu"]
    out = run(capsys, "table", "--rows", "ways.csv", "--where", "search=", *columns)
    assert out.splitlines()[1:] == ["CE      7.00"]


def test_pictures(folder, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    run(capsys, "plot", "--rows", "rows.csv", "--kind", "compare", "--out", "compare.png")
    run(capsys, "plot", "--rows", "rows.csv", "--kind", "noise", "--out", "noise.svg")
    paper = ["--published", "paper.csv", "--out", "paper.svg"]
    run(capsys, "plot", "--rows", "rows.csv", "--kind", "noise", *paper)
    assert os.path.getsize("paper.svg") > os.path.getsize("noise.svg") > 1000
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


def test_significance(folder, capsys):
    systems = ["--system", "CE=ce.out", "EISL=eisl.out"]
    test = ["significance", "--reference", "ref.txt", *systems, "-n", 20, "--seed", 2]
    out = run(capsys, *test, "--rows", "sig.csv", "--set", "test_set=toy")
    assert out == run(capsys, *test) and out.count("\n") == 3
    assert out.startswith("CE    BLEU ") and "bs:20|seed:2" in out and "p <= 0.0477" in out
    assert "95 % interval 0.00 to " in out and " to 100.00" in out  # no BLEU is beyond
    rows = read_rows("sig.csv")
    assert [(r["system"], r["baseline"], r["log"]) for r in rows] == [
        ("CE", "CE", "ce.out"),
        ("EISL", "CE", "eisl.out"),
    ]
    assert rows[1]["bleu"] == f"{bleu(EISL, REFERENCE).score:.2f}"
    assert rows[0]["p_value"] == "" and 0 < float(rows[1]["p_value"]) <= 1
    assert rows[0]["test_set"] == "toy" and rows[0]["sentences"] == "3" and rows[0]["date"]


def test_report(folder, capsys):
    one = ["report", "--run", "run", "--out", "pages/one.html", "-n", 2]
    assert run(capsys, *one) == "pages/one.html\n"
    page = (folder / "pages" / "one.html").read_text(encoding="utf-8")
    assert "EISL 32.1 BLEU against CE 8.5." in page and "2 of 3 sentences" in page
    assert "not ours" not in page and "<h1>Toy &amp; run</h1>" in page
    more = ["--run", "run", "run", "--published", "paper.csv", "--title", "Two"]
    run(capsys, "report", *more, "--out", "two.html")
    page = (folder / "two.html").read_text(encoding="utf-8")
    assert "<h1>Two</h1>" in page and "not ours" in page and "<td>T2</td>" in page


SCORE = "score --log ce.out --reference ref.txt"
SIGNIFICANCE = "significance --reference ref.txt"
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
        (f"{SCORE} --set ter=1", "--set ter=1: ter is a computed column"),
        (
            f"{SCORE} --detokenized-reference short.txt",
            "--detokenized-reference short.txt: 2 lines for the 3 of --reference ref.txt",
        ),
        (f"{SCORE} --detokenized-reference none", "--detokenized-reference none: No such file"),
        (
            f"{SCORE} --detokenized-reference ref.txt",
            "--detokenized-reference ref.txt: detokenising needs sacremoses: pip install",
        ),
        (f"{SCORE} --bleurt none", "--bleurt none: no folder with a BLEURT checkpoint"),
        (f"{SCORE} --bleurt run", "--bleurt run: BLEURT needs the package bleurt"),
        (f"{SIGNIFICANCE} --system CE=ce.out", "--system CE=ce.out: a baseline and a system"),
        (f"{SIGNIFICANCE} --system CE=ce.out X=none", "--system X=none: No such file"),
        (f"{SIGNIFICANCE} --system CE=ce.out CE=ce.out", "CE=ce.out: CE is given twice"),
        (f"{SIGNIFICANCE} --system ce.out", "--system ce.out: key=value is needed"),
        (f"{SIGNIFICANCE} --system CE=ce.out X=short.out", "2 hypotheses for the 3 lines"),
        (f"{SIGNIFICANCE} --system CE=ce.out X=ce.out -n 0", "-n: a number of 1 or more"),
        (f"{SIGNIFICANCE} --system CE=ce.out X=ce.out --seed 0", "--seed: a number of 1 or more"),
        (
            f"{SIGNIFICANCE} --system CE=ce.out X=ce.out --set p_value=0",
            "--set p_value=0: p_value is a computed column",
        ),
        ("report --run none --out x.html", "--run none: none/rows.csv: No such file"),
        (
            "report --run wrong --out x.html",
            "--run wrong: wrong/report.json: no key titel; there is",
        ),
        ("report --run run --out x.pdf", "--out x.pdf: a page ends in .html"),
        ("report --run run --out run", "--out run: a page ends in .html"),
        ("report --run run --out x.html -n 0", "-n: a number of 1 or more is needed, not '0'"),
        (
            "report --run run --out x.html --published rows.csv",
            "--published rows.csv: no column setting, source; there is system",
        ),
        ("report --run run --out x.html --published none", "--published none: No such file"),
        ("table --rows none.csv", "--rows none.csv: No such file"),
        ("table --rows empty", "--rows empty: the file is empty"),
        ("table --rows header.csv", "--rows header.csv: there is a header but no row"),
        ("table --rows rows.csv --columns blue", "--columns blue: no column blue; there is system"),
        ("table --rows rows.csv --where seed=9", "--where seed=9: no row has seed=9; there is 1"),
        ("table --rows rows.csv --where seed", "--where seed: key=value is needed"),
        ("plot --rows rows.csv --out x.jpg", "--out x.jpg: a picture ends in .png or .svg"),
        ("plot --rows mixed.csv --out x.png", "--rows mixed.csv: rows of several test_set"),
        (
            "plot --rows rows.csv --kind column --out x.png",
            "--column NAME and --kind",
        ),
        (
            "plot --rows rows.csv --column noise --out x.png",
            "--column NAME and --kind",
        ),
        ("plot --rows rows.csv --kind column --column size --out x.png", "--rows rows.csv: "),
        ("plot --rows rows.csv --kind pie --out x.png", "--kind: invalid choice: 'pie'"),
        (
            "plot --rows blend.csv --kind noise --out x.png",
            "--rows blend.csv: noise is 'repeat:0.1,blank:0.2', not one type:level",
        ),
        (
            "plot --rows rows.csv --published paper.csv --out x.png",
            "--published paper.csv: belongs to --kind noise, not to --kind compare",
        ),
        (
            "plot --rows rows.csv --kind noise --published rows.csv.x --out x.png",
            "--published rows.csv.x: No such file",
        ),
        (
            "plot --rows rows.csv --kind noise --published blended.csv --out x.png",
            "--published blended.csv: row 1: noise is 'a:1,b:2', not one type:level",
        ),
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
def test_errors_are_one_line_that_names_flag_and_value(
    folder, capsys, monkeypatch, command, message
):
    for name in ("sacremoses", "bleurt"):  # as where they are not installed
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.endswith("\n")
    assert not os.path.exists("x.png") and not os.path.exists("x.html")


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
