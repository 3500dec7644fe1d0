import math

import pytest

from fairseq_eisl.evaluation.figures.iterations import draw_iterations, iteration_lines

from .layout import check_layout
from .logs import row
from .pictures import ITERATIONS

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.mark.parametrize("name", ITERATIONS)
def test_no_text_of_iterations_lies_on_another(tmp_path, figures, name):
    draw_iterations(iteration_lines(ITERATIONS[name]), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert texts.count("refinement iterations") == 3 and "Length error" in texts
    assert texts.count("BLEU") == 1 and "BLEU\n(axis not from 0)" in texts
    assert any("% of words\n(dashed: reference, 0.01)" in text for text in texts)
    assert any("noise repeat:0.5" in text.replace("\n", " ") for text in texts)
    numbers = [t for t in texts if t.replace(".", "").isdecimal()]
    assert "0" in numbers and not any("2.5" == t for t in numbers)


def test_a_line_over_iterations_is_the_mean_of_the_seeds_in_a_band(tmp_path, figures):
    draw_iterations(iteration_lines(ITERATIONS["seeds"]), str(tmp_path / "x.png"))
    bleu, repetition, length = figures[0].axes
    assert [line.get_label() for line in bleu.lines] == ["CE", "EISL"]
    assert list(bleu.lines[0].get_xdata()) == [0, 1, 2, 4, 9]
    assert list(bleu.lines[0].get_ydata()) == [21.5, 22.5, 23.5, 25.5, 30.5]
    band = bleu.collections[0].get_paths()[0].vertices
    assert {y for x, y in band if x == 4} == {25.0, 26.0}
    assert list(repetition.lines[1].get_ydata()) == [7.3] * 5
    assert list(length.lines[0].get_ydata()) == [6.1] * 5
    for axis in (bleu, repetition, length):
        low, high = axis.get_xlim()
        ticks = [tick for tick in axis.get_xticks() if low <= tick <= high]
        assert len(ticks) > 1 and all(tick == int(tick) for tick in ticks)


def test_an_undefined_value_is_a_gap_in_a_line(tmp_path, figures):
    rows = [
        row(seed=k, iterations=str(i), repetition="nan" if (k, i) == ("2", 1) else "5")
        for i in (0, 1, 2)
        for k in "12"
    ]
    draw_iterations(iteration_lines(rows), str(tmp_path / "x.png"))
    values = list(figures[0].axes[1].lines[0].get_ydata())
    assert values[0] == values[2] == 5.0 and math.isnan(values[1])


def test_too_many_lines(tmp_path):
    rows = [row(f"system {i}", iterations="0") for i in range(15)]
    with pytest.raises(ValueError, match="15 systems, at most 14"):
        draw_iterations(iteration_lines(rows), str(tmp_path / "x.png"))
