import pytest

from fairseq_eisl.evaluation.figures.compare import compare

from .layout import check_layout
from .logs import row
from .pictures import ROWS

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.mark.parametrize("name", ROWS)
def test_no_text_of_a_comparison_lies_on_another(tmp_path, figures, name):
    compare(ROWS[name], str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert figures[0].get_figwidth() == 8.0
    seeds = "seeds 1, 2 (bar: mean" if name == "seeds" else "seed 1"
    assert any(seeds in text.replace("\n", " ") for text in texts)
    assert "BLEU" in texts
    assert any("tok:none" in text for text in texts)


def test_values_stand_on_the_bars(tmp_path, figures):
    compare(ROWS["seeds"], str(tmp_path / "x.png"))
    bleu, repetition, length = figures[0].axes
    assert [t.get_text() for t in bleu.texts] == ["8.5", "8.5", "32.1", "32.1"]
    assert [p.get_height() for p in repetition.patches] == [39.9, 39.9, 7.3, 7.3]
    assert "dashed: reference, 1)" in length.get_ylabel()
    assert "0.01" in repetition.get_ylabel()


def test_seeds_are_dots_and_the_bar_their_mean(tmp_path, figures):
    rows = [row(seed="1", bleu="10"), row(seed="2", bleu="20")]
    compare(rows, str(tmp_path / "x.png"))
    axis = figures[0].axes[0]
    assert [p.get_height() for p in axis.patches] == [15.0]
    assert list(axis.lines[0].get_ydata()) == [10.0, 20.0]


def test_an_undefined_value_is_no_zero(tmp_path, figures):
    compare(ROWS["collapsed"], str(tmp_path / "x.png"))
    bleu, repetition, _ = figures[0].axes
    assert [t.get_text() for t in repetition.texts] == ["n/a", "0.0"]
    assert [t.get_text() for t in bleu.texts] == ["0.0", "0.0"]


@pytest.mark.parametrize(
    "rows, message",
    [
        ([row(s, f"n{i}") for i in range(21) for s in ("CE", "EISL")], "42 bars"),
        ([row(f"system {i}") for i in range(15)], "15 systems, at most 14"),
    ],
)
def test_too_much_for_one_picture(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        compare(rows, str(tmp_path / "x.png"))
