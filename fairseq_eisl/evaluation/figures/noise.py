"""BLEU against the level of noise as a picture."""

import math
from typing import Any, Dict, Sequence

from ..short_names import shown, spoken
from .canvas import (
    COLOURS,
    GRID,
    MARKERS,
    bleu_axis,
    check_extension,
    coloured,
    describe,
    error_bar,
    name_it,
    panels,
    say_spread,
    spread,
)
from .collect import mean
from .noise_levels import Levels, NoiseLevels

_MOST_NAMES = 5  # of levels below a panel, or they run into each other
LEVEL_UNITS = {  # of the types of noise that there are; another one has a plain level
    "shuffle": "swaps a sentence",
    "synthetic": "level, each of 5 %",
    "synthetic_released": "level, each of 5 %",
    **dict.fromkeys(("repeat", "blank", "drop", "substitute", "insert"), "probability a word"),
}
_OURS: Dict[str, Any] = {"linewidth": 1.8, "markersize": 5}
_PAPER: Dict[str, Any] = {
    "linewidth": 1.2,
    "markersize": 5,
    "linestyle": "--",
    "alpha": 0.55,
    "markerfacecolor": "none",
    "zorder": 1,  # below ours
}


def noise(data: NoiseLevels, path: str) -> None:
    """One panel a type of noise, one line a system: its mean over the seeds.

    Error bars go from the least seed to the largest; with one seed they are the interval.
    What a paper printed is dashed and faint, in the colour of the system of that name.

    Raises:
        ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    groups = (data.panels, data.published)
    systems = list(dict.fromkeys(n for group in groups for lines in group.values() for n in lines))
    coloured(systems)
    count = len(data.panels)
    across = 2 if count == 4 else min(3, count)
    with panels(path, count, across) as (figure, axes):
        for axis, kind in zip(axes, data.panels):
            ours, theirs = data.panels[kind], data.published.get(kind, {})
            both = [*ours.values(), *theirs.values()]
            place = level_places(axis, sorted({level for line in both for level in line.levels}))
            for name, line in ours.items():
                _draw(axis, place, line, systems.index(name), name, _OURS)
                for level, seeds in zip(*line):
                    low, high = spread(seeds, data.intervals.get((kind, level, name)))
                    error_bar(axis, place[level], mean(seeds), low, high)
            for name, line in theirs.items():
                _draw(axis, place, line, systems.index(name), f"{name}, paper", _PAPER)
            axis.set_title(shown(spoken(kind), 60 // across), loc="left")
            axis.set_xlabel(LEVEL_UNITS.get(kind, "level"))
            axis.grid(**GRID)
        top = max(axis.dataLim.y1 for axis in axes)
        axes[0].set_ylim(0, 1.06 * top if top > 0 else 1.0)
        for axis in axes[::across]:
            bleu_axis(axis)
        bars = say_spread(data.seeds, bool(data.intervals), "line: mean")
        note = f"BLEU: {data.signature}"
        if any(data.published.values()):
            note += "; paper: as printed there, a BLEU of its own"
        describe(figure, axes, [data.test_set, bars], note)


def _draw(
    axis, place: Dict[float, float], line: Levels, number: int, name: str, look: Dict[str, Any]
) -> None:
    xs = [place[level] for level in line.levels]
    look = {**look, "color": COLOURS[number], "marker": MARKERS[number]}
    name_it(axis.plot(xs, list(map(mean, line.values)), **look)[0], name)


def level_places(axis, levels: Sequence[float]) -> Dict[float, float]:
    """Where on the axis each level is; ``all`` comes after the largest number."""
    finite = [level for level in levels if math.isfinite(level)] or [0.0]
    end = finite[-1] * 1.25 or 1.0
    place = {level: level if math.isfinite(level) else end for level in levels}
    if math.inf in place:
        shown = finite[:: -(-len(finite) // _MOST_NAMES)]
        axis.set_xticks([*shown, end], [*(f"{level:g}" for level in shown), "all"])
    elif len(finite) == 1:
        axis.set_xticks(finite)
    low, high = min(place.values()), max(place.values())
    margin = 0.05 * (high - low or 1.0)
    axis.set_xlim(low - margin, high + margin)
    return place
