import math

import pytest

from fairseq_eisl.evaluation.figures.comparison import compare_rows

from .logs import row


def refusal(rows):
    with pytest.raises(ValueError) as error:
        compare_rows(rows)
    return str(error.value)


def test_systems_settings_and_seeds_in_order_of_appearance():
    rows = [
        row(system, noise, seed, bleu=f"{10 * i}")
        for i, (noise, system, seed) in enumerate(
            (n, y, s) for n in ("shuffle:3", "blank:0.2") for y in ("EISL", "CE") for s in "21"
        )
    ]
    data = compare_rows(rows)
    assert (data.systems, data.settings, data.seeds) == (
        ["EISL", "CE"],
        ["shuffle:3", "blank:0.2"],
        ["2", "1"],
    )
    assert data.values["bleu", "CE", "shuffle:3"] == [20.0, 30.0]
    assert data.mean("bleu", "CE", "blank:0.2") == 65.0
    assert data.repetition_reference == 0.01


def test_the_noise_column_is_optional():
    rows = [{k: v for k, v in row(s).items() if k != "noise"} for s in ("CE", "EISL")]
    assert compare_rows(rows).settings == [""]


def test_the_newest_score_of_a_run_stands():
    assert compare_rows([row(bleu="1"), row(bleu="2")]).values["bleu", "CE", "repeat:0.5"] == [2.0]


def test_rows_of_two_ways_to_decode_are_not_compared():
    rows = [row(beam="1"), row(beam="5"), row("EISL", beam="5")]
    with pytest.raises(
        ValueError, match="several beam \\(1, 5\\); choose one, e.g. --where beam=1"
    ):
        compare_rows(rows)
    assert compare_rows(rows[1:]).systems == ["CE", "EISL"]
    assert compare_rows([rows[0], rows[2]]).systems == ["CE", "EISL"]


def test_a_gap_is_nan():
    data = compare_rows([row("CE", "a"), row("CE", "b"), row("EISL", "a", repetition="nan")])
    assert math.isnan(data.mean("bleu", "EISL", "b"))
    assert math.isnan(data.mean("repetition", "EISL", "a"))


def test_versions_of_sacrebleu_alone_do_not_part_rows():
    signature = row()["bleu_signature"]
    other = row("EISL", bleu_signature=signature.replace("2.6.0", "2.4.3"))
    assert compare_rows([row(), other]).systems == ["CE", "EISL"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"test_set": "test 2016"}, "several test_set are not compared: Multi30k.*test 2016"),
        ({"bleu_signature": "nrefs:1|tok:13a"}, "several bleu_signature .*tok:none.*tok:13a"),
        ({"repetition_reference": "0.50"}, "several references: .* 0.01, 0.5"),
        ({"bleu": "high"}, "bleu is 'high', no number: system EISL, noise repeat:0.5, seed 1"),
        ({"seed": ""}, "a row has no seed: system EISL"),
        ({"seed": "2"}, "CE repeat:0.5 has no row for seed 2"),
    ],
)
def test_what_may_not_be_compared(changes, message):
    with pytest.raises(ValueError, match=message):
        compare_rows([row(), row("EISL", **changes)])


def test_missing_columns_are_named():
    rows = [{k: v for k, v in row().items() if k not in ("seed", "test_set")}]
    assert "no column test_set, seed; there is system" in refusal(rows)
    assert "no rows" in refusal([])
