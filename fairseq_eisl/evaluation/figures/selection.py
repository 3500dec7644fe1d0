"""The weights of the position selection as heat maps, from rows of ``analyses selection``."""

import json
from typing import List, NamedTuple, Sequence

from ...common.rows import Row
from ..short_names import shown
from .canvas import LONGEST_TICK, WIDTH, canvas, check_extension, write_title
from .collect import check_analysis, said_of

_NEEDED = ("n", "noise", "agreement", "mass", "known", "candidate")
_EXAMPLE = ("example_target", "example_candidate", "example_weights", "example_truth")
_MOST = 6  # heat maps that a page has room for
_ACROSS = 3


class HeatMap(NamedTuple):
    """weights[n-gram][place], and which places are true, of one sentence."""

    n: int
    title: str
    grams: List[str]
    places: List[str]
    weights: List[List[float]]
    truth: List[List[int]]


class Selections(NamedTuple):
    maps: List[HeatMap]
    about: List[str]
    candidate: str


def selection_values(rows: Sequence[Row]) -> Selections:
    """Collect rows by checkpoint and order; of those with the same two the last one counts.

    Raises:
        ValueError: a column is missing, rows of several noises or data, or too many heat maps.
    """
    check_analysis(rows, (*_NEEDED, *_EXAMPLE), same=("noise", "seed", "candidate"))
    last = {(row["n"], row["checkpoint"]): row for row in rows}
    if len(last) > _MOST:
        raise ValueError(f"{len(last)} heat maps, there is room for {_MOST}")
    maps = [_map(last[key]) for key in sorted(last, key=lambda key: int(key[0]))]
    about = [*said_of(rows[-1])[:-1], f"noise {rows[-1]['noise']}"]
    return Selections(maps, about, rows[-1]["candidate"])


def _map(row: Row) -> HeatMap:
    place = f"checkpoint {row['checkpoint']}, n {row['n']}"
    if not all(row.get(name) for name in _EXAMPLE):
        raise ValueError(f"a row has no example: {place}")
    target, candidate, weights, truth = (json.loads(row[name]) for name in _EXAMPLE)
    if not weights or not weights[0]:
        raise ValueError(f"the example is too short for its n-grams: {place}; choose another one")
    n = int(row["n"])
    agree = f"{100 * float(row['agreement']):.0f} % agree" if row["agreement"] else "none known"
    return HeatMap(
        n,
        f"{row['checkpoint']}, n = {n}:\n{agree}",
        [" ".join(target[i : i + n]) for i in range(len(target) - n + 1)],
        [" ".join(candidate[i : i + n]) for i in range(len(candidate) - n + 1)],
        weights,
        truth,
    )


def draw_selection(data: Selections, path: str) -> None:
    """A heat map a model and order: n-grams of the target against places of the candidate.

    Raises:
        ValueError: a wrong extension.
    """
    check_extension(path)
    per_order = max(
        1, len(data.maps) // len({heat.title.split("n = ")[1][0] for heat in data.maps})
    )
    across = min(_ACROSS, per_order)
    down = -(-len(data.maps) // across)
    most = max(max(len(heat.grams), len(heat.places)) for heat in data.maps)
    with canvas(path, (WIDTH, 1.4 + down * max(3.2, 0.9 + 0.19 * most))) as figure:
        axes = figure.subplots(down, across, squeeze=False).flatten()
        for axis in axes[len(data.maps) :]:
            axis.set_visible(False)
        for axis, heat in zip(axes, data.maps):
            cells = [list(column) for column in zip(*heat.weights)]  # places down, n-grams across
            image = axis.imshow(cells, cmap="Blues", vmin=0, vmax=1, aspect="auto")
            true = [
                (s, t) for s, line in enumerate(heat.truth) for t, yes in enumerate(line) if yes
            ]
            if true:
                look = {"marker": "s", "s": 36, "facecolors": "none", "edgecolors": "#D55E00"}
                axis.scatter(*zip(*true), **look)
            _ticks(axis, heat)
            axis.set_title(heat.title, loc="left", fontsize=10)
        figure.colorbar(image, ax=list(axes[: len(data.maps)]), label="weight q", shrink=0.8)
        write_title(figure, ", ".join(data.about))
        what = "the clean target" if data.candidate == "target" else "the model's greedy output"
        figure.supxlabel(
            f"across: n-grams of the noisy target; down: places of the candidate, {what}; "
            "square: the candidate\nsays the n-gram there; agree: the largest weight lies on such "
            "a place, over all sentences",
            fontsize=8,
            x=0.01,
            ha="left",
            multialignment="left",
        )


def _ticks(axis, heat: HeatMap) -> None:
    for names, ticks, turned in (
        (heat.grams, axis.set_xticks, {"rotation": 90}),
        (heat.places, axis.set_yticks, {}),
    ):
        ticks(
            range(len(names)), [shown(name, LONGEST_TICK) for name in names], fontsize=8, **turned
        )
    for side in ("top", "right"):
        axis.spines[side].set_visible(True)
