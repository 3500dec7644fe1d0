"""Names are drawn and written as they are, whatever they begin with or hold."""

import logging
import warnings

import pytest

from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.figures.column import column_values, draw_column
from fairseq_eisl.evaluation.figures.compare import compare
from fairseq_eisl.evaluation.figures.cost import draw_costs, step_costs
from fairseq_eisl.evaluation.figures.curve import training_curve
from fairseq_eisl.evaluation.figures.iterations import draw_iterations, iteration_lines
from fairseq_eisl.evaluation.figures.noise import noise
from fairseq_eisl.evaluation.figures.noise_levels import noise_lines
from fairseq_eisl.evaluation.readers.training_log import Curve
from fairseq_eisl.evaluation.short_names import glossary, isolated, shown

from .layout import check_layout
from .logs import generation_log, row

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

NAMES = {
    "signs": ("_CE", "__nolegend__", "$x_1$", "$\\frac{$", "a = {b}^c \\alpha", "5 $ & 10 %"),
    "writings": ("שלום", "مرحبا 12", "🙂", "中文"),
    "controls": ("a\tb", "a\nb", "\x1b[31mred"),
    "long": ("a" * 300, "a" * 299 + "b", "many words " * 40),
}


def draw_all(names, folder):
    """Every picture, with the names wherever a row may have one."""
    title = "_set " + names[0]
    some = [row(s, f"{names[0]}:{i}", test_set=title) for s in names for i in (1, 2)]
    compare(some, f"{folder}/x.png")
    noise(noise_lines(some), f"{folder}/x.png")
    column = [{**each, "kind": each["noise"], "noise": ""} for each in some]
    draw_column(column_values(column, "kind"), f"{folder}/x.png")
    many = [row(s, iterations=i, test_set=title) for s in names for i in ("0", "1")]
    draw_iterations(iteration_lines(many), f"{folder}/x.png")
    curves = {name: Curve([10, 20], [1.0, 2.0]) for name in names}
    training_curve(curves, f"{folder}/x.png", title=title)
    training_curve(curves, f"{folder}/x.png", start="zero", title=title)
    costs = [{"kind": "ar", "system": s, "step_ms": "1", "epoch_s": "2"} for s in names]
    draw_costs(step_costs(costs), f"{folder}/x.png")


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("kind", NAMES)
def test_every_name_is_in_every_picture(tmp_path, figures, kind):
    draw_all(NAMES[kind], tmp_path)
    assert len(figures) == 7
    titles = [axis.get_title("left") for axis in figures[1].axes]
    assert titles[0][:8] == shown(f"{NAMES[kind][0]}")[:8]  # of the noise
    for figure in figures:
        texts = [text.replace("\n", " ") for text in check_layout(figure)]
        for name in NAMES[kind]:
            start = shown(name)[:10].strip()
            assert any(text.startswith(start) for text in texts), (start, texts)
            assert not any(part in text for text in texts for part in "\t\x1b")


def test_they_are_drawn_to_the_end_without_a_warning(tmp_path):
    """A formula that is none stops matplotlib when the file is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_all(NAMES["signs"][:4], tmp_path)


def test_letters_that_no_font_has_are_one_line(tmp_path, caplog):
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        compare([row("\U0010fffd"), row("\U0010fffc\U0010fffd")], str(tmp_path / "x.png"))
    (record,) = caplog.records
    assert "2 letters" in record.getMessage()


def test_a_name_may_hold_an_equals_sign(tmp_path, monkeypatch, capsys):
    """The file of NAME=FILE is what there is, its own name may hold one, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref").write_text("a b\n")
    (tmp_path / "t=1.out").write_text(generation_log(["a b"]))
    (tmp_path / "out").write_text(generation_log(["a"]))
    files = ["--source", "ref", "--reference", "ref"]
    assert main(["examples", *files, "--system", "t=0.3=t=1.out", "x==out", "EISL=out"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["t=0.3", "a", "b"] in lines and ["x=", "a"] in lines and ["EISL", "a"] in lines
    with pytest.raises(SystemExit):
        main(["examples", *files, "--system", "a=b=none"])
    assert "--system a=b=none: No such file" in capsys.readouterr().err


def test_short_names_are_spelt_out():
    assert glossary(["ce", "_PG", "EISL, sharp", "decent"]) == (
        "CE: cross entropy; PG: policy gradient; EISL: Edit-Invariant Sequence Loss"
    )
    assert glossary(["pace", "a system"]) == ""


def test_long_names_keep_both_ends():
    assert shown("abc") == "abc" and shown("x" * 50 + "end", 20).endswith("end")
    assert len(shown("x" * 500, 20)) == 20 and shown(" a \r\n\x00b ") == "a b"


def test_a_name_from_right_to_left_moves_nothing_else():
    assert isolated("EISL") == "EISL"
    assert isolated("שלום") == "\u2068שלום\u2069" and isolated("\u202eabc").startswith("\u2068")
