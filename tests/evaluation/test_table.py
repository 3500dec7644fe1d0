import pytest

from fairseq_eisl.evaluation.table import format_table

ROWS = [
    {"system": "CE", "bleu": "8.5", "signature": "a|b"},
    {"system": "EISL", "bleu": "32.10", "note": "two\nlines"},
]


def test_columns_line_up():
    assert format_table(ROWS, ["system", "bleu", "note"]).splitlines() == [
        "system   bleu  note",
        "CE        8.5",
        "EISL    32.10  two lines",
    ]


def test_markdown_escapes_its_own_sign():
    assert format_table(ROWS, ["signature", "bleu"], markdown=True).splitlines() == [
        "| signature |  bleu |",
        "| --------- | ----: |",
        "| a\\|b      |   8.5 |",
        "|           | 32.10 |",
    ]


def test_default_columns_are_the_known_ones_or_all():
    assert format_table(ROWS).splitlines()[0] == "system   bleu"
    assert format_table([{"x": "1", "y": "2"}]).splitlines() == ["x  y", "1  2"]


def test_rows_that_differ_in_the_iterations_alone_are_told_apart():
    rows = [{"bleu": "1", "iterations": "0", "system": "EISL", "length_error": "1.20"}]
    assert format_table(rows).splitlines()[0].split() == [
        *("system", "iterations", "bleu", "length_error")
    ]


def test_unknown_column_names_those_there_are():
    with pytest.raises(ValueError, match="no column blue; there is system, bleu, signature, note"):
        format_table(ROWS, ["blue"])
