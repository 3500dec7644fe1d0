"""Every picture shows how sure its numbers are, where that is known."""

import pytest

from fairseq_eisl.common.rows import append_row
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.figures.column import column_values, draw_column
from fairseq_eisl.evaluation.figures.compare import compare
from fairseq_eisl.evaluation.figures.cost import draw_costs, step_costs
from fairseq_eisl.evaluation.figures.iterations import draw_iterations, iteration_lines
from fairseq_eisl.evaluation.figures.noise import noise
from fairseq_eisl.evaluation.figures.noise_levels import noise_lines

from .layout import check_layout
from .logs import row
from .test_intervals import sampled

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

TESTS = [sampled("CE"), sampled("EISL")]
SEEDS = [row(s, seed=k, bleu=f"{10 + 5 * int(k)}") for s in ("CE", "EISL") for k in "123"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Pictures are not saved, but their empty files are."""
    monkeypatch.chdir(tmp_path)


def error_bars(axis, flat=False):
    """Their two ends, rounded."""
    from matplotlib.container import ErrorbarContainer

    found = []
    for container in axis.containers:
        if isinstance(container, ErrorbarContainer):
            (segment,) = container.lines[2][0].get_segments()
            found.append(tuple(round(float(point[0 if flat else 1]), 2) for point in segment))
    return found


def draw(kind, rows, tests):
    rows = [dict(each) for each in rows]
    path = "x.png"
    if kind == "compare":
        compare(rows, path, tests)
    elif kind == "noise":
        noise(noise_lines(rows, (), tests), path)
    elif kind == "iterations":
        draw_iterations(iteration_lines([{**r, "iterations": "0"} for r in rows], tests), path)
    else:
        more = [{**r, kind: str(i), "bleu": "1"} for r in rows for i in (1,)]
        draw_column(column_values([{**r, kind: "0"} for r in rows] + more, kind, tests), path)


@pytest.mark.parametrize("kind", ["compare", "noise", "iterations", "pairs"])
def test_the_interval_of_one_seed(figures, kind):
    rows = [row("CE"), row("EISL")]
    draw(kind, rows, TESTS)
    assert error_bars(figures[0].axes[0]) == [(7.6, 9.6), (31.2, 33.2)]
    texts = " ".join(check_layout(figures[0])).replace("\n", " ")
    assert "error bar: 95 % interval over the test sentences" in texts
    draw(kind, rows, [])
    assert not error_bars(figures[1].axes[0])
    assert "error bar" not in " ".join(check_layout(figures[1]))


@pytest.mark.parametrize("kind", ["compare", "noise", "pairs"])
def test_the_spread_of_several_seeds(figures, kind):
    draw(kind, SEEDS, TESTS)
    assert error_bars(figures[0].axes[0])[:1] == [(15.0, 25.0)]
    texts = " ".join(check_layout(figures[0])).replace("\n", " ")
    assert "mean" in texts and "error bar: least to largest" in texts and "95 %" not in texts


def test_the_clean_rows_keep_their_interval_at_level_0(figures):
    rows = [row("CE"), row("CE", "none"), row("CE", "blank:0.1")]
    noise(noise_lines(rows, (), [sampled("CE", noise="none")]), "x.png")
    assert [error_bars(axis) for axis in figures[0].axes] == [[(7.6, 9.6)], [(7.6, 9.6)]]


def test_the_repeats_of_a_benchmark(figures):
    rows = [
        {"kind": "ar", "system": s, "step_ms": "10", "epoch_s": "100", **ends}
        for s, ends in (("eisl 12", {"step_ms_q20": "9", "step_ms_q80": "13"}), ("PG", {}))
    ]
    draw_costs(step_costs(rows), "x.png")
    (axis,) = figures[0].axes
    assert error_bars(axis, flat=True) == [(90.0, 130.0)]
    texts = " ".join(check_layout(figures[0])).replace("\n", " ")
    for part in (
        "error bar: 20 % to 80 % of the repeats",
        "ar: a training step of an autoregressive Transformer",
        "12: n-grams of 1 and 2 words",
        "EISL: Edit-Invariant Sequence Loss; PG: policy gradient",
    ):
        assert part in texts


def test_the_commands_take_tests(capsys, figures):
    for each, test in zip([row("CE", iterations="0"), row("EISL", iterations="0")], TESTS):
        append_row("rows.csv", each)
        append_row(f"{each['system']}.csv", test)
    both = ["--tests", "CE.csv", "EISL.csv", "--out", "x.png"]
    for command in (["plot"], ["plot", "--kind", "noise"], ["iterations"]):
        main([*command, "--rows", "rows.csv", *both])
        assert error_bars(figures[-1].axes[0]) == [(7.6, 9.6), (31.2, 33.2)]
    with pytest.raises(SystemExit):
        main(["plot", "--rows", "rows.csv", "--tests", "rows.csv", "--out", "x.png"])
    assert "--tests rows.csv: no column baseline" in capsys.readouterr().err
