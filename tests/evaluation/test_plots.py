import math
import os
import struct
import sys

import pytest

from fairseq_eisl.evaluation import plots
from fairseq_eisl.evaluation.curve_plot import training_curve
from fairseq_eisl.evaluation.iterations import iteration_lines
from fairseq_eisl.evaluation.training_log import Curve

from .layout import check_layout
from .logs import row

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

LONG = "WMT14 en-de newstest2014, tokenised, compound split, five checkpoints averaged, one step"
ROWS = {
    "one": [row("CE"), row("EISL")],
    "no noise column": [{**row(s), "noise": ""} for s in ("CE", "EISL")],
    "seeds": [
        row(s, n, k) for n in ("repeat:0.5", "blank:0.4") for s in ("CE", "EISL") for k in "12"
    ],
    "many": [
        row(s, f"repeat:0.{i:02}", bleu="32.10") for i in range(0, 80, 5) for s in ("CE", "EISL")
    ],
    "long names": [
        row(system, noise, test_set=LONG)
        for noise in ("synthetic:5,blank:0.2,shuffle:3", "none")
        for system in ("CE, label smoothing 0.1", "EISL after CE, orders 1 and 2")
    ],
    "collapsed": [
        row("CE", bleu="0.00", repetition="nan", length_ratio="0.000", repetition_reference=""),
        row("EISL", bleu="0.00", repetition="0.00", length_ratio="0.970"),
    ],
}
CURVES = {
    "two stages": {"CE": Curve([100, 200, 300], [5.0, 9.0, 8.5]), "EISL": Curve([50], [20.0])},
    "long names": {f"a rather long name of stage {i}": Curve([9], [i]) for i in range(4)},
    "dense": {"CE": Curve(list(range(1, 4000, 10)), [0.0] * 400)},
}

ITERATIONS = {
    "seeds": [
        row(s, seed=k, iterations=str(i), bleu=str(20 + i + int(k)))
        for s in ("CE", "EISL")
        for i in (0, 1, 2, 4, 9)
        for k in "12"
    ],
    "archs": [
        row(s, iterations=str(i), arch=arch, test_set=LONG)
        for s in ("CE, label smoothing 0.1", "EISL after CE, orders 1 and 2")
        for arch in ("levenshtein_transformer", "cmlm_transformer")
        for i in (0, 10)
    ],
    "one point": [row(iterations="0")],
}


