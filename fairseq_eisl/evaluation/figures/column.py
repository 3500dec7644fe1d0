"""BLEU against any column of the rows: an ablation, or the size of the training set."""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...common.rows import Row
from ..row_checks import check_one_way, number
from ..short_names import shown, spoken
from .canvas import (
    COLOURS,
    GRID,
    LONGEST_TICK,
    MARKERS,
    WIDTH,
    bleu_axis,
    canvas,
    check_extension,
    coloured,
    describe,
    error_bar,
    name_it,
    say_spread,
    seed_dots,
    slanted,
    spread,
    value_on,
)
from .collect import Ends, by_seed, check_rows, known_intervals, mean, noise_said, values_of

_NEEDED = ("system", "seed", "test_set", "bleu", "bleu_signature")
_SAME = (
    *("test_set", "noise", "arch", "model", "targets"),
    *("iterations", "length_candidates", "search"),
)
_TWINS = ("arch", "model")
"""Two names for one thing: where one is drawn against, the other differs, too."""


class ColumnValues(NamedTuple):
    """values[system][place]: one BLEU a seed, in the order of ``seeds[place]``.

    places: the values of the column; rising where all are numbers, else as they appear.
    numbers: these as numbers, None where one is none. intervals[system, place]: the 95 %
    interval of the BLEU of one seed, where it is known.
    """

    column: str
    places: List[str]
    numbers: Optional[List[float]]
    values: Dict[str, Dict[str, List[float]]]
    seeds: Dict[str, List[str]]
    test_set: str
    noise: str
    signature: str
    intervals: Dict[Tuple[str, str], Ends]


def column_values(rows: Sequence[Row], column: str, tests: Sequence[Row] = ()) -> ColumnValues:
    """Collect rows by ``column``, system and seed.

    Of rows with the same three the last one counts. ``tests``: rows of ``significance``,
    which know the intervals.

    Raises:
        ValueError: a column is missing or empty, one value only, a BLEU that is no number,
            unequal seeds, or rows that differ in more than ``column`` and are not to be compared.
            Bars stand beside each other at one place: there seeds are equal, and may be others at
            another place; along a line they are the same everywhere.
    """
    if rows and column in _NEEDED:
        raise ValueError(f"{column} is not a column to draw BLEU against")
    drawn = _TWINS if column in _TWINS else (column,)
    check_rows(rows, (*_NEEDED, column), same=[name for name in _SAME if name not in drawn])
    places = values_of(rows, column)
    if len(places) < 2:
        raise ValueError(f"{column} has one value, {places[0]!r}: nothing to draw against")
    try:
        numbers: Optional[List[float]] = sorted(map(float, places))
        places.sort(key=float)
    except ValueError:
        numbers = None
    every = values_of(rows, "seed")
    seeds = {
        place: every
        if numbers is not None
        else values_of([row for row in rows if row[column] == place], "seed")
        for place in places
    }
    found: Dict[Tuple[str, str], Dict[str, float]] = {}
    for row in rows:
        at = found.setdefault((row["system"], row[column]), {})
        at[row["seed"]] = number(row, "bleu")
    values: Dict[str, Dict[str, List[float]]] = {name: {} for name in values_of(rows, "system")}
    sure = known_intervals(rows, tests, every, lambda row: (row["system"], row[column]))
    for place in places:
        check_one_way([row for row in rows if row[column] == place])
        here = {point: of for point, of in found.items() if point[1] == place}
        scores = by_seed(here, seeds[place], lambda point: f"{point[0]} at {column} {point[1]}")
        for (system, _), of_seeds in scores.items():
            values[system][place] = of_seeds
    last = rows[-1]
    return ColumnValues(
        column,
        places,
        numbers,
        values,
        seeds,
        last["test_set"],
        last.get("noise", ""),
        last["bleu_signature"],
        sure,
    )


def draw_column(data: ColumnValues, path: str) -> None:
    """Lines over numbers (a logarithmic axis where they span more than a factor of ten), bars
    beside each other over anything else; the mean of several seeds, which are dots, with error
    bars from the least to the largest; with one seed they are the interval.

    Raises:
        ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    coloured(list(data.values))
    with canvas(path, (WIDTH, 4.2)) as figure:
        axis = figure.subplots()
        bars = data.numbers is None
        (_bars if bars else _lines)(axis, data)
        axis.set_xlabel(shown(spoken(data.column), 80))
        scores = [score for at in data.values.values() for s in at.values() for score in s]
        top = max([*scores, *(high for _, high in data.intervals.values())])
        axis.set_ylim(0, 1.12 * top if top > 0 else 1.0)
        bleu_axis(axis)
        axis.grid(**GRID)
        axis.set_axisbelow(True)
        shape = "bar" if bars else "line"
        every = list(dict.fromkeys(seed for of in data.seeds.values() for seed in of))
        seeds = say_spread(every, bool(data.intervals), f"{shape}: mean, dot: one seed")
        about = [data.test_set, noise_said(data.noise), seeds]
        describe(figure, [axis], about, f"BLEU: {data.signature}")


def _lines(axis, data: ColumnValues) -> None:
    at = dict(zip(data.places, data.numbers or ()))
    for i, (system, scores) in enumerate(data.values.items()):
        places = [place for place in data.places if place in scores]
        xs = [at[place] for place in places]
        look: Dict[str, Any] = {"color": COLOURS[i], "linewidth": 1.8, "markersize": 5}
        means = [mean(scores[place]) for place in places]
        name_it(axis.plot(xs, means, marker=MARKERS[i], **look)[0], system)
        for x, place, height in zip(xs, places, means):
            low, high = spread(scores[place], data.intervals.get((system, place)))
            error_bar(axis, x, height, low, high)
        for x, place in zip(xs, places):
            seed_dots(axis, x, scores[place])
    low, high = min(at.values()), max(at.values())
    if low > 0 and high > 10 * low:
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter("")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}")
    shown = [x for x in at.values() if math.isfinite(x)]
    if len(shown) <= 8:
        axis.set_xticks(shown, [f"{x:,g}" if x < 1e5 else f"{x:,.0f}" for x in shown])
        axis.minorticks_off()


def _bars(axis, data: ColumnValues) -> None:
    width = 0.8 / len(data.values)
    for i, (system, scores) in enumerate(data.values.items()):
        for j, place in enumerate(data.places):
            if place not in scores:
                continue
            x = j + (i - (len(data.values) - 1) / 2) * width
            style = {"color": COLOURS[i], "edgecolor": "black", "linewidth": 0.6, "zorder": 2}
            height = mean(scores[place])
            name_it(axis.bar(x, height, width * 0.92, **style), system)
            seed_dots(axis, x, scores[place], above=3)
            low, high = spread(scores[place], data.intervals.get((system, place)))
            error_bar(axis, x, height, low, high)
            crowded = len(data.values) * len(data.places) > 16
            value_on(axis, (x, high), f"{height:.1f}", rotation=90 if crowded else 0)
    names = [shown(place, LONGEST_TICK) for place in data.places]
    if len({tuple(of) for of in data.seeds.values()}) > 1:
        told = [data.seeds[place] for place in data.places]
        words = [f"seed{'s' if len(of) > 1 else ''} {', '.join(of)}" for of in told]
        names = [f"{name}\n({of})" for name, of in zip(names, words)]
    axis.set_xticks(range(len(names)), names)
    if slanted(names, 7.0):
        axis.tick_params(axis="x", labelrotation=30)
