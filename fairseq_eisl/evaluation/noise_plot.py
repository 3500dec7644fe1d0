"""BLEU against the level of noise as a picture."""

import math
from typing import Any, Dict, Sequence

from .drawing import COLOURS, MARKERS, WIDTH, canvas, check_extension, write_legend, write_title
from .noise_levels import Levels, NoiseLevels

_MOST_NAMES = 5  # of levels below a panel, or they run into each other
_UNITS = {  # of the types of noise that there are; another one has a plain level
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

    What a paper printed is dashed and faint, in the colour of the system of that name.

    :raises ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    groups = (data.panels, data.published)
    systems = list(dict.fromkeys(n for group in groups for lines in group.values() for n in lines))
    if len(systems) > len(COLOURS):
        raise ValueError(f"{len(systems)} systems, at most {len(COLOURS)} have a colour")
    count = len(data.panels)
    across = 2 if count == 4 else min(3, count)
    down = -(-count // across)
    with canvas(path, (WIDTH, 1.2 + 2.8 * down)) as figure:
        axes = figure.subplots(down, across, sharey=True, squeeze=False).flatten()
        for axis in axes[count:]:
            axis.set_visible(False)
        for i, (axis, kind) in enumerate(zip(axes, data.panels)):
            ours, theirs = data.panels[kind], data.published.get(kind, {})
            lines = [*ours.values(), *theirs.values()]
            place = _places(axis, sorted({level for line in lines for level in line.levels}))
            for name, line in ours.items():
                _draw(axis, place, line, systems.index(name), {**_OURS, "label": name})
            for name, line in theirs.items():
                look = {**_PAPER, "label": f"{name}, paper"}
                _draw(axis, place, line, systems.index(name), look)
            axis.set_title(kind.replace("_", " "), loc="left")
            axis.set_xlabel(_UNITS.get(kind, "level"))
            axis.set_ylabel("" if i % across else "BLEU (0 to 100)")
            axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        top = max(axis.dataLim.y1 for axis in axes[:count])
        axes[0].set_ylim(0, 1.06 * top if top > 0 else 1.0)
        seeds = f"seed {data.seeds[0]}"
        if len(data.seeds) > 1:
            seeds = f"seeds {', '.join(data.seeds)} (line: mean)"
        write_title(figure, f"{data.test_set}, {seeds}")
        note = f"BLEU: {data.signature}"
        if any(data.published.values()):
            note += "; paper: as printed there, a BLEU of its own"
        write_legend(figure, axes[:count], note)


def _draw(axis, place: Dict[float, float], line: Levels, number: int, look: Dict[str, Any]) -> None:
    means = [sum(seeds) / len(seeds) for seeds in line.values]
    xs = [place[level] for level in line.levels]
    axis.plot(xs, means, color=COLOURS[number], marker=MARKERS[number], **look)


def _places(axis, levels: Sequence[float]) -> Dict[float, float]:
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
