"""What all pictures share: the canvas and its file, colours, title and legend."""

import contextlib
import os
import textwrap
from typing import Any, Dict, Iterator, Sequence

from ..common.files import whole_file

EXTENSIONS = (".png", ".svg")
# Okabe and Ito's palette: told apart by the colour-blind, and by lightness in grey.
COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = "os^Dv<>"
_STYLE: Dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "fairseq_eisl",  # the same rows give the same file
}
WIDTH = 8.0  # inches: 800 pixels at 100 a inch, PNG has twice as many
_DPI = 200
CHARACTER = 0.08  # inches, generous


def write_title(figure, text: str) -> None:
    """Above everything, broken into lines."""
    figure.suptitle("\n".join(textwrap.wrap(text, 85)), fontsize=12, x=0.01, ha="left")


def write_legend(figure, axes: Sequence[Any], note: str = "") -> None:
    """Below everything, as many columns as fit, under a small note; each name once."""
    named: Dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            named.setdefault(textwrap.fill(label, 90), handle)
    handles, labels = list(named.values()), list(named)
    across = int((WIDTH - 0.2) / (max(map(len, labels)) * CHARACTER + 0.6))
    figure.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=max(1, min(across, len(labels))),
        frameon=False,
        title="\n".join(textwrap.wrap(note, 130)),
        title_fontsize=8,
        alignment="left",
    )


def check_extension(path: str) -> None:
    """:raises ValueError: the extension of ``path`` is neither .png nor .svg."""
    if os.path.splitext(path)[1].lower() not in EXTENSIONS:
        raise ValueError(f"{path}: a picture ends in {' or '.join(EXTENSIONS)}")


@contextlib.contextmanager
def canvas(path: str, size) -> Iterator[Any]:
    """A figure that is written to ``path``, whole, when the block ends well."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("pictures need matplotlib: pip install matplotlib") from None
    kind = os.path.splitext(path)[1][1:].lower()
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        metadata = {"Date": None} if kind == "svg" else {}  # no date: the same rows, the same file
        with whole_file(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=_DPI, metadata=metadata)
