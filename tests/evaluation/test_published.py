import pytest

from fairseq_eisl.evaluation.readers.published import NOISE, TABLE, read_published


@pytest.mark.parametrize(
    "columns, text",
    [
        (TABLE, "setting,system,bleu,source\nWMT14 en-de,CE,17.9,Table 2\n"),
        (NOISE, "noise,system,bleu,source\nrepeat:0.3,CE,20.1,Figure 1\n"),
    ],
)
def test_numbers_of_a_paper(tmp_path, columns, text):
    path = tmp_path / "paper.csv"
    path.write_text(text)
    (row,) = read_published(str(path), columns)
    assert row["system"] == "CE" and set(columns) <= set(row)


@pytest.mark.parametrize(
    "text, message",
    [
        ("setting,system,bleu\na,CE,1\n", "no column source; there is setting, system, bleu"),
        ("setting,system,bleu,source\n", "there is a header but no row"),
        ("setting,system,bleu,source\na,CE,1,t\na,CE,1,\n", "row 2 has no source"),
        ("setting,system,bleu,source\na,CE,high,t\n", "bleu is 'high', no number"),
        ("setting,system,bleu,source\na,CE,nan,t\n", "row 1: bleu is nan, no number"),
        ("setting,system,bleu,source\na,CE\n", "line 2 has 2 cells"),
        ("", "the file is empty"),
    ],
)
def test_other_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "paper.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"paper.csv: .*{message}"):
        read_published(str(path), TABLE)
