"""Pictures made from rows, legible at 800 pixels, colour-blind safe."""

import math
from typing import Any, Dict, NamedTuple, Sequence, Tuple

from ..common.rows import Row
from .comparison import Comparison, compare_rows
from .drawing import (
    COLOURS,
    GRID,
    LONGEST_TICK,
    MARKERS,
    WIDTH,
    bleu_axis,
    canvas,
    check_extension,
    coloured,
    error_bar,
    name_it,
    say_spread,
    slanted,
    spread,
    write_legend,
    write_title,
)
from .intervals import interval
from .iterations import Iterations
from .short_names import shown

MOST_BARS = 40


class _Panel(NamedTuple):
    metric: str
    title: str
    unit: str
    digits: int


_PANELS = (
    _Panel("bleu", "BLEU", "BLEU", 1),
    _Panel("repetition", "Repeated words", "% of words", 1),
    _Panel("length_ratio", "Length", "words / reference words", 2),
)
_ITERATION_PANELS = (*_PANELS[:2], _Panel("length_error", "Length error", "words", 1))


def compare(rows: Sequence[Row], path: str, tests: Sequence[Row] = ()) -> None:
    """Bars of BLEU, repetition rate and length ratio, one colour a system, groups by noise.

    Columns needed: system, test_set, seed, bleu, bleu_signature, repetition,
    length_ratio; used if there: noise, repetition_reference. With several seeds a
    bar is their mean, each dot a seed, and the error bar goes from the least to the largest;
    with one it is the interval that ``tests``, rows of ``significance``, know of its BLEU.
    PNG or SVG, by the extension of ``path``.

    :raises ValueError: see :func:`comparison.compare_rows`; too many bars; a wrong extension.
    """
    check_extension(path)
    data = compare_rows(rows)
    sure = _intervals(rows, data, tests)
    bars = len(data.systems) * len(data.settings)
    if bars > MOST_BARS:
        raise ValueError(
            f"{bars} bars a panel are too many to read, at most {MOST_BARS}: pick rows"
        )
    coloured(data.systems)
    names = [shown(name, LONGEST_TICK).replace(",", ",\n") for name in data.settings]
    wide = bars > 4 or slanted(names, 2.0)  # one panel a line
    with canvas(path, (WIDTH, 8.0 if wide else 4.0)) as figure:
        axes = figure.subplots(3, 1, sharex=True) if wide else figure.subplots(1, 3)
        for axis, panel in zip(axes, _PANELS):
            _draw_bars(axis, panel, data, sure if panel.metric == "bleu" else {})
            _draw_reference(axis, panel, data)
            axis.set_title(panel.title, loc="left")
        for axis in axes[-1:] if wide else axes:
            _name_settings(axis, names, 7.0 if wide else 2.0)
        seeds = say_spread(data.seeds, bool(sure), "bar: mean, dot: one seed")
        write_title(figure, f"{data.test_set}, {seeds}")
        write_legend(figure, axes[:1], f"BLEU: {data.signature}")


_Ends = Tuple[float, float]


def _intervals(
    rows: Sequence[Row], data: Comparison, tests: Sequence[Row]
) -> Dict[Tuple[str, str], _Ends]:
    """The 95 % interval by system and noise, where there is one seed and a test knows it."""
    found = {}
    for row in rows if len(data.seeds) == 1 else ():
        known = interval(row, tests)
        if known is not None:
            found[row["system"], row.get("noise", "")] = known.low, known.high
    return found


def _draw_bars(axis, panel: _Panel, data: Comparison, sure: Dict[Tuple[str, str], _Ends]) -> None:
    width = 0.8 / len(data.systems)
    crowded = len(data.systems) * len(data.settings) > 16
    top = 0.0
    for i, system in enumerate(data.systems):
        for j, setting in enumerate(data.settings):
            x = j + (i - (len(data.systems) - 1) / 2) * width
            mean = data.mean(panel.metric, system, setting)
            known = not math.isnan(mean)
            style = {"color": COLOURS[i], "edgecolor": "black", "linewidth": 0.6}
            name_it(axis.bar(x, mean if known else 0.0, width * 0.92, **style), system)
            seeds = data.values[panel.metric, system, setting] if known else [0.0]
            if len(seeds) > 1:
                axis.plot([x] * len(seeds), seeds, "o", color="black", markersize=3, zorder=6)
            low, high = spread(seeds, sure.get((system, setting)))
            error_bar(axis, x, mean, low, high)
            axis.annotate(
                f"{mean:.{panel.digits}f}" if known else "n/a",
                (x, max(high, mean if known else 0.0)),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                rotation=90 if crowded else 0,
                fontsize=9 if len(data.settings) > 1 else 10,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                zorder=5,  # readable where the reference line passes
            )
            top = max(top, high)
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
    if slanted(names, inches):
        axis.tick_params(axis="x", labelrotation=30)
        for label in axis.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def iterations(data: Iterations, path: str) -> None:
    """BLEU, repetition rate and length error against refinement iterations, one line a system.

    With several seeds a line is their mean, in a band from the least to the largest; with one,
    error bars are the intervals that are known of its BLEU.

    :raises ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    coloured(list(data.lines))
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
                name_it(axis.plot(line.iterations, means, marker=MARKERS[i], **style)[0], name)
                if len(data.seeds) > 1:
                    low, high = ([end(seeds) for seeds in values] for end in (min, max))
                    axis.fill_between(line.iterations, low, high, color=COLOURS[i], alpha=0.2)
                sure = data.intervals if panel.metric == "bleu" else {}
                for count, mean in zip(line.iterations, means):
                    if (name, count) in sure:
                        error_bar(axis, count, mean, *sure[name, count])
            last = max(line.iterations[-1] for line in data.lines.values())
            axis.set_xlim(-0.03 * last - 0.2, last * 1.03 + 0.2)
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.set_xlabel("refinement iterations")
            axis.set_ylabel(panel.unit)
            axis.set_title(panel.title, loc="left")
            axis.grid(**GRID)
        bleu_axis(axes[0])
        for axis in axes[1:]:
            axis.set_ylim(0, max(1.08 * axis.dataLim.y1, 0.1))  # room for the highest marker
        if data.repetition_reference is not None:
            _draw_reference_line(axes[1], _PANELS[1].unit, data.repetition_reference)
        seeds = say_spread(data.seeds, bool(data.intervals), "line: mean", "band")
        noise = f"noise {data.noise}" if data.noise else ""
        known = ", ".join(filter(None, [data.test_set, noise, seeds]))
        write_title(figure, known or "Scores against refinement iterations")
        write_legend(figure, axes[:1], f"BLEU: {data.signature}")
