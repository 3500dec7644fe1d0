"""BLEU against any column of the rows: an ablation, or the size of the training set."""

import math
from typing import Dict, List, NamedTuple, Optional, Sequence

from .comparison import bleu_kind, identity, number, only
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
from .rows import Row, check_columns

_NEEDED = ("system", "seed", "test_set", "bleu", "bleu_signature")
_SAME = ("test_set", "noise", "arch", "model", "iterations", "length_candidates", "targets")


class ColumnValues(NamedTuple):
    """values[system][place]: one BLEU a seed, in the order of ``seeds``.

    places: the values of the column; rising where all are numbers, else as they appear.
    numbers: these as numbers, None where one is none.
    """

    column: str
    places: List[str]
    numbers: Optional[List[float]]
    values: Dict[str, Dict[str, List[float]]]
    seeds: List[str]
    test_set: str
    noise: str
    signature: str


def column_values(rows: Sequence[Row], column: str) -> ColumnValues:
    """Collect rows by ``column``, system and seed.

    Of rows with the same three the last one counts.

    :raises ValueError: a column is missing or empty, one value only, a BLEU that is no number,
        unequal seeds, or rows that differ in more than ``column`` and are not to be compared.
    """
    if not rows:
        raise ValueError("no rows to draw")
    if column in _NEEDED:
        raise ValueError(f"{column} is not a column to draw BLEU against")
    check_columns(rows, (*_NEEDED, column))
    for row in rows:
        empty = [name for name in (*_NEEDED, column) if not row.get(name, "")]
        if empty:
            raise ValueError(f"a row has no {', '.join(empty)}: {identity(row)}")
    for name in _SAME:
        if name != column:
            only(name, [row.get(name, "") for row in rows])
    only("bleu_signature", [bleu_kind(row["bleu_signature"]) for row in rows])
    places = list(dict.fromkeys(row[column] for row in rows))
    if len(places) < 2:
        raise ValueError(f"{column} has one value, {places[0]!r}: nothing to draw against")
    try:
        numbers: Optional[List[float]] = sorted(map(float, places))
        places.sort(key=float)
    except ValueError:
        numbers = None
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    found: Dict[str, Dict[str, Dict[str, float]]] = {}
    for row in rows:
        at = found.setdefault(row["system"], {}).setdefault(row[column], {})
        at[row["seed"]] = number(row, "bleu")
    for system, at_place in found.items():
        for place, scores in at_place.items():
            lacking = ", ".join(seed for seed in seeds if seed not in scores)
            if lacking:
                where = f"{system} at {column} {place}"
                raise ValueError(f"{where} has no row for seed {lacking}, others have")
    return ColumnValues(
        column,
        places,
        numbers,
        {
            system: {place: [scores[seed] for seed in seeds] for place, scores in at.items()}
            for system, at in found.items()
        },
        seeds,
        rows[-1]["test_set"],
        rows[-1].get("noise", ""),
        rows[-1]["bleu_signature"],
    )


def draw_column(data: ColumnValues, path: str) -> None:
    """Lines over numbers (a logarithmic axis where they span more than a factor of ten), bars
    beside each other over anything else; the mean of several seeds, which are dots.

    :raises ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    if len(data.values) > len(COLOURS):
        raise ValueError(f"{len(data.values)} systems, at most {len(COLOURS)} have a colour")
    with canvas(path, (WIDTH, 4.2)) as figure:
        axis = figure.subplots()
        (_bars if data.numbers is None else _lines)(axis, data)
        axis.set_xlabel(data.column.replace("_", " "))
        axis.set_ylabel("BLEU (0 to 100)")
        top = max(score for at in data.values.values() for s in at.values() for score in s)
        axis.set_ylim(0, 1.12 * top if top > 0 else 1.0)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        seeds = f"seed {data.seeds[0]}"
        if len(data.seeds) > 1:
            seeds = f"seeds {', '.join(data.seeds)} (mean, dot: one seed)"
        noise = f"noise {data.noise}" if data.noise else ""
        write_title(figure, ", ".join(filter(None, [data.test_set, noise, seeds])))
        write_legend(figure, [axis], f"BLEU: {data.signature}")


def _lines(axis, data: ColumnValues) -> None:
    at = dict(zip(data.places, data.numbers or ()))
    for i, (system, scores) in enumerate(data.values.items()):
        places = [place for place in data.places if place in scores]
        xs = [at[place] for place in places]
        look = {"color": COLOURS[i], "marker": MARKERS[i], "linewidth": 1.8, "markersize": 5}
        axis.plot(xs, [_mean(scores[place]) for place in places], label=system, **look)
        if len(data.seeds) > 1:
            for x, place in zip(xs, places):
                axis.plot([x] * len(data.seeds), scores[place], "o", color="black", markersize=3)
    low, high = min(at.values()), max(at.values())
    if low > 0 and high > 10 * low:
        axis.set_xscale("log")
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
            first = next(name for name in data.places if name in scores)
            label = system if place == first else None
            axis.bar(x, _mean(scores[place]), width * 0.92, label=label, **style)
            if len(data.seeds) > 1:
                seeds = [x] * len(data.seeds)
                axis.plot(seeds, scores[place], "o", color="black", markersize=3, zorder=3)
            axis.annotate(
                f"{_mean(scores[place]):.1f}",
                (x, max(scores[place])),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                rotation=90 if len(data.values) * len(data.places) > 16 else 0,
            )
    axis.set_xticks(range(len(data.places)), data.places)
    if max(map(len, data.places)) * CHARACTER > 7.0 / len(data.places):
        axis.tick_params(axis="x", labelrotation=30)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