@pytest.mark.parametrize("name", ROWS)
def test_no_text_of_a_comparison_lies_on_another(tmp_path, figures, name):
    plots.compare(ROWS[name], str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert figures[0].get_figwidth() == 8.0
    seeds = "seeds 1, 2 (bar: mean" if name == "seeds" else "seed 1"
    assert any(seeds in text.replace("\n", " ") for text in texts)
    assert "BLEU" in texts
    assert any("tok:none" in text for text in texts)


@pytest.mark.parametrize("name", CURVES)
def test_no_text_of_a_curve_lies_on_another(tmp_path, figures, name):
    training_curve(CURVES[name], str(tmp_path / "x.png"), title="Multi30k, seed 1")
    texts = check_layout(figures[0])
    assert "Multi30k, seed 1" in texts and any(text.startswith("updates") for text in texts)


def test_values_stand_on_the_bars(tmp_path, figures):
    plots.compare(ROWS["seeds"], str(tmp_path / "x.png"))
    bleu, repetition, length = figures[0].axes
    assert [t.get_text() for t in bleu.texts] == ["8.5", "8.5", "32.1", "32.1"]
    assert [p.get_height() for p in repetition.patches] == [39.9, 39.9, 7.3, 7.3]
    assert "dashed: reference, 1)" in length.get_ylabel()
    assert "0.01" in repetition.get_ylabel()


def test_seeds_are_dots_and_the_bar_their_mean(tmp_path, figures):
    rows = [row(seed="1", bleu="10"), row(seed="2", bleu="20")]
    plots.compare(rows, str(tmp_path / "x.png"))
    axis = figures[0].axes[0]
    assert [p.get_height() for p in axis.patches] == [15.0]
    assert list(axis.lines[0].get_ydata()) == [10.0, 20.0]


def test_an_undefined_value_is_no_zero(tmp_path, figures):
    plots.compare(ROWS["collapsed"], str(tmp_path / "x.png"))
    bleu, repetition, _ = figures[0].axes
    assert [t.get_text() for t in repetition.texts] == ["n/a", "0.0"]
    assert [t.get_text() for t in bleu.texts] == ["0.0", "0.0"]


@pytest.mark.parametrize("start, score", [("best", 9.0), ("last", 8.5)])
def test_a_stage_has_an_axis_of_its_own_length(tmp_path, figures, start, score):
    """A short stage after a long one would be squeezed into the end of a common axis."""
    curves = {"CE": Curve([1000, 2000, 3000], [5.0, 9.0, 8.5]), "EISL": Curve([50, 100], [20, 21])}
    training_curve(curves, str(tmp_path / "x.png"), start=start)
    first, second = figures[0].axes
    (ce,) = first.lines
    eisl, joint = second.lines
    assert list(ce.get_xdata()) == [1000, 2000, 3000] and list(eisl.get_xdata()) == [50, 100]
    assert second.get_xlim()[1] < 150 and first.get_ylim() == second.get_ylim()
    assert joint.get_linestyle() == ":"
    assert list(joint.get_xdata()) == [0, 50] and list(joint.get_ydata()) == [score, 20]
    texts = check_layout(figures[0])
    assert any(f"dotted: from the {start} validation of the stage before" in t for t in texts)


def test_trainings_from_one_start_share_a_panel_if_they_are_about_as_long(tmp_path, figures):
    for length, panels in ((200, 1), (2000, 2)):
        curves = {"CE": Curve([100, length], [5.0, 9.0]), "EISL": Curve([50, 150], [20.0, 21.0])}
        training_curve(curves, str(tmp_path / "x.png"), start="zero")
        axes = figures[-1].axes
        assert len(axes) == panels
        assert not [line for axis in axes for line in axis.lines if line.get_linestyle() == ":"]
        assert all(axis.get_xlim()[0] == 0 for axis in axes)


@pytest.mark.parametrize("name", ITERATIONS)
def test_no_text_of_iterations_lies_on_another(tmp_path, figures, name):
    plots.iterations(iteration_lines(ITERATIONS[name]), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert texts.count("refinement iterations") == 3 and "Length error" in texts
    assert texts.count("BLEU") == 1 and "BLEU\n(axis not from 0)" in texts
    assert any("% of words\n(dashed: reference, 0.01)" in text for text in texts)
    assert any("noise repeat:0.5" in text.replace("\n", " ") for text in texts)
    numbers = [t for t in texts if t.replace(".", "").isdecimal()]
    assert "0" in numbers and not any("2.5" == t for t in numbers)


def test_a_line_over_iterations_is_the_mean_of_the_seeds_in_a_band(tmp_path, figures):
    plots.iterations(iteration_lines(ITERATIONS["seeds"]), str(tmp_path / "x.png"))
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
    plots.iterations(iteration_lines(rows), str(tmp_path / "x.png"))
    values = list(figures[0].axes[1].lines[0].get_ydata())
    assert values[0] == values[2] == 5.0 and math.isnan(values[1])


def test_png_is_twice_the_width_of_a_readme(tmp_path):
    path = tmp_path / "x.PNG"
    plots.compare(ROWS["one"], str(path))
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", data[16:20]) == (1600,)


def test_svg_says_the_same_for_the_same_rows(tmp_path):
    contents = []
    for name in ("a.svg", "b.svg"):
        plots.compare(ROWS["one"], str(tmp_path / name))
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert b"Multi30k test 2018 de-en, seed 1" in contents[0] and b"<svg" in contents[0]


def test_whole_or_not_at_all(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path = tmp_path / "x.png"
    path.write_text("the old picture")

    def savefig(self, name, **options):
        with open(name, "w") as f:
            f.write("a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", savefig)
    with pytest.raises(OSError, match="No space"):
        plots.compare(ROWS["one"], str(path))
    assert path.read_text() == "the old picture"
    assert os.listdir(tmp_path) == ["x.png"]


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.png.txt"])
def test_other_extensions_are_refused(tmp_path, name):
    for draw in (
        lambda path: plots.compare(ROWS["one"], path),
        lambda path: training_curve(CURVES["dense"], path),
        lambda path: plots.iterations(iteration_lines(ITERATIONS["one point"]), path),
    ):
        with pytest.raises(ValueError, match=r"\.png or \.svg"):
            draw(str(tmp_path / name))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "rows, message",
    [
        ([row(s, f"n{i}") for i in range(21) for s in ("CE", "EISL")], "42 bars"),
        ([row(f"system {i}") for i in range(8)], "8 systems, at most 7"),
    ],
)
def test_too_much_for_one_picture(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        plots.compare(rows, str(tmp_path / "x.png"))


def test_too_many_lines(tmp_path):
    rows = [row(f"system {i}", iterations="0") for i in range(8)]
    with pytest.raises(ValueError, match="8 systems, at most 7"):
        plots.iterations(iteration_lines(rows), str(tmp_path / "x.png"))


def test_wrong_curves(tmp_path):
    path = str(tmp_path / "x.png")
    with pytest.raises(ValueError, match="no curves"):
        training_curve({}, path)
    with pytest.raises(ValueError, match="best, last, zero, not 'first'"):
        training_curve(CURVES["dense"], path, start="first")
    with pytest.raises(ValueError, match="8 curves"):
        training_curve({str(i): Curve([1], [1.0]) for i in range(8)}, path)


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match="pip install matplotlib"):
        plots.compare(ROWS["one"], str(tmp_path / "x.png"))
