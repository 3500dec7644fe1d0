import math

import pytest

from fairseq_eisl.evaluation.figures.noise_levels import (
    Levels,
    check_noises,
    noise_lines,
    several_levels,
    split_noise,
)

from .logs import row


def paper(noise, system="CE", bleu="20"):
    return {"noise": noise, "system": system, "bleu": bleu}


@pytest.mark.parametrize(
    "text, parts",
    [
        ("repeat:0.3", ("repeat", 0.3)),
        (" shuffle : 6 ", ("shuffle", 6.0)),
        ("shuffle:all", ("shuffle", math.inf)),
        ("synthetic:0", ("synthetic", 0.0)),
        ("", ("", 0.0)),
        ("none", ("", 0.0)),
    ],
)
def test_a_noise_is_a_type_and_a_level(text, parts):
    assert split_noise(text) == parts


@pytest.mark.parametrize(
    "text", ["repeat:0.1,blank:0.2", "repeat", "repeat:", ":1", "repeat:-1", "repeat:nan", "x:inf"]
)
def test_other_noises_are_refused(text):
    with pytest.raises(ValueError, match="not one type:level"):
        split_noise(text)
    with pytest.raises(ValueError, match="row 2: noise is"):
        check_noises([{"noise": "none"}, {"noise": text}])
    assert not several_levels([row(noise="repeat:0.1"), row(noise=text)])


def test_lines_by_type_and_system_with_rising_levels():
    rows = [
        row(system, noise, bleu=bleu)
        for system in ("EISL", "CE")
        for noise, bleu in [("repeat:0.5", "5"), ("repeat:0.1", "9"), ("shuffle:all", "3")]
    ]
    data = noise_lines(rows)
    assert list(data.panels) == ["repeat", "shuffle"]
    assert list(data.panels["repeat"]) == ["EISL", "CE"]  # in order of appearance
    assert data.panels["repeat"]["CE"] == Levels([0.1, 0.5], [[9.0], [5.0]])
    assert data.panels["shuffle"]["CE"] == Levels([math.inf], [[3.0]])
    assert (data.seeds, data.test_set) == (["1"], "Multi30k test 2018 de-en")
    assert "tok:none" in data.signature and data.published == {}


def test_clean_rows_begin_every_line():
    rows = [
        row(noise=n, bleu=b) for n, b in [("none", "30"), ("repeat:0.5", "5"), ("blank:1", "1")]
    ]
    rows += [row(noise="blank:0", bleu="29"), row("other", "", bleu="8")]
    panels = noise_lines(rows).panels
    assert panels["repeat"] == {"CE": Levels([0.0, 0.5], [[30.0], [5.0]])}
    assert panels["blank"] == {"CE": Levels([0.0, 1.0], [[29.0], [1.0]])}  # its own comes first


def test_seeds_stay_in_order_and_the_last_row_counts():
    rows = [row(seed="3", bleu="1"), row(seed="1", bleu="2"), row(seed="3", bleu="4")]
    assert noise_lines(rows).seeds == ["3", "1"]
    assert noise_lines(rows).panels["repeat"]["CE"].values == [[4.0, 2.0]]


def test_numbers_of_a_paper_stand_apart():
    theirs = [paper("repeat:0.5"), paper("repeat:0.1", "EISL"), paper("none"), paper("blank:0.1")]
    data = noise_lines([row()], theirs)
    assert list(data.panels["repeat"]) == ["CE"]
    assert data.published == {  # a type that the rows lack is left out
        "repeat": {"CE": Levels([0.0, 0.5], [[20.0], [20.0]]), "EISL": Levels([0.1], [[20.0]])}
    }


@pytest.mark.parametrize(
    "noises, several",
    [
        (["repeat:0.1", "repeat:0.2"], True),
        (["repeat:0.1", "none"], True),
        (["repeat:0.1", "blank:0.2"], False),
        (["repeat:0.1", "repeat:0.1"], False),
        (["none", ""], False),
    ],
)
def test_is_there_a_line_to_draw(noises, several):
    assert several_levels([row(noise=noise) for noise in noises]) == several


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"noise": "repeat:0.1,blank:0.2"}, "noise is 'repeat:0.1,blank:0.2', not one"),
        ({"system": ""}, "a row has no system: noise"),
        ({"seed": "2", "noise": "blank:1"}, "CE repeat:0.5 has no row for seed 2, others have"),
        ({"seed": "2", "noise": ""}, "CE repeat:0.5 has no row for seed 2, others have"),
        ({"bleu": "high"}, "bleu is 'high', no number: system CE"),
        ({"test_set": "test 2016"}, "several test_set are not compared"),
        ({"arch": "lev"}, "several arch are not compared: , lev"),
        ({"search": "greedy"}, "several search are not compared: , greedy"),
        ({"targets": "kd"}, "several targets are not compared: , kd"),
        ({"beam": "5"}, r"several beam \(, 5\); choose one"),
        ({"bleu_signature": "nrefs:1|tok:13a"}, "several bleu_signature"),
    ],
)
def test_rows_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError, match=message):
        noise_lines([row(), row(**changes)])


def test_missing_columns_are_named():
    without = {key: value for key, value in row().items() if key != "noise"}
    with pytest.raises(ValueError, match="no column noise; there is system"):
        noise_lines([without])
    with pytest.raises(ValueError, match="no rows"):
        noise_lines([])
    with pytest.raises(ValueError, match="no row has a noise"):
        noise_lines([row(noise="none")])
