"""What all pictures share: the canvas and its file, colours, names, title, legend, error bars."""

import contextlib
import logging
import os
import textwrap
import warnings
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ...common.files import whole_file
from ...common.matplotlib_check import why_no_pictures
from ...common.run_files import MOST_SYSTEMS
from ..short_names import columns_of, glossary, shown

_LOG = logging.getLogger(__name__)
EXTENSIONS = (".png", ".svg")
# Okabe and Ito's palette: told apart by the colour-blind, and by lightness in grey. Then, with
# markers of their own, colours that are told apart less well, from Tol's muted one.
COLOURS = (
    *("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000"),
    *("#CC6677", "#999933", "#6699CC", "#44AA99", "#DDCC77", "#AA4499", "#888888"),
)
assert len(COLOURS) == MOST_SYSTEMS
MARKERS = "os^Dv<>PX*hdp8"
_STYLE: Dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a name with $ is no formula
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
    "svg.hashsalt": "fairseq_eisl",  # the same rows give the same file
}
_FONT = "DejaVu Sans"  # comes with matplotlib
_FURTHER_FONTS = (  # where they are installed, for writing that the first one lacks
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Zen Hei"),
    *("Microsoft YaHei", "PingFang SC", "Noto Sans Arabic", "Noto Sans Hebrew"),
    *("Noto Sans Devanagari", "Noto Sans Thai", "Arial Unicode MS", "Noto Emoji", "Symbola"),
)
WIDTH = 8.0  # inches: 800 pixels at 100 a inch, PNG has twice as many
_DPI = 200
CHARACTER = 0.08  # inches, generous
_LONGEST_TITLE = 150  # characters
_LONGEST_NAME = 76
LONGEST_TICK = 28
GRID: Dict[str, Any] = {"axis": "y", "color": "#dddddd", "linewidth": 0.6}


def write_title(figure, text: str) -> None:
    """Above everything, broken into lines."""
    lines = _wrapped(shown(text, _LONGEST_TITLE), 76)
    figure.suptitle("\n".join(lines), fontsize=12, x=0.01, ha="left")


def describe(
    figure, axes: Sequence[Any], about: Sequence[str], note: str, otherwise: str = ""
) -> None:
    """The title from what is known of ``about`` (``otherwise`` where nothing is), the legend."""
    write_title(figure, ", ".join(filter(None, about)) or otherwise)
    write_legend(figure, axes, note)


def write_legend(figure, axes: Sequence[Any], note: str = "", names: Sequence[str] = ()) -> None:
    """Below everything, as many columns as fit, under a small note; each name once.

    The note spells out the short ones of the names and of ``names``.
    """
    handles = named_handles(axes)
    notes = list(filter(None, [note, glossary([*handles, *names])]))
    labels = ["\n".join(_wrapped(shown(name, _LONGEST_NAME), 80)) for name in handles]
    widest = max((columns_of(line) for label in labels for line in label.split("\n")), default=1)
    across = int((WIDTH - 0.2) / (widest * CHARACTER + 0.6))
    legend = figure.legend(
        list(handles.values()),
        [str(i) for i in range(len(labels))],  # matplotlib drops labels that begin with _
        loc="outside lower left",
        ncols=max(1, min(across, len(labels))),
        frameon=False,
        title="\n".join(line for text in notes for line in textwrap.wrap(text, 125)),
        title_fontsize=8,
        alignment="left",
    )
    for text, label in zip(legend.get_texts(), labels):
        text.set_text(label)


def named_handles(axes: Sequence[Any]) -> Dict[str, Any]:
    """What the legend explains: by name the first line or bar that :func:`name_it` has named."""
    handles: Dict[str, Any] = {}
    for axis in axes:
        for artist in (*axis.lines, *axis.containers):
            name = getattr(artist, "system_name", None)
            if name is not None:
                handles.setdefault(name, artist)
    return handles


def name_it(artist, name: str) -> None:
    """Put a line or bars into the legend under ``name``, whatever it begins with."""
    artist.system_name = name
    artist.set_label(name)


def error_bar(axis, place: float, mean: float, low: float, high: float, flat: bool = False) -> None:
    """A line from ``low`` to ``high`` at ``place``; none where they are one or unknown."""
    if low < high:
        ends = [[max(mean - low, 0.0)], [max(high - mean, 0.0)]]
        style: Dict[str, Any] = {"ecolor": "black", "elinewidth": 1.2, "zorder": 4}
        style["xerr" if flat else "yerr"] = ends
        axis.errorbar(*([mean], [place]) if flat else ([place], [mean]), fmt="none", **style)


def seed_dots(axis, place: float, seeds: Sequence[float], above: Optional[float] = None) -> None:
    """A dot a seed at ``place``, where there are several."""
    if len(seeds) > 1:
        style: Dict[str, Any] = {} if above is None else {"zorder": above}
        axis.plot([place] * len(seeds), seeds, "o", color="black", markersize=3, **style)


