"""One line a system and noise: mean and spread over the seeds, and the share of the ceiling."""

import pytest

from fairseq_eisl.common.rows import append_row
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.figures.ladder import draw_ladder
from fairseq_eisl.evaluation.over_seeds import over_seeds

CEILING = "CE, clean targets"


def row(system, noise, seed, bleu, **more):
    kind = "nrefs:1|tok:none|version:2.6.0"
    common = {"bleu_signature": kind, "test_set": "t", "repetition": "2", "length_ratio": "1.0"}
    return {"system": system, "noise": noise, "seed": seed, "bleu": bleu, **common, **more}


ROWS = [
    row("CE", "repeat:0.5", "1", "10"),
    row("EISL", "repeat:0.5", "1", "24", repetition="1", updates="300"),
    row("CE", "repeat:0.5", "2", "14"),
    row("EISL", "repeat:0.5", "2", "26", repetition="2", updates="300"),
    row(CEILING, "none", "1", "30"),
    row(CEILING, "none", "2", "34"),
    row("EISL", "blank:0.5", "1", "16"),
]


def test_panels_say_what_the_targets_were(tmp_path, figures):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    rows = [row("CE", noise, "1", "10") for noise in ("none", "repeat:0.5")]
    draw_ladder(rows, str(tmp_path / "ladder.png"))
    titles = [axis.get_title(loc="left") for axis in figures[0].axes]
    assert titles == ["clean targets", "repeat:0.5"]


def test_mean_spread_and_recovery():
    """CE: (10 + 14) / 2, deviation sqrt((2**2 + 2**2) / 1); of the ceiling's 32."""
    lines = over_seeds(ROWS, CEILING)
    assert [(line["noise"], line["system"]) for line in lines] == [
        ("none", CEILING),
        ("repeat:0.5", "CE"),
        ("repeat:0.5", "EISL"),
        ("blank:0.5", "EISL"),
    ]
    ce, eisl, one = lines[1:]
    assert (ce["bleu"], ce["sd"], ce["least"], ce["most"]) == ("12.00", "2.83", "10.00", "14.00")
    assert (ce["recovery"], eisl["recovery"], lines[0]["recovery"]) == ("37.5", "78.1", "100.0")
    assert (eisl["repetition"], eisl["updates"], eisl["seeds"]) == ("1.50", "300", "1, 2")
    assert (one["bleu"], one["sd"], one["recovery"]) == ("16.00", "", "50.0")


def test_ways_to_decode_may_differ_from_seed_to_seed_and_between_systems():
    """Trials choose them."""
    rows = [row("CE", "none", "1", "1", lenpen="1"), row("CE", "none", "2", "2", lenpen="2")]
    lines = over_seeds([*rows, row("EISL", "none", "1", "2", lenpen="2")])
    assert [line["bleu"] for line in lines] == ["1.50", "2.00"]


@pytest.mark.parametrize(
    "counts, shown",
    [(["5", "5"], "5"), (["300", "90"], "90 to 300"), (["5", ""], ""), (["7"], "7")],
)
def test_updates_of_several_seeds(counts, shown):
    rows = [row("CE", "none", str(i), "1", updates=count) for i, count in enumerate(counts)]
    assert over_seeds(rows)[0]["updates"] == shown


def test_the_newest_row_of_a_seed_counts_and_no_noise_is_none():
    lines = over_seeds([row("CE", "", "1", "1"), row("CE", "none", "1", "3")])
    assert [(line["noise"], line["bleu"]) for line in lines] == [("none", "3.00")]
    assert "recovery" not in lines[0]


@pytest.mark.parametrize(
    ("rows", "ceiling", "message"),
    [
        ([], "", "no rows to average"),
        (ROWS, "CE clean", "no row has the system CE clean; there is CE, EISL, CE, clean targets"),
        (ROWS, "EISL", "rows of several noises of the ceiling EISL"),
        ([*ROWS, row("CE", "none", "1", "1", test_set="u")], "", "rows of several test_set"),
        ([row("CE", "none", "1", "high")], "", "bleu is 'high', no number"),
        ([{"system": "CE"}], "", "no column noise"),
        (
            [row("CE", "none", "1", "1", lenpen="1"), row("CE", "none", "1", "2", lenpen="2")],
            "",
            r"several lenpen \(1, 2\); choose one, e.g. --where lenpen=1",
        ),
        (
            [row("CE", "none", "1", "1"), row("CE", "none", "1", "2", iterations="9")],
            "",
            r"several iterations \(, 9\)",
        ),
        (
            [row("CE", "none", "1", "1", model="a"), row("CE", "none", "2", "2", model="b")],
            "",
            r"several model \(a, b\); choose one, e.g. --where model=a",
        ),
        (
            [row("CE", "none", "1", "1", arch="a"), row("CE", "none", "2", "2", arch="b")],
            "",
            r"several arch \(a, b\)",
        ),
        (
            [row("CE", "", "1", "1", beam="1"), row("CE", "none", "1", "2", beam="5")],
            "",
            r"several beam \(1, 5\)",
        ),
    ],
)
def test_what_cannot_be_averaged_is_said(rows, ceiling, message):
    with pytest.raises(ValueError, match=message):
        over_seeds(rows, ceiling)


def test_the_command_prints_and_draws(tmp_path, capsys):
    path, out = tmp_path / "rows.csv", tmp_path / "ladder.svg"
    for each in ROWS:
        append_row(str(path), each)
    main(["seeds", "--rows", str(path), "--ceiling", CEILING, "--out", str(out)])
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:4] == ["noise", "system", "seeds", "bleu"] and table[-1] == str(out)
    assert len(table) == 6
    drawn = out.read_bytes()
    draw_ladder(ROWS, str(out), CEILING)
    assert out.read_bytes() == drawn
    main(["seeds", "--rows", str(path), "--markdown"])
    assert capsys.readouterr().out.startswith("| noise ")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--ceiling", "BART"], "no row has the system BART"),
        (["--out", "x.pdf"], "a picture ends in .png or .svg"),
        (["--out", ""], "--out: a file is needed"),
    ],
)
def test_bad_flags_are_one_line(tmp_path, capsys, flags, message):
    path = tmp_path / "rows.csv"
    append_row(str(path), ROWS[0])
    with pytest.raises(SystemExit) as exit:
        main(["seeds", "--rows", str(path), *flags])
    err = capsys.readouterr().err
    assert exit.value.code == 2 and message in err and err.count("\n") == 1


def test_a_picture_needs_something_beside_the_ceiling_and_not_too_much(tmp_path):
    with pytest.raises(ValueError, match="no row beside"):
        draw_ladder([row(CEILING, "none", "1", "30")], str(tmp_path / "a.png"), CEILING)
    many = [row(f"s{i}", "repeat:0.5", "1", "3") for i in range(21)]
    with pytest.raises(ValueError, match="21 systems a panel are too many"):
        draw_ladder(many, str(tmp_path / "a.png"))
