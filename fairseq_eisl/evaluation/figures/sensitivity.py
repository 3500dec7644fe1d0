"""How losses grow with edits of the targets, from rows of ``analyses sensitivity``."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ...common.rows import Row
from ..row_checks import number
from ..short_names import shown, spoken
from .canvas import (
    COLOURS,
    GRID,
    MARKERS,
    check_extension,
    coloured,
    describe,
    error_bar,
    name_it,
    panels,
    say_spread,
)
from .collect import by_seed, check_analysis, mean, said_of, values_of
from .noise import LEVEL_UNITS, level_places
from .noise_levels import split_noise

_NEEDED = ("system", "noise", "seed", "share")


class Sensitivity(NamedTuple):
    """panels[type of noise][system][level]: one share a seed."""

    panels: Dict[str, Dict[str, Dict[float, List[float]]]]
    seeds: List[str]
    about: List[str]


def sensitivity_values(rows: Sequence[Row]) -> Sensitivity:
    """Collect rows by noise, system and seed; of those with the same three the last one counts.

    Raises:
        ValueError: a column is missing, a noise that is no ``type:level``, unequal seeds, or rows
            of several checkpoints.
    """
    check_analysis(rows, _NEEDED, same=("checkpoint",))
    seeds = values_of(rows, "seed")
    found: Dict[Tuple[str, float, str], Dict[str, float]] = {}
    for row in rows:
        kind, level = split_noise(row["noise"])
        if kind:
            point = kind, level, row["system"]
            found.setdefault(point, {})[row["seed"]] = number(row, "share")
    if not found:
        raise ValueError("no row has a noise: there is no level to draw against")
    points = by_seed(found, seeds, lambda point: f"{point[2]} at {point[0]}:{point[1]:g}")
    kinds = dict.fromkeys(kind for kind, _, _ in points)
    panels: Dict[str, Dict[str, Dict[float, List[float]]]] = {kind: {} for kind in kinds}
    for (kind, level, system), values in points.items():
        at = panels[kind].setdefault(system, {0.0: [0.0] * len(seeds)})  # clean is 0 by definition
        at[level] = values
    return Sensitivity(panels, seeds, said_of(rows[-1]))


def draw_sensitivity(data: Sensitivity, path: str) -> None:
    """A panel a type of noise, a line a loss: its mean over the seeds.

    Raises:
        ValueError: too many losses for the colours, or a wrong extension.
    """
    check_extension(path)
    systems = list(dict.fromkeys(name for lines in data.panels.values() for name in lines))
    coloured(systems)
    count = len(data.panels)
    across = 2 if count == 4 else min(3, count)
    with panels(path, count, across) as (figure, axes):
        for axis, (kind, lines) in zip(axes, data.panels.items()):
            place = level_places(axis, sorted({level for at in lines.values() for level in at}))
            for name, at in lines.items():
                levels = sorted(at)
                look: Dict[str, Any] = {"linewidth": 1.8, "markersize": 5}
                place_of = systems.index(name)
                look.update(color=COLOURS[place_of], marker=MARKERS[place_of])
                xs, means = [place[x] for x in levels], [mean(at[x]) for x in levels]
                name_it(axis.plot(xs, means, **look)[0], name)
                for level in levels if len(data.seeds) > 1 else ():
                    low, high = min(at[level]), max(at[level])
                    error_bar(axis, place[level], mean(at[level]), low, high)
            axis.set_title(shown(spoken(kind), 60 // across), loc="left")
            axis.set_xlabel(LEVEL_UNITS.get(kind, "level"))
            axis.axhline(0, color="black", linewidth=0.8)
            axis.grid(**GRID)
        for axis in axes[::across]:
            axis.set_ylabel("growth of the loss\n(1: another sentence)")
        note = "growth: 0 for a clean target, 1 for that of another sentence of like length"
        describe(figure, axes, [*data.about, say_spread(data.seeds, False, "line: mean")], note)