def value_on(axis, place: Tuple[float, float], text: str, **style: Any) -> None:
    """A number on top of a bar that ends at ``place``."""
    look = {"xytext": (0, 4), "textcoords": "offset points", "ha": "center", "fontsize": 9}
    axis.annotate(text, place, **{**look, **style})


def spread(seeds: Sequence[float], known: Optional[Tuple[float, float]]) -> Tuple[float, float]:
    """The ends of an error bar: of several seeds the least and the largest, else ``known``."""
    if len(seeds) > 1:
        return min(seeds), max(seeds)
    return known or (seeds[0], seeds[0])


def say_spread(
    seeds: Sequence[str], intervals: bool, shapes: str, spread: str = "error bar"
) -> str:
    """Title's words for the seeds, for the ``shapes`` of their mean, and for the error bars."""
    if len(seeds) > 1:
        return f"seeds {', '.join(seeds)} ({shapes}, {spread}: least to largest)"
    seed = f"seed {seeds[0]}" if seeds[0] else ""
    bars = "error bar: 95 % interval over the test sentences"
    return f"{seed} ({bars})".strip() if intervals else seed


def bleu_axis(axis) -> None:
    """Name the axis of BLEU by what it shows: one that is cut off says so."""
    axis.set_ylabel("BLEU" if axis.get_ylim()[0] == 0 else "BLEU\n(axis not from 0)")


def reference_line(axis, unit: str, value: float) -> None:
    """A dashed line at the value of the reference itself, named on the axis."""
    axis.axhline(value, color="black", linestyle=(0, (4, 3)), linewidth=1)
    axis.set_ylim(top=max(axis.get_ylim()[1], value * 1.15))
    axis.set_ylabel(f"{unit}\n(dashed: reference, {value:g})")


def slanted(names: Sequence[str], inches: float) -> bool:
    """Would names below an axis run into each other?"""
    longest = max(columns_of(line) for name in names for line in name.split("\n"))
    return longest * CHARACTER > inches / len(names)


def _wrapped(text: str, width: int) -> List[str]:
    """Lines of at most about ``width`` small letters."""
    wide = columns_of(text) / max(len(text), 1)
    return textwrap.wrap(text, max(int(width / wide), 1)) or [""]


def check_extension(path: str) -> None:
    """Raises ValueError: the extension of ``path`` is neither .png nor .svg."""
    if os.path.splitext(path)[1].lower() not in EXTENSIONS:
        raise ValueError(f"{path}: a picture ends in {' or '.join(EXTENSIONS)}")


def check_picture(path: str) -> None:
    """Before any work: can a picture be drawn, and into this file?

    Raises:
        ValueError: matplotlib is missing or broken, or see :func:`check_extension`.
    """
    check_extension(path)
    reason = why_no_pictures()
    if reason:
        raise ValueError(reason)


@contextlib.contextmanager
def canvas(path: str, size) -> Iterator[Any]:
    """A figure that is written to ``path``, whole, when the block ends well.

    Raises:
        ValueError: see :func:`check_picture`.
    """
    check_picture(path)
    import matplotlib
    from matplotlib.figure import Figure

    kind = os.path.splitext(path)[1][1:].lower()
    with matplotlib.rc_context({**_STYLE, "font.family": _fonts()}), _missing_letters():
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        metadata = {"Date": None} if kind == "svg" else {}  # no date: the same rows, the same file
        with whole_file(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=_DPI, metadata=metadata)


@contextlib.contextmanager
def panels(path: str, count: int, across: int) -> Iterator[Tuple[Any, Sequence[Any]]]:
    """A :func:`canvas` of ``count`` panels with one vertical axis, and their axes."""
    down = -(-count // across)
    with canvas(path, (WIDTH, 1.2 + 2.8 * down)) as figure:
        axes = figure.subplots(down, across, sharey=True, squeeze=False).flatten()
        for axis in axes[count:]:
            axis.set_visible(False)
        yield figure, axes[:count]


@contextlib.contextmanager
def for_a_page() -> Iterator[None]:
    """Pictures of the block keep their texts as text: a browser has a font for every writing."""
    if why_no_pictures():
        yield
        return
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        yield


def _fonts() -> List[str]:
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [_FONT, *(name for name in _FURTHER_FONTS if name in installed)]


@contextlib.contextmanager
def _missing_letters() -> Iterator[None]:
    """One line for all letters that no font has, in place of one for each time they are drawn."""
    import matplotlib

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    missing = "Glyph "
    for warning in caught:
        if not str(warning.message).startswith(missing):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    letters = {str(w.message).split()[1] for w in caught if str(w.message).startswith(missing)}
    if letters and matplotlib.rcParams["svg.fonttype"] != "none":
        _LOG.warning("no font of this machine has %d letters of the names: boxes", len(letters))


def coloured(names: Sequence[str]) -> Mapping[str, str]:
    """A colour a system.

    Raises:
        ValueError: too many systems for the colours.
    """
    if len(names) > len(COLOURS):
        raise ValueError(f"{len(names)} systems, at most {len(COLOURS)} have a colour")
    return dict(zip(names, COLOURS))
