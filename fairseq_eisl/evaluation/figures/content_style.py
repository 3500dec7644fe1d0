"""Content against style: BLEU to the sources over accuracy, a point a system."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ...common.rows import Row
from ..row_checks import check_one_way, number
from .canvas import (
    COLOURS,
    GRID,
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
    spread,
)
from .collect import Ends, by_seed, check_rows, known_intervals, mean, values_of

COLUMN, FACTOR, STYLE = "accuracy", "eisl_factor", "style_factor"
_NEEDED = ("system", "seed", "test_set", "bleu", "bleu_signature", COLUMN)
_SAME = ("test_set", "model", "accuracy_signature")


class ContentStyle(NamedTuple):
    """points[system]: (accuracy, BLEU) a seed. joined: lines of systems whose rows have a weight of
    EISL: those with one weight of it, by the weight of the style, where that differs, else all,
    by the weight of EISL. intervals: of the BLEU of one seed, by system, where it is known."""

    points: Dict[str, List[Tuple[float, float]]]
    joined: List[List[str]]
    seeds: List[str]
    test_set: str
    signature: str
    intervals: Dict[str, Ends]


def content_style(rows: Sequence[Row], tests: Sequence[Row] = ()) -> ContentStyle:
    """Collect rows by system and seed; of two with the same ones the last counts.

    ``tests``: rows of ``significance``, which know the intervals.

    Raises:
        ValueError: a column is missing or empty, a score or weight that is no number, unequal
            seeds, or rows of several test sets, classifiers or kinds of BLEU.
    """
    check_rows(rows, _NEEDED, same=[name for name in _SAME if any(row.get(name) for row in rows)])
    check_one_way(rows)
    found: Dict[str, Dict[str, Tuple[float, float]]] = {}
    weights: Dict[str, Tuple[float, float]] = {}
    for row in rows:
        point = number(row, COLUMN), number(row, "bleu")
        found.setdefault(row["system"], {})[row["seed"]] = point
        if row.get(FACTOR):
            style = number(row, STYLE) if row.get(STYLE) else 0.0
            weights[row["system"]] = number(row, FACTOR), style
    seeds = values_of(rows, "seed")
    return ContentStyle(
        by_seed(found, seeds, str),
        _lines(weights),
        seeds,
        rows[-1]["test_set"],
        rows[-1]["bleu_signature"],
        known_intervals(rows, tests, seeds, lambda row: row["system"]),
    )


def _lines(weights: Dict[str, Tuple[float, float]]) -> List[List[str]]:
    """The systems that a line joins, by their weights of EISL and of the style."""
    rising = sorted(weights, key=lambda system: weights[system])
    if len({style for _, style in weights.values()}) < 2:
        return [rising]
    factors = dict.fromkeys(weights[system][0] for system in rising)
    return [[name for name in rising if weights[name][0] == factor] for factor in factors]


def draw_content_style(data: ContentStyle, path: str) -> None:
    """A point a system, the mean of its seeds; those with weights are joined by lines.

    Up is content, right is style. With several seeds there are small points for them; with one,
    error bars are the intervals that are known of its BLEU.

    Raises:
        ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    coloured(list(data.points))
    with canvas(path, (WIDTH, 4.6)) as figure:
        axis = figure.subplots()
        means = {name: tuple(map(mean, zip(*seeds))) for name, seeds in data.points.items()}
        for names in data.joined:
            line = [means[name] for name in names]
            if len(line) > 1:
                axis.plot(*zip(*line), color="#888888", linewidth=1.4, zorder=1)
        for i, (name, (x, y)) in enumerate(means.items()):
            look: Dict[str, Any] = {"color": COLOURS[i], "markersize": 8, "zorder": 3}
            name_it(axis.plot([x], [y], MARKERS[i], **look)[0], name)
            low, high = spread([y for _, y in data.points[name]], data.intervals.get(name))
            error_bar(axis, x, y, low, high)
            if len(data.seeds) > 1:
                axis.plot(*zip(*data.points[name]), ".", color=COLOURS[i], zorder=2)
        axis.margins(0.12)
        axis.set_xlabel("accuracy of the style, %")
        bleu_axis(axis)
        axis.grid(**GRID)
        seeds = say_spread(data.seeds, bool(data.intervals), "point: mean, dot: one seed")
        note = f"BLEU to the sources: {data.signature}"
        describe(figure, [axis], [data.test_set, seeds], note, "Content against style")
