import os
import struct
import sys

import pytest

from fairseq_eisl.evaluation.figures.compare import compare
from fairseq_eisl.evaluation.figures.curve import training_curve
from fairseq_eisl.evaluation.figures.iterations import draw_iterations, iteration_lines

from .pictures import CURVES, ITERATIONS, ROWS

pytest.importorskip("matplotlib", reason="pictures need matplotlib")


def test_png_is_twice_the_width_of_a_readme(tmp_path):
    path = tmp_path / "x.PNG"
    compare(ROWS["one"], str(path))
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", data[16:20]) == (1600,)


def test_svg_says_the_same_for_the_same_rows(tmp_path):
    contents = []
    for name in ("a.svg", "b.svg"):
        compare(ROWS["one"], str(tmp_path / name))
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert b"Multi30k test 2018 de-en, seed 1" in contents[0] and b"<svg" in contents[0]


def test_whole_or_not_at_all(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path = tmp_path / "x.png"
    path.write_text("the old picture")

    def savefig(self, name, **options):
        with open(name, "w") as f:
            f.write("a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", savefig)
    with pytest.raises(OSError, match="No space"):
        compare(ROWS["one"], str(path))
    assert path.read_text() == "the old picture"
    assert os.listdir(tmp_path) == ["x.png"]


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.png.txt"])
def test_other_extensions_are_refused(tmp_path, name):
    for draw in (
        lambda path: compare(ROWS["one"], path),
        lambda path: training_curve(CURVES["dense"], path),
        lambda path: draw_iterations(iteration_lines(ITERATIONS["one point"]), path),
    ):
        with pytest.raises(ValueError, match=r"\.png or \.svg"):
            draw(str(tmp_path / name))
    assert not os.listdir(tmp_path)


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match="pip install matplotlib"):
        compare(ROWS["one"], str(tmp_path / "x.png"))
