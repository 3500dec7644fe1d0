"""Which n-gram order gives how much of the gradient, from rows of ``analyses gradients``."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...common.rows import Row
from ..row_checks import number
from ..short_names import shown
from .canvas import (
    GRID,
    LONGEST_TICK,
    WIDTH,
    canvas,
    check_extension,
    coloured,
    describe,
    error_bar,
    name_it,
    slanted,
)
from .collect import check_analysis, mean, said_of, values_of

_NEEDED = ("noise", "seed", "order", "share", "share_std", "cosine_clean")
_MOST = 10  # groups of bars
_SHORT = "short"


class GradientShares(NamedTuple):
    """groups: what stands below the bars. By order one number a group, the mean over the seeds;
    shares are missing where the row has none, which is cross entropy."""

    groups: List[str]
    shares: Dict[str, List[float]]
    spread: Dict[str, List[float]]
    cosines: Dict[str, List[float]]
    about: List[str]


def gradient_shares(rows: Sequence[Row]) -> GradientShares:
    """Collect rows by checkpoint, noise and order; of those with the same seed, too, the last one
    counts, the others are averaged.

    Raises:
        ValueError: a column is missing, rows of several losses or data, an order or a seed that
            some group lacks, or too many groups.
    """
    check_analysis(rows, _NEEDED, same=("ngram",))
    several = len(values_of(rows, "checkpoint")) > 1
    found: Dict[Tuple[str, str], Dict[str, Row]] = {}
    for row in rows:
        noise = row["noise"] if row["noise"] != "none" else "no noise"
        group = f"{row['checkpoint']}, {noise}" if several else noise
        found.setdefault((group, row["order"]), {})[row["seed"]] = row
    groups = list(dict.fromkeys(group for group, _ in found))
    if len(groups) > _MOST:
        raise ValueError(f"{len(groups)} models and noises, there is room for {_MOST}")
    shares: Dict[str, List[float]] = {}
    spread: Dict[str, List[float]] = {}
    cosines: Dict[str, List[float]] = {}
    seeds = values_of(rows, "seed")
    for order in values_of(rows, "order"):
        of = [_of_seeds(found.get((group, order), {}), seeds, group, order) for group in groups]
        cosines[order] = [_mean_of(several, "cosine_clean") for several in of]
        if any(row and row["share"] for several in of for row in several):
            shares[order] = [_mean_of(several, "share") for several in of]
            spread[order] = [_mean_of(several, "share_std") for several in of]
    about = said_of(rows[-1]) if not several else said_of(rows[-1])[:-1]
    return GradientShares(groups, shares, spread, cosines, [*about, f"EISL {rows[-1]['ngram']}"])


def _of_seeds(
    found: Dict[str, Row], seeds: Sequence[str], group: str, order: str
) -> List[Optional[Row]]:
    """A row a seed; None where an order that stands in for sentences that are too short was of no
    use, which is nothing of the gradient."""
    lacking = [seed for seed in seeds if seed not in found]
    if lacking and order != _SHORT:
        raise ValueError(
            f"{group} has no row of order {order} for seed {', '.join(lacking)}, others have"
        )
    return [found.get(seed) for seed in seeds]


def _mean_of(rows: Sequence[Optional[Row]], name: str) -> float:
    return mean([number(row, name) if row else 0.0 for row in rows])


def draw_gradients(data: GradientShares, path: str) -> None:
    """Bars of the orders' shares above, of their cosines with the clean gradient below.

    Raises:
        ValueError: too many orders for the colours, or a wrong extension.
    """
    check_extension(path)
    colours = coloured(list(data.cosines))
    with canvas(path, (WIDTH, 6.0)) as figure:
        axes = figure.subplots(2, 1, sharex=True)
        names = {o: f"n = {o}" if o in data.shares else f"{o} on these targets" for o in colours}
        for axis, values in zip(axes, (data.shares, data.cosines)):
            width = 0.8 / len(values)
            for i, (order, heights) in enumerate(values.items()):
                places = [g + (i - (len(values) - 1) / 2) * width for g in range(len(heights))]
                style = {"color": colours[order], "edgecolor": "black", "linewidth": 0.6}
                bars = axis.bar(places, heights, width * 0.92, zorder=2, **style)
                name_it(bars, names[order])
                for place, height, std in zip(places, heights, data.spread.get(order, ())):
                    if axis is axes[0]:
                        error_bar(axis, place, height, height - std, height + std)
            axis.axhline(0, color="black", linewidth=0.8)
            axis.grid(**GRID)
            axis.set_axisbelow(True)
        axes[0].set_ylabel("share of the gradient")
        axes[1].set_ylabel("cosine with the gradient of\ncross entropy on clean targets")
        texts = [shown(group, LONGEST_TICK) for group in data.groups]
        axes[1].set_xticks(range(len(texts)), texts)
        if slanted(texts, 6.5):
            axes[1].tick_params(axis="x", labelrotation=30)
        note = "share: projection on the whole gradient; error bar: standard deviation over batches"
        describe(figure, axes[::-1], data.about, note)
