"""Pictures made from rows and training logs, legible at 800 pixels, colour-blind safe."""

import math
from typing import Any, Dict, NamedTuple, Sequence

from .comparison import Comparison, compare_rows
from .drawing import (
    CHARACTER,
    COLOURS,
    MARKERS,
    WIDTH,
    canvas,
    check_extension,
    write_legend,
    write_title,
)
from .iterations import Iterations
from .rows import Row
from .training_log import Curve

STARTS = ("best", "last", "zero")
MOST_BARS = 40


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
_ITERATION_PANELS = (*_PANELS[:2], _Panel("length_error", "Length error", "words", 1))


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
        raise ValueError(
            f"{bars} bars a panel are too many to read, at most {MOST_BARS}: pick rows"
        )
    if len(data.systems) > len(COLOURS):
        raise ValueError(f"{len(data.systems)} systems, at most {len(COLOURS)} have a colour")
    names = [name.replace(",", ",\n") for name in data.settings]
    wide = bars > 4 or _slant(names, 2.0)  # one panel a line
    with canvas(path, (WIDTH, 8.0 if wide else 4.0)) as figure:
        axes = figure.subplots(3, 1, sharex=True) if wide else figure.subplots(1, 3)
        for axis, panel in zip(axes, _PANELS):
            _draw_bars(axis, panel, data)
            _draw_reference(axis, panel, data)
            axis.set_title(panel.title, loc="left")
        for axis in axes[-1:] if wide else axes:
            _name_settings(axis, names, 7.0 if wide else 2.0)
        seeds = f"seed {data.seeds[0]}"
        if len(data.seeds) > 1:
            seeds = f"seeds {', '.join(data.seeds)} (bar: mean, dot: one seed)"
        write_title(figure, f"{data.test_set}, {seeds}")
        write_legend(figure, axes[:1], f"BLEU: {data.signature}")


def _draw_bars(axis, panel: _Panel, data: Comparison) -> None:
    width = 0.8 / len(data.systems)
    crowded = len(data.systems) * len(data.settings) > 16
    top = 0.0
    for i, system in enumerate(data.systems):
        for j, setting in enumerate(data.settings):
            x = j + (i - (len(data.systems) - 1) / 2) * width
            mean = data.mean(panel.metric, system, setting)
            known = not math.isnan(mean)
            style = {"color": COLOURS[i], "edgecolor": "black", "linewidth": 0.6}
            label = None if j else system
            axis.bar(x, mean if known else 0.0, width * 0.92, label=label, **style)
            seeds = data.values[panel.metric, system, setting] if known else [0.0]
            if len(seeds) > 1:
                axis.plot([x] * len(seeds), seeds, "o", color="black", markersize=3, zorder=6)
            axis.annotate(
                f"{mean:.{panel.digits}f}" if known else "n/a",
                (x, max(seeds)),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                rotation=90 if crowded else 0,
                fontsize=9 if len(data.settings) > 1 else 10,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=5,  # readable where the reference line passes
            )
            top = max(top, *seeds)
    axis.set_ylim(0, top * (1.35 if crowded else 1.15) if top > 0 else 1.0)
    axis.set_xlim(-0.6, len(data.settings) - 0.4)


def _draw_reference(axis, panel: _Panel, data: Comparison) -> None:
    """A dashed line at the value of the reference itself; names the axis."""
    value = {"repetition": data.repetition_reference, "length_ratio": 1.0}.get(panel.metric)
    axis.set_ylabel(panel.unit)
    if value is not None:
        _draw_reference_line(axis, panel.unit, value)


def _draw_reference_line(axis, unit: str, value: float) -> None:
    axis.axhline(value, color="black", linestyle=(0, (4, 3)), linewidth=1)
    axis.set_ylim(top=max(axis.get_ylim()[1], value * 1.15))
    axis.set_ylabel(f"{unit}\n(dashed: reference, {value:g})")


