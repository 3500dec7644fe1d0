"""EISL by one forward against its exact value, from rows of ``analyses exact``."""

from typing import Dict, List, NamedTuple, Sequence

from ...common.rows import Row
from ..row_checks import number
from .canvas import COLOURS, GRID, MARKERS, WIDTH, canvas, check_extension, describe, name_it
from .collect import check_analysis, said_of

_VALUES = ("approximate", "exact", "difference_abs")
_COSTS = ("approximate_ms", "exact_ms")
_SYSTEMS = ("one forward", "exact")


class ExactValues(NamedTuple):
    """One number a checkpoint, updates rising; values in nats, costs in ms a sentence."""

    updates: List[int]
    approximate: List[float]
    exact: List[float]
    difference_abs: List[float]
    approximate_ms: List[float]
    exact_ms: List[float]
    about: List[str]


def exact_values(rows: Sequence[Row]) -> ExactValues:
    """Collect rows by updates; of those with the same number the last one counts.

    Raises:
        ValueError: a column is missing, rows of several losses, data or seeds, or of several models
            with as many updates, which are of several trainings.
    """
    check_analysis(rows, ("updates", "ngram", *_VALUES, *_COSTS), same=("ngram", "noise", "seed"))
    at: Dict[int, Row] = {}
    for row in rows:
        updates = int(number(row, "updates"))
        other = at.get(updates, row)
        models = other["checkpoint"], row["checkpoint"]
        # One model may have two names: the best checkpoint, and the last one.
        if models[0] != models[1] and any(other[name] != row[name] for name in _VALUES):
            raise ValueError(f"several models of {updates} updates: {', '.join(models)}; choose "
                             "those of one training, e.g. --where checkpoint=NAME")  # fmt: skip
        at[updates] = row
    chosen = [at[updates] for updates in sorted(at)]
    columns = {name: [number(row, name) for row in chosen] for name in (*_VALUES, *_COSTS)}
    last = chosen[-1]
    noise = last.get("noise", "none")
    about = [*said_of(last)[:-1], f"EISL {last['ngram']}"]
    about += [f"noise {noise}"] if noise not in ("", "none") else []
    return ExactValues(sorted(at), **columns, about=about)


def draw_exact(data: ExactValues, path: str) -> None:
    """Values, their difference and their cost, a panel each.

    Raises:
        ValueError: a wrong extension.
    """
    check_extension(path)
    with canvas(path, (WIDTH, 3.8)) as figure:
        axes = figure.subplots(1, 3)
        lines = dict(zip(_SYSTEMS, (data.approximate, data.exact)))
        for place, (name, values) in enumerate(lines.items()):
            look = {"color": COLOURS[place], "marker": MARKERS[place]}
            line = axes[0].plot(data.updates, values, linewidth=1.8, markersize=5, **look)[0]
            name_it(line, name)
        axes[1].plot(data.updates, data.difference_abs, "o-", color=COLOURS[2], linewidth=1.8)
        for axis, label in zip(axes, ("EISL (nats)", "mean absolute difference (nats)")):
            axis.set_ylabel(label)
            axis.set_xlabel("updates")
            axis.set_ylim(bottom=0)
            axis.xaxis.get_major_locator().set_params(nbins=4, integer=True)
            axis.grid(**GRID)
        costs = [sum(ms) / len(ms) for ms in (data.approximate_ms, data.exact_ms)]
        bars = axes[2].bar(range(2), costs, color=COLOURS[:2], edgecolor="black", linewidth=0.6)
        texts = [f"{cost:.0f}" if cost >= 100 else f"{cost:.3g}" for cost in costs]
        axes[2].bar_label(bars, texts, padding=2, fontsize=9)
        axes[2].set_xticks(range(2), _SYSTEMS)
        axes[2].set_yscale("log")
        axes[2].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes[2].yaxis.set_minor_formatter("")
        axes[2].margins(y=0.15)
        axes[2].set_ylabel("ms a sentence (log axis)")
        note = "exact: every n-gram conditioned on itself; of the same greedy candidates"
        describe(figure, axes, data.about, note)
