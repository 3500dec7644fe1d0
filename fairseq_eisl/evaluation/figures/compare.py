"""Systems beside each other: bars of their scores."""

import math
from typing import Dict, NamedTuple, Sequence, Tuple

from ...common.rows import Row
from ..short_names import shown
from .canvas import (
    COLOURS,
    LONGEST_TICK,
    WIDTH,
    canvas,
    check_extension,
    coloured,
    describe,
    error_bar,
    name_it,
    reference_line,
    say_spread,
    seed_dots,
    slanted,
    spread,
    value_on,
)
from .collect import Ends, known_intervals
from .comparison import Comparison, compare_rows

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


def compare(rows: Sequence[Row], path: str, tests: Sequence[Row] = ()) -> None:
    """Bars of BLEU, repetition rate and length ratio, one colour a system, groups by noise.

    Columns needed: system, test_set, seed, bleu, bleu_signature, repetition,
    length_ratio; used if there: noise, repetition_reference. With several seeds a
    bar is their mean, each dot a seed, and the error bar goes from the least to the largest;
    with one it is the interval that ``tests``, rows of ``significance``, know of its BLEU.
    PNG or SVG, by the extension of ``path``.

    Raises:
        ValueError: see :func:`comparison.compare_rows`; too many bars; a wrong extension.
    """
    check_extension(path)
    data = compare_rows(rows)
    sure = known_intervals(rows, tests, data.seeds, lambda r: (r["system"], r.get("noise", "")))
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
        describe(figure, axes[:1], [data.test_set, seeds], f"BLEU: {data.signature}")


def _draw_bars(axis, panel: _Panel, data: Comparison, sure: Dict[Tuple[str, str], Ends]) -> None:
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
            seed_dots(axis, x, seeds, above=6)
            low, high = spread(seeds, sure.get((system, setting)))
            error_bar(axis, x, mean, low, high)
            value_on(
                axis,
                (x, max(high, mean if known else 0.0)),
                f"{mean:.{panel.digits}f}" if known else "n/a",
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
        reference_line(axis, panel.unit, value)


def _name_settings(axis, names: Sequence[str], inches: float) -> None:
    """Names below the groups, slanted where they would run into each other."""
    axis.set_xticks(range(len(names)), names)
    if any(names):
        axis.set_xlabel("noise")
    if slanted(names, inches):
        axis.tick_params(axis="x", labelrotation=30)
        for label in axis.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
