"""Pictures made from rows and training logs, legible at 800 pixels, colour-blind safe."""

import math
import os
from typing import Any, Dict, List, NamedTuple, Sequence

from .comparison import Comparison, compare_rows
from .files import whole_file
from .rows import Row
from .training_log import Curve

EXTENSIONS = (".png", ".svg")
MOST_BARS = 40
# Okabe and Ito's palette: told apart by the colour-blind, and by lightness in grey.
_COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "fairseq_eisl",  # the same rows give the same file
}
_WIDTH = 8.0  # inches: 800 pixels at 100 a inch, PNG has twice as many
_DPI = 200


class _Panel(NamedTuple):
    metric: str
    title: str
    unit: str
    digits: int


_PANELS = (
    _Panel("bleu", "BLEU", "BLEU (0 to 100)", 1),
    _Panel("repetition", "Repeated words", "% of words", 1),
    _Panel("length_ratio", "Length", "words / reference words", 2),
)


def compare(rows: Sequence[Row], path: str) -> None:
    """Bars of BLEU, repetition rate and length ratio, one colour a system, groups by noise.

    Columns needed: system, test_set, seed, bleu, bleu_signature, repetition,
    length_ratio; used if there: noise, repetition_reference. With several seeds a
    bar is their mean and each dot a seed. PNG or SVG, by the extension of ``path``.

    :raises ValueError: see :func:`comparison.compare_rows`; too many bars; a wrong extension.
    """
    check_extension(path)
    data = compare_rows(rows)
    bars = len(data.systems) * len(data.settings)
    if bars > MOST_BARS:
        raise ValueError(f"{bars} bars a panel are too many to read, at most {MOST_BARS}: pick rows")
    if len(data.systems) > len(_COLOURS):
        raise ValueError(f"{len(data.systems)} systems, at most {len(_COLOURS)} have a colour")
    wide = bars > 6  # one panel a line
    with _figure(path, (_WIDTH, 7.6 if wide else 3.7)) as figure:
        axes = figure.subplots(3, 1) if wide else figure.subplots(1, 3)
        for axis, panel in zip(axes, _PANELS):
            _draw_panel(axis, panel, data, wide)
        seeds = f"seed{'s' * (len(data.seeds) > 1)} {', '.join(data.seeds)}"
        if len(data.seeds) > 1:
            seeds += " (bar: mean, dot: one seed)"
        figure.suptitle(f"{data.test_set}, {seeds}", fontsize=12, x=0.01, ha="left")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper right", ncols=len(labels), frameon=False
        )
        figure.supxlabel(
            f"BLEU: {data.signature}", fontsize=8, color="#555555", x=0.01, ha="left"
        )


def _draw_panel(axis, panel: _Panel, data: Comparison, wide: bool) -> None:
    width = 0.8 / len(data.systems)
    top = 0.0
    for i, system in enumerate(data.systems):
        for j, setting in enumerate(data.settings):
            x = j + (i - (len(data.systems) - 1) / 2) * width
            mean = data.mean(panel.metric, system, setting)
            seeds = data.values.get((panel.metric, system, setting), [])
            height = 0.0 if math.isnan(mean) else mean
            axis.bar(
                x,
                height,
                width * 0.92,
                color=_COLOURS[i],
                edgecolor="black",
                linewidth=0.6,
                label=system if j == 0 else None,
            )
            highest = height
            if len(seeds) > 1 and not math.isnan(mean):
                axis.plot([x] * len(seeds), seeds, "o", color="black", markersize=3.5, alpha=0.8)
                highest = max(seeds)
            axis.annotate(
                "n/a" if math.isnan(mean) else f"{mean:.{panel.digits}f}",
                (x, highest),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=9 if width * 3 < len(data.settings) else 10,
            )
            top = max(top, highest)
    line = {"repetition": data.repetition_reference, "length_ratio": 1.0}.get(panel.metric)
    if line is not None:
        axis.axhline(line, color="black", linestyle=(0, (4, 3)), linewidth=1)
        top = max(top, line)
    axis.set_ylim(0, top * 1.15 if top > 0 else 1.0)
    axis.set_xlim(-0.6, len(data.settings) - 0.4)
    axis.set_xticks(range(len(data.settings)), data.settings)
    axis.set_title(panel.title, loc="left")
    axis.set_ylabel(panel.unit)


def training_curve(
    curves: Dict[str, Curve], path: str, start: str = "best", title: str = "", metric: str = "BLEU"
) -> None:
    """Validation score against updates, one line a stage, each begun where the last one ended.

    ``curves``: stage name to curve, in training order. ``start``: a stage counts its
    updates from 0 and is drawn from the ``best`` or the ``last`` validation of the
    stage before, whichever checkpoint it was started from; with ``zero`` all start at 0.

    :raises ValueError: no curves, an unknown ``start``, or a wrong extension.
    """
    check_extension(path)
    if start not in ("best", "last", "zero"):
        raise ValueError(f"start must be best, last or zero, not {start!r}")
    if not curves:
        raise ValueError("no curves to draw")
    if len(curves) > len(_COLOURS):
        raise ValueError(f"{len(curves)} curves, at most {len(_COLOURS)} have a colour")
    with _figure(path, (_WIDTH, 4.0)) as figure:
        axis = figure.subplots()
        offset, joint = 0, None
        for i, (name, curve) in enumerate(curves.items()):
            updates = [offset + u for u in curve.updates]
            best = curve.best()
            style: Dict[str, Any] = {"color": _COLOURS[i], "linewidth": 1.8}
            if joint is not None:
                axis.plot([joint[0], updates[0]], [joint[1], curve.scores[0]], ":", **style)
            label = f"{name}: best {curve.scores[best]:.1f} at update {curve.updates[best]:,}"
            marker = "os^Dv<>"[i]
            axis.plot(updates, curve.scores, label=label, marker=marker, markersize=5, **style)
            if start != "zero":
                at = best if start == "best" else -1
                offset, joint = updates[at], (updates[at], curve.scores[at])
        axis.set_xlabel("updates (optimiser steps)")
        axis.set_ylabel(f"validation {metric}" + (" (0 to 100)" if metric == "BLEU" else ""))
        axis.set_xlim(left=0)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_title(title or f"Validation {metric} during training", loc="left")
        figure.legend(loc="outside lower left", ncols=min(len(curves), 2), frameon=False)


def check_extension(path: str) -> None:
    """:raises ValueError: the extension of ``path`` is neither .png nor .svg."""
    if os.path.splitext(path)[1].lower() not in EXTENSIONS:
        raise ValueError(f"{path}: a picture ends in {' or '.join(EXTENSIONS)}")


class _figure:
    """A figure that is written to ``path``, whole, when the block ends well."""

    def __init__(self, path: str, size):
        try:
            import matplotlib
            from matplotlib.figure import Figure
        except ImportError:
            raise ValueError("pictures need matplotlib: pip install matplotlib") from None
        self.path = path
        self.style = matplotlib.rc_context(_STYLE)
        self.make = lambda: Figure(figsize=size, layout="constrained")

    def __enter__(self):
        self.style.__enter__()
        self.figure = self.make()
        return self.figure

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                metadata: Dict[str, Any] = {}
                if self.path.lower().endswith(".svg"):
                    metadata["Date"] = None
                with whole_file(self.path) as temporary:
                    self.figure.savefig(temporary, dpi=_DPI, metadata=metadata)
        finally:
            self.style.__exit__(kind, error, trace)
