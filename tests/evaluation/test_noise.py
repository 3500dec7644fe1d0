import math
import os

import pytest

from fairseq_eisl.evaluation.figures.noise import noise
from fairseq_eisl.evaluation.figures.noise_levels import noise_lines

from .layout import check_layout
from .logs import row

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

LONG = "WMT14 en-de newstest2014, tokenised, compound split, five checkpoints averaged, one step"
GRID = {
    "shuffle": ("0", "2", "4", "6", "8", "10", "all"),
    "repeat": ("0.05", "0.25", "0.5"),
    "blank": ("0.05", "0.5"),
    "synthetic_released": ("2", "10"),
    "drop": ("0.1",),
}


def rows(*kinds, seeds="1", systems=("CE", "EISL"), **changes):
    return [
        row(s, f"{kind}:{level}", seed, bleu=str(30 - i + int(seed)), **changes)
        for s in systems
        for kind in kinds
        for i, level in enumerate(GRID[kind])
        for seed in seeds
    ]


PAPER = [
    {"noise": f"{kind}:{level}", "system": system, "bleu": "20"}
    for kind, level in (("shuffle", "2"), ("shuffle", "all"), ("repeat", "0.5"))
    for system in ("CE", "EISL", "another system")
]
CASES = {
    "one": (rows("repeat"), []),
    "one level": (rows("drop"), []),
    "two": (rows("shuffle", "blank"), PAPER),
    "four": (rows(*list(GRID)[:4], seeds="12"), PAPER),
    "all": (rows(*GRID, seeds="123", test_set=LONG), PAPER),
    "all, long names": (rows(*GRID, systems=("CE, label smoothing", "EISL after CE")), []),
}


@pytest.mark.parametrize("name", CASES)
def test_no_text_lies_on_another(tmp_path, figures, name):
    ours, theirs = CASES[name]
    noise(noise_lines(ours, theirs), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert "BLEU" in texts and any("tok:none" in text for text in texts)
    assert ("CE, paper" in texts) == any("as printed there" in t for t in texts) == bool(theirs)


def test_a_line_is_the_mean_of_the_seeds(tmp_path, figures):
    noise(noise_lines(rows("repeat", seeds="12")), str(tmp_path / "x.png"))
    (axis,) = figures[0].axes
    assert [line.get_label() for line in axis.lines] == ["CE", "EISL"]
    assert list(axis.lines[0].get_xdata()) == [0.05, 0.25, 0.5]
    assert list(axis.lines[0].get_ydata()) == [31.5, 30.5, 29.5]
    assert axis.get_title("left") == "repeat" and axis.get_xlabel() == "probability a word"
    low, high = axis.get_ylim()
    assert low == 0 and high > 32.5


def test_a_paper_is_dashed_in_the_colour_of_its_system(tmp_path, figures):
    noise(noise_lines(rows("repeat"), PAPER), str(tmp_path / "x.png"))
    lines = {line.get_label(): line for line in figures[0].axes[0].lines}
    assert list(lines) == ["CE", "EISL", "CE, paper", "EISL, paper", "another system, paper"]
    assert lines["CE, paper"].get_linestyle() == "--" and lines["CE"].get_linestyle() == "-"
    assert lines["CE, paper"].get_color() == lines["CE"].get_color()
    assert lines["CE, paper"].get_alpha() < 1


def test_all_swaps_come_after_the_largest_number(tmp_path, figures):
    noise(noise_lines(rows("shuffle")), str(tmp_path / "x.png"))
    (axis,) = figures[0].axes
    xs = list(axis.lines[0].get_xdata())
    assert xs[:-1] == [0, 2, 4, 6, 8, 10] and 10 < xs[-1] < math.inf
    assert [tick.get_text() for tick in axis.get_xticklabels()][-1] == "all"


def test_bleu_of_zero_and_nan_can_be_drawn(tmp_path, figures):
    for bleu in ("0.00", "nan"):
        noise(noise_lines([row(bleu=bleu)]), str(tmp_path / "x.png"))
        assert figures[-1].axes[0].get_ylim() == (0.0, 1.0)


def test_svg_says_the_same_for_the_same_rows(tmp_path):
    for name in ("a.svg", "b.svg"):
        noise(noise_lines(rows("repeat"), PAPER), str(tmp_path / name))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_wrong_inputs(tmp_path):
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        noise(noise_lines(rows("repeat")), str(tmp_path / "x.jpg"))
    many = rows("repeat", systems=[f"system {i}" for i in range(12)])
    with pytest.raises(ValueError, match="15 systems, at most 14"):
        noise(noise_lines(many, PAPER), str(tmp_path / "x.png"))
    assert not os.listdir(tmp_path)
