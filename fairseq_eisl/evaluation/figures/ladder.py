"""Many systems, best first: mean BLEU over the seeds, a panel a noise, the ceiling as a line."""

from typing import Dict, List, Optional, Sequence

from ...common.rows import Row
from ..over_seeds import Group, ceiling_of, groups
from ..short_names import shown, spoken
from .canvas import (
    COLOURS,
    WIDTH,
    canvas,
    check_extension,
    error_bar,
    write_legend,
    write_title,
)

_LONGEST = 30  # characters of a system's name
_MOST = 20  # systems of a panel


def draw_ladder(rows: Sequence[Row], path: str, ceiling: str = "") -> None:
    """One panel a noise, one line a system: a large dot is the mean over the seeds, a small dot a
    seed, the bar goes from the least to the largest. EISL has a colour of its own.

    Columns needed: those of :func:`over_seeds.groups`. ``ceiling``: the system that was trained
    on clean targets; a dashed line through all panels.

    Raises:
        ValueError: see :func:`over_seeds.groups` and :func:`over_seeds.ceiling_of`; too many
            systems, nothing beside the ceiling, or a wrong extension.
    """
    check_extension(path)
    found = groups(rows)
    top = ceiling_of(found, ceiling) if ceiling else None
    by_noise: Dict[str, List[Group]] = {}
    for group in found:
        if group is not top:
            by_noise.setdefault(group.noise, []).append(group)
    if not by_noise:
        raise ValueError(f"no row beside those of the ceiling {ceiling}")
    most = max(map(len, by_noise.values()))
    if most > _MOST:
        raise ValueError(f"{most} systems a panel are too many to read, at most {_MOST}: pick rows")
    sizes = [len(of) for of in by_noise.values()]
    with canvas(path, (WIDTH, 1.2 + sum(0.6 + 0.28 * size for size in sizes))) as figure:
        axes = figure.subplots(len(sizes), 1, sharex=True, squeeze=False, height_ratios=sizes)
        for axis, (noise, of) in zip(axes[:, 0], by_noise.items()):
            _panel(axis, sorted(of, key=lambda group: group.mean), top)
            title = "clean targets" if noise == "none" else spoken(noise)
            axis.set_title(shown(title, 60), loc="left")
        axes[-1, 0].set_xlabel("BLEU")
        seeds = dict.fromkeys(seed for group in found for seed in group.seeds)
        told = f"{rows[0]['test_set']}, seeds {', '.join(seeds)}"
        write_title(figure, f"{told} (large dot: mean, small dot: one seed)")
        note = f"BLEU: {rows[-1]['bleu_signature']}"
        if top is not None:
            note += f"; dashed: {ceiling} ({top.mean:.1f})"
        write_legend(figure, [], note, [group.system for group in found])


def _panel(axis, of: Sequence[Group], top: Optional[Group]) -> None:
    """The worst at the bottom."""
    for place, group in enumerate(of):
        colour = COLOURS[1] if group.system.startswith("EISL") else "#777777"
        axis.plot([group.mean], [place], "o", color=colour, markersize=7, zorder=3)
        for bleu in group.bleu if len(group.bleu) > 1 else ():
            axis.plot([bleu], [place], "o", color="black", markersize=2.5, zorder=5)
        error_bar(axis, place, group.mean, min(group.bleu), max(group.bleu), flat=True)
        axis.annotate(
            f"{group.mean:.1f}",
            (max(group.bleu), place),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
            zorder=6,  # readable where the ceiling passes
        )
    if top is not None:
        axis.axvline(top.mean, color="black", linestyle=(0, (4, 3)), linewidth=1)
    axis.set_yticks(range(len(of)), [shown(group.system, _LONGEST) for group in of])
    axis.set_ylim(-0.6, len(of) - 0.4)
    axis.grid(axis="x", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.set_xlim(left=0)
