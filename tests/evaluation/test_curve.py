import pytest

from fairseq_eisl.common.run_files import MOST_SYSTEMS
from fairseq_eisl.evaluation.figures.canvas import COLOURS, MARKERS
from fairseq_eisl.evaluation.figures.curve import training_curve
from fairseq_eisl.evaluation.readers.training_log import Curve

from .layout import check_layout
from .pictures import CURVES

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


@pytest.mark.parametrize("name", CURVES)
def test_no_text_of_a_curve_lies_on_another(tmp_path, figures, name):
    training_curve(CURVES[name], str(tmp_path / "x.png"), title="Multi30k, seed 1")
    texts = check_layout(figures[0])
    assert "Multi30k, seed 1" in texts and any(text.startswith("updates") for text in texts)


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


def test_wrong_curves(tmp_path):
    path = str(tmp_path / "x.png")
    with pytest.raises(ValueError, match="no curves"):
        training_curve({}, path)
    with pytest.raises(ValueError, match="best, last, zero, not 'first'"):
        training_curve(CURVES["dense"], path, start="first")


def test_as_many_trainings_as_a_recipe_may_have(tmp_path):
    """Of ten rivals there are ten curves, each with a look of its own."""
    systems = [f"system {i}" for i in range(MOST_SYSTEMS)]
    training_curve(
        {name: Curve([1, 2], [3.0, 4.0]) for name in systems}, f"{tmp_path}/x.png", "zero"
    )
    assert len(set(COLOURS)) == len(set(MARKERS)) == MOST_SYSTEMS
    with pytest.raises(ValueError, match="15 curves, at most 14"):
        more = {name: Curve([1, 2], [3.0, 4.0]) for name in [*systems, "x"]}
        training_curve(more, f"{tmp_path}/y.png", "zero")
