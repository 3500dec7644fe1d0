import pytest

from fairseq_eisl.common.rows import append_row
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.figures.cost import draw_costs, step_costs

from .layout import check_layout

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

SYSTEMS = ("cross entropy", "eisl 1", "eisl 12", "eisl 234", "eisl 12, parallel", "released 12")


def rows(systems=SYSTEMS, **changes):
    row = {"kind": "ar", "batch": "128", "length": "47", "vocabulary": "4000", "dtype": "float32"}
    return [
        {**row, "system": name, "step_ms": f"{100 + 20 * i}", "epoch_s": f"{25 + 5 * i}", **changes}
        for i, name in enumerate(systems)
    ]


def test_costs_are_in_the_order_of_the_rows_and_relative_to_the_first():
    data = step_costs([*rows(), *rows(["eisl 1"], step_ms="150", epoch_s="40")])
    assert data.systems == list(SYSTEMS)
    assert data.seconds[:3] == [25, 40, 35] and data.ratios[:3] == [1, 1.5, 1.4]
    assert (
        data.title == "ar, 128 sentences a batch, 47 tokens a sentence, 4000 words in the "
        "vocabulary, float32"
    )


@pytest.mark.parametrize(
    "systems", [SYSTEMS, SYSTEMS[:1], [f"a long name of a loss {i}" for i in range(12)]]
)
def test_no_text_lies_on_another(tmp_path, figures, systems):
    draw_costs(step_costs(rows(systems)), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert "time of an epoch (seconds)" in texts and "25 s, 1.00 x" in texts
    widths = [bar.get_width() for bar in figures[0].axes[0].patches]
    assert widths == [25 + 5 * i for i in range(len(systems))]
    assert figures[0].axes[0].yaxis_inverted()  # the first on top


@pytest.mark.parametrize(
    "given, words",
    [
        ([], "no rows"),
        ([{"system": "x"}], "kind"),
        ([*rows(), *rows(kind="nat")], "kind"),
        ([*rows(), *rows(cpu="another")], "cpu"),
        (rows(step_ms="soon"), "step_ms"),
        (rows(epoch_s="0"), "above 0"),
    ],
)
def test_rows_that_are_not_to_be_compared_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        step_costs(given)


def test_the_command_draws_it(tmp_path, capsys):
    for row in rows():
        append_row(str(tmp_path / "steps.csv"), row)
    out = tmp_path / "steps.svg"
    main(["plot", "--rows", str(tmp_path / "steps.csv"), "--kind", "cost", "--out", str(out)])
    assert out.exists() and "released 12" in out.read_text()
