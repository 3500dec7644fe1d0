import math

import pytest

from fairseq_eisl.evaluation.figures.column import column_values, draw_column

from .layout import check_layout
from .logs import row

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

PAIRS = ("50000", "200000", "1000000", "4000000")
ORDERS = ("1", "2", "1 2", "2 3 4", "1 2 3 4", "T*")


def rows(column, values, systems=("CE", "EISL"), seeds="1", **changes):
    return [
        {**row(system, seed=seed, bleu=f"{20 + i + int(seed)}.5", **changes), column: value}
        for system in systems
        for i, value in enumerate(values)
        for seed in seeds
    ]


CASES = {
    "sizes": rows("pairs", PAIRS),
    "sizes, seeds": rows("pairs", PAIRS, seeds="123"),
    "many sizes": rows("pairs", [str(1000 * 2**i) for i in range(14)]),
    "one decade": rows("pairs", [str(900 + 950 * i) for i in range(10)]),
    "linear": rows("batch", ("1", "2", "3")),
    "orders": rows("ngram", ORDERS),
    "orders, seeds": rows("ngram", ORDERS, seeds="12", systems=("CE", "EISL", "policy gradient")),
    "long names": rows("loss", ("gumbel at temperature 1", "softmax at temperature 0.3", "x")),
    "zero": [{**r, "bleu": "0.0"} for r in rows("ngram", ORDERS)],
}


@pytest.mark.parametrize("name", CASES)
def test_no_text_lies_on_another(tmp_path, figures, name):
    column = next(key for key in ("pairs", "batch", "ngram", "loss") if key in CASES[name][0])
    draw_column(column_values(CASES[name], column), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert "BLEU" in texts and column in texts
    assert not any("$" in text for text in texts)  # a power of ten would be a formula
    assert any("tok:none" in text for text in texts)


def test_numbers_rise_on_a_logarithmic_axis_where_they_span_much(tmp_path, figures):
    shuffled = [rows("pairs", PAIRS)[i] for i in (3, 1, 0, 2, 7, 5, 4, 6)]
    data = column_values(shuffled, "pairs")
    assert data.places == list(PAIRS) and data.numbers == [5e4, 2e5, 1e6, 4e6]
    draw_column(data, str(tmp_path / "x.png"))
    (axis,) = figures[0].axes
    assert axis.get_xscale() == "log"
    assert list(axis.lines[0].get_xdata()) == data.numbers
    assert list(axis.lines[0].get_ydata()) == [21.5, 22.5, 23.5, 24.5]
    assert [t.get_text() for t in axis.get_xticklabels()] == [f"{int(n):,}" for n in data.numbers]
    draw_column(column_values(CASES["linear"], "batch"), str(tmp_path / "x.png"))
    assert figures[1].axes[0].get_xscale() == "linear"


def test_words_are_bars_in_their_order(tmp_path, figures):
    data = column_values(rows("ngram", ORDERS, seeds="12"), "ngram")
    assert data.places == list(ORDERS) and data.numbers is None
    draw_column(data, str(tmp_path / "x.png"))
    (axis,) = figures[0].axes
    assert [patch.get_height() for patch in axis.patches][:6] == [22, 23, 24, 25, 26, 27]
    assert [t.get_text() for t in axis.get_xticklabels()] == list(ORDERS)


def test_the_last_row_counts_and_a_system_may_lack_a_place(tmp_path, figures):
    mixed = [*rows("pairs", PAIRS), *rows("pairs", PAIRS[:1], systems=("PG",))]
    mixed.append({**mixed[0], "bleu": "9.0"})
    data = column_values(mixed, "pairs")
    assert data.values["CE"]["50000"] == [9.0] and list(data.values["PG"]) == ["50000"]
    draw_column(data, str(tmp_path / "x.png"))
    assert math.isclose(figures[0].axes[0].lines[0].get_ydata()[0], 9.0)


def test_models_with_other_seeds_stand_beside_each_other(tmp_path, figures):
    """CE and EISL of one model have the same seeds; another model may have fewer."""
    several = rows("arch", ["nat"], seeds="12", model="nat") + rows("arch", ["inat"], model="inat")
    data = column_values(several, "arch")
    assert data.seeds == {"nat": ["1", "2"], "inat": ["1"]}
    draw_column(data, str(tmp_path / "x.png"))
    check_layout(figures[0])
    labels = [t.get_text() for t in figures[0].axes[0].get_xticklabels()]
    assert labels == ["nat\n(seeds 1, 2)", "inat\n(seed 1)"]
    several.append(rows("arch", ["inat"], seeds="2", systems=("CE",), model="inat")[0])
    with pytest.raises(ValueError, match="EISL at arch inat has no row for seed 2"):
        column_values(several, "arch")
    with pytest.raises(ValueError, match="CE at pairs 2 has no row for seed 2"):
        column_values(rows("pairs", "1", seeds="12") + rows("pairs", "2"), "pairs")


@pytest.mark.parametrize(
    "change, column, message",
    [
        (lambda r: [], "pairs", "no rows to draw"),
        (lambda r: r, "bleu", "bleu is not a column to draw BLEU against"),
        (lambda r: r, "size", "size"),
        (lambda r: r[:1], "pairs", "pairs has one value, '50000'"),
        (lambda r: [*r, {**r[0], "pairs": ""}], "pairs", "a row has no pairs"),
        (lambda r: [*r, {**r[0], "test_set": "x"}], "pairs", "test_set"),
        (lambda r: [*r, {**r[0], "noise": "drop:0.1"}], "pairs", "noise"),
        (lambda r: [*r, {**r[0], "beam": "2"}], "pairs", r"several beam \(, 2\); choose one"),
        (lambda r: [*r, {**r[0], "seed": "2"}], "pairs", "has no row for seed 2, others have"),
        (lambda r: [{**r[0], "bleu": "x"}, *r[1:]], "pairs", "bleu is 'x', no number"),
    ],
)
def test_rows_that_do_not_fit_together(change, column, message):
    with pytest.raises(ValueError, match=message):
        column_values(change(rows("pairs", PAIRS)), column)


def test_a_way_to_decode_may_be_what_is_drawn_against():
    assert column_values(rows("beam", ["1", "5"]), "beam").places == ["1", "5"]


def test_wrong_pictures(tmp_path):
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        draw_column(column_values(rows("pairs", PAIRS), "pairs"), str(tmp_path / "x.jpg"))
    many = rows("pairs", PAIRS, systems=[f"system {i}" for i in range(15)])
    with pytest.raises(ValueError, match="15 systems, at most 14"):
        draw_column(column_values(many, "pairs"), str(tmp_path / "x.png"))
