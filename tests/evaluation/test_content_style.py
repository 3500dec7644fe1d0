"""The picture of content against style."""

import pytest

from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.figures.content_style import content_style, draw_content_style

from .layout import check_layout
from .logs import row

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

POINTS = {"base": (88.0, 52.0), "+ EISL 0.1": (87.5, 54.0), "+ EISL 1.0": (80.0, 63.5),
          "+ EISL 0.5": (86.0, 57.0)}  # fmt: skip


def rows(points=POINTS, seeds="1", weights=True):
    found = []
    for system, (accuracy, bleu) in points.items():
        for seed in seeds:
            scores = {"accuracy": f"{accuracy + int(seed):.2f}", "bleu": f"{bleu + int(seed):.2f}"}
            each = row(system, noise="none", seed=seed, accuracy_signature="cnn", **scores)
            if weights:
                each["eisl_factor"] = system.split()[-1] if "EISL" in system else "0"
            found.append(each)
    return found


def test_systems_with_one_weight_are_joined_by_that_of_the_style():
    several = [dict(row, style_factor="2") for row in rows()]
    several += [
        dict(row, system=f"{row['system']}, more", style_factor="4")
        for row in rows()
        if row["system"] != "+ EISL 0.5"
    ]
    assert content_style(several[::-1]).joined == [
        ["base", "base, more"],
        ["+ EISL 0.1", "+ EISL 0.1, more"],
        ["+ EISL 0.5"],
        ["+ EISL 1.0", "+ EISL 1.0, more"],
    ]


def test_points_are_joined_by_their_weight():
    found = content_style(rows())
    assert found.joined == [["base", "+ EISL 0.1", "+ EISL 0.5", "+ EISL 1.0"]]
    assert found.points["+ EISL 0.5"] == [(87.0, 58.0)]
    assert content_style(rows(weights=False)).joined == [[]]


@pytest.mark.parametrize("seeds", ["1", "123"])
@pytest.mark.parametrize("weights", [True, False])
def test_it_is_legible_and_shows_every_point(tmp_path, figures, seeds, weights):
    draw_content_style(content_style(rows(seeds=seeds, weights=weights)), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert {*POINTS, "accuracy of the style, %"} <= set(texts)
    (axis,) = figures[0].axes
    named = {line.system_name: line for line in axis.lines if hasattr(line, "system_name")}
    shift = sum(map(int, seeds)) / len(seeds)
    assert named["base"].get_xdata() == [88.0 + shift]
    joined = [line for line in axis.lines if len(line.get_xdata()) == 4]
    assert len(joined) == int(weights)
    if weights:
        assert list(joined[0].get_ydata()) == pytest.approx([52, 54, 57, 63.5], abs=shift + 0.01)


def test_rows_that_are_not_compared_are_named():
    mixed = rows()
    mixed[0]["accuracy_signature"] = "another"
    with pytest.raises(ValueError, match="rows of several accuracy_signature are not compared"):
        content_style(mixed)
    twice = [*rows(), {**rows()[0], "beam": "1"}]
    with pytest.raises(ValueError, match=r"several beam \(, 1\); choose one"):
        content_style(twice)
    lacking = rows()
    del lacking[1]["accuracy"]
    with pytest.raises(ValueError, match="a row has no accuracy"):
        content_style(lacking)


def test_plot_draws_it(tmp_path, capsys):
    from fairseq_eisl.common.rows import append_row

    for each in rows():
        append_row(str(tmp_path / "rows.csv"), each)
    out = tmp_path / "style.svg"
    flags = ["plot", "--kind", "style", "--rows", str(tmp_path / "rows.csv"), "--out", str(out)]
    assert main(flags) == 0 and out.read_text().startswith("<?xml")
