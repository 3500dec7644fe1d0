"""Outputs of a model that has learnt nothing are scored, and text that looks odd gets past."""

import pytest

from fairseq_eisl.common.rows import read_rows
from fairseq_eisl.evaluation.cli.main import main

REFERENCE = ["the cat sat on the mat", "the dog ate the bone now"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(hypotheses, references=REFERENCE, mark=""):
        lines = [f"H-{i}\t-1\t{text}\n" for i, text in enumerate(hypotheses)]
        (tmp_path / "log").write_text("".join(lines), encoding="utf-8")
        text = mark + "".join(f"{line}\n" for line in references)
        (tmp_path / "ref").write_text(text, encoding="utf-8")

    return write


def score(*more):
    return main(["score", "--log", "log", "--reference", "ref", "--rows", "rows.csv", *more])


@pytest.mark.parametrize(
    "hypotheses, warning",
    [
        (["<unk><unk><unk>", "<unk><unk><unk>"], "one long word"),
        (["thecatsatonthemat", "thedogatethebonenow"], "one long word"),
        (["", ""], "every sentence is empty"),
    ],
)
def test_a_collapsed_output_has_a_score_and_a_warning(files, capsys, hypotheses, warning):
    files(hypotheses)
    assert score() == 0
    out = capsys.readouterr()
    assert "BLEU 0.00" in out.out and warning in out.err
    assert [row["bleu"] for row in read_rows("rows.csv")] == ["0.00"]


def test_a_byte_order_mark_is_no_word(files, capsys):
    files(REFERENCE, mark="\ufeff")
    assert score() == 0 and "BLEU 100.00" in capsys.readouterr().out


def test_what_looks_like_pieces_gets_past_with_a_flag(files, capsys):
    files(["the ca@@ t", "the do@@ g"])
    with pytest.raises(SystemExit) as end:
        score()
    assert end.value.code == 2 and "--plain-words" in capsys.readouterr().err
    assert score("--plain-words") == 0
    assert "scored as it is (--plain-words)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "number, message",
    [("1", "20 to 100000"), ("19", "20 to"), ("1000000000", "20 to"), ("-3", "1 or more")],
)
def test_a_test_needs_enough_resamples(files, capsys, number, message):
    files(REFERENCE)
    words = ["significance", "--reference", "ref", "--system", "a=log", "b=log", "-n", number]
    with pytest.raises(SystemExit):
        main(words)
    assert message in capsys.readouterr().err


def test_a_test_needs_two_sentences(files, capsys):
    files(REFERENCE[:1], REFERENCE[:1])
    with pytest.raises(SystemExit):
        main(["significance", "--reference", "ref", "--system", "a=log", "b=log"])
    assert "2 or more" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mine.png", "mine.svg", "mine.html"])
def test_a_file_of_another_kind_is_not_replaced(files, capsys, tmp_path, name):
    files(REFERENCE)
    score("--set", "system=CE", "test_set=t", "seed=1")
    (tmp_path / name).write_text("my notes")
    (tmp_path / "run").mkdir()
    (tmp_path / "rows.csv").rename(tmp_path / "run/rows.csv")
    words = ["report", "--run", "run"] if name.endswith("l") else ["plot", "--rows", "run/rows.csv"]
    with pytest.raises(SystemExit):
        main([*words, "--out", name])
    assert "will not be replaced" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "my notes"
