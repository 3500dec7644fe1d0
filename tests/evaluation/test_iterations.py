import math

import pytest

from fairseq_eisl.evaluation.figures.iterations import iteration_lines

from .logs import row


def lev(system="EISL", iterations="0", **changes):
    return row(system, iterations=iterations, **changes)


def test_lines_by_system_with_rising_iterations():
    rows = [lev(s, i, bleu=f"{10 * int(i)}") for s in ("EISL", "CE") for i in ("10", "2", "0")]
    data = iteration_lines(rows)
    assert list(data.lines) == ["EISL", "CE"]  # in order of appearance
    assert data.lines["CE"].iterations == [0, 2, 10]  # by number
    assert data.lines["CE"].values["bleu"] == [[0.0], [20.0], [100.0]]
    assert data.lines["EISL"].values["repetition"] == [[7.3]] * 3
    assert (data.seeds, data.test_set, data.noise) == (
        ["1"],
        "Multi30k test 2018 de-en",
        "repeat:0.5",
    )
    assert data.repetition_reference == 0.01 and "tok:none" in data.signature


def test_systems_need_not_have_the_same_iterations():
    data = iteration_lines([lev("CE", "0"), lev("EISL", "0"), lev("EISL", "9")])
    assert [line.iterations for line in data.lines.values()] == [[0], [0, 9]]


def test_seeds_stay_in_order():
    rows = [lev(iterations=i, seed=s, bleu=s) for i in ("0", "1") for s in ("3", "1")]
    data = iteration_lines([*rows[:2], *rows[:1:-1]])
    assert data.seeds == ["3", "1"]
    assert data.lines["EISL"].values["bleu"] == [[3.0, 1.0], [3.0, 1.0]]


def test_the_architecture_is_named_where_there_are_several():
    one = [lev("CE", arch="lev"), lev("EISL", arch="lev")]
    assert list(iteration_lines(one).lines) == ["CE", "EISL"]
    several = [*one, lev("EISL", arch="cmlm"), lev("EISL", arch="")]
    assert list(iteration_lines(several).lines) == ["lev CE", "lev EISL", "cmlm EISL", "EISL"]


@pytest.mark.parametrize("name", ["targets", "length_candidates", "beam", "search"])
def test_a_line_is_of_one_way_to_translate(name):
    rows = [lev(iterations="0", **{name: "1"}), lev(iterations="9", **{name: "2"})]
    with pytest.raises(ValueError, match=f"several {name} are not compared: 1, 2"):
        iteration_lines(rows)
    rows[1]["system"] = "CE"  # each line may have its own
    assert list(iteration_lines(rows).lines) == ["EISL", "CE"]


def test_trials_may_choose_for_each_seed():
    rows = [lev(iterations=i, seed=s, lenpen=s) for i in ("0", "9") for s in ("1", "2")]
    assert iteration_lines(rows).seeds == ["1", "2"]


def test_seed_test_set_and_noise_may_be_unknown():
    unknown = ("seed", "test_set", "noise", "repetition_reference")
    rows = [{k: v for k, v in lev(iterations=i).items() if k not in unknown} for i in ("0", "1")]
    data = iteration_lines(rows)
    assert (data.seeds, data.test_set, data.noise) == ([""], "", "")
    assert data.repetition_reference is None and data.lines["EISL"].iterations == [0, 1]


def test_an_undefined_value_stays():
    values = iteration_lines([lev(repetition="nan")]).lines["EISL"].values
    assert math.isnan(values["repetition"][0][0])


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"iterations": ""}, "a row has no iterations: system EISL, noise repeat:0.5, seed 1$"),
        ({"iterations": "1.0"}, "iterations is '1.0', no integer .*seed 1, iterations 1.0$"),
        ({"iterations": "-1"}, "iterations is '-1', no integer of 0 or more"),
        ({"iterations": "²"}, "iterations is '²'"),
        ({"system": ""}, "a row has no system: noise"),
        ({"iterations": "0"}, "two rows of the same run: system EISL, .*seed 1, iterations 0$"),
        ({"seed": "2"}, "EISL at 0 iterations has no row for seed 2"),
        ({"seed": ""}, "EISL at 0 iterations has no row for an empty seed"),
        ({"bleu": "high"}, "bleu is 'high', no number: system EISL"),
        ({"test_set": "test 2016"}, "several test_set are not compared"),
        ({"noise": "none"}, "several noise are not compared: repeat:0.5, none"),
        ({"bleu_signature": "nrefs:1|tok:13a"}, "several bleu_signature"),
        ({"repetition_reference": "0.50"}, "several references: .* 0.01, 0.5"),
    ],
)
def test_rows_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError, match=message):
        iteration_lines([lev(), lev(**{"iterations": "1", **changes})])


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match="no column iterations; there is system"):
        iteration_lines([row()])
    with pytest.raises(ValueError, match="no rows"):
        iteration_lines([])