def _name_settings(axis, names: Sequence[str], inches: float) -> None:
    """Names below the groups, slanted where they would run into each other."""
    axis.set_xticks(range(len(names)), names)
    if any(names):
        axis.set_xlabel("noise")
    if _slant(names, inches):
        axis.tick_params(axis="x", labelrotation=30)
        for label in axis.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def _slant(names: Sequence[str], inches: float) -> bool:
    longest = max(len(line) for name in names for line in name.split("\n"))
    return longest * CHARACTER > inches / len(names)


def iterations(data: Iterations, path: str) -> None:
    """BLEU, repetition rate and length error against refinement iterations, one line a system.

    With several seeds a line is their mean, in a band from the least to the largest.

    :raises ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    if len(data.lines) > len(COLOURS):
        raise ValueError(f"{len(data.lines)} systems, at most {len(COLOURS)} have a colour")
    with canvas(path, (WIDTH, 4.0)) as figure:
        axes = figure.subplots(1, 3)
        for axis, panel in zip(axes, _ITERATION_PANELS):
            for i, (name, line) in enumerate(data.lines.items()):
                values = [
                    [math.nan] if any(map(math.isnan, seeds)) else seeds
                    for seeds in line.values[panel.metric]
                ]
                style: Dict[str, Any] = {"color": COLOURS[i], "linewidth": 1.8, "markersize": 5}
                means = [sum(seeds) / len(seeds) for seeds in values]
                axis.plot(line.iterations, means, label=name, marker=MARKERS[i], **style)
                if len(data.seeds) > 1:
                    low, high = ([end(seeds) for seeds in values] for end in (min, max))
                    axis.fill_between(line.iterations, low, high, color=COLOURS[i], alpha=0.2)
            last = max(line.iterations[-1] for line in data.lines.values())
            axis.set_xlim(-0.03 * last - 0.2, last * 1.03 + 0.2)
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.set_xlabel("refinement iterations")
            axis.set_ylabel(panel.unit)
            axis.set_title(panel.title, loc="left")
            axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        for axis in axes[1:]:
            axis.set_ylim(0, max(1.08 * axis.dataLim.y1, 0.1))  # room for the highest marker
        if data.repetition_reference is not None:
            _draw_reference_line(axes[1], _PANELS[1].unit, data.repetition_reference)
        seeds = f"seed {data.seeds[0]}" if data.seeds[0] else ""
        if len(data.seeds) > 1:
            seeds = f"seeds {', '.join(data.seeds)} (line: mean, band: min to max)"
        noise = f"noise {data.noise}" if data.noise else ""
        known = ", ".join(filter(None, [data.test_set, noise, seeds]))
        write_title(figure, known or "Scores against refinement iterations")
        write_legend(figure, axes[:1], f"BLEU: {data.signature}")


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
    if start not in STARTS:
        raise ValueError(f"start must be one of {', '.join(STARTS)}, not {start!r}")
    if not curves:
        raise ValueError("no curves to draw")
    if len(curves) > len(COLOURS):
        raise ValueError(f"{len(curves)} curves, at most {len(COLOURS)} have a colour")
    with canvas(path, (WIDTH, 4.0)) as figure:
        axis = figure.subplots()
        offset, joint = 0, None
        for i, (name, curve) in enumerate(curves.items()):
            updates = [offset + u for u in curve.updates]
            best = curve.best()
            style: Dict[str, Any] = {"color": COLOURS[i], "linewidth": 1.8}
            if joint is not None:
                axis.plot([joint[0], updates[0]], [joint[1], curve.scores[0]], ":", **style)
            label = f"{name}: best {curve.scores[best]:.1f} at its update {curve.updates[best]:,}"
            marker = MARKERS[i]
            axis.plot(updates, curve.scores, label=label, marker=marker, markersize=5, **style)
            if start != "zero":
                at = best if start == "best" else -1
                offset, joint = updates[at], (updates[at], curve.scores[at])
        axis.set_xlabel("updates (optimiser steps)")
        axis.set_ylabel(f"validation {metric}" + (" (0 to 100)" if metric == "BLEU" else ""))
        axis.set_xlim(left=0)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        write_title(figure, title or f"Validation {metric} during training")
        write_legend(figure, [axis])
