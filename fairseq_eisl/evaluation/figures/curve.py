"""Validation scores of a training as a picture, its stages beside each other."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..readers.training_log import Curve
from ..short_names import shown
from .canvas import (
    COLOURS,
    GRID,
    MARKERS,
    bleu_axis,
    check_extension,
    describe,
    name_it,
    panels,
)

STARTS = ("best", "last", "zero")
_ACROSS = 4  # panels beside each other
_COMPARABLE = 3.0  # lengths of trainings that one axis can show


def training_curve(
    curves: Dict[str, Curve], path: str, start: str = "best", title: str = "", metric: str = "BLEU"
) -> None:
    """Validation score against updates, a panel a stage, each with an axis of its own length.

    ``curves``: stage name to curve, in training order. Every stage counts its updates from 0.
    ``start``: the stage before's ``best`` or ``last`` validation is drawn at 0, dotted from
    there, whichever checkpoint the stage was started from; with ``zero`` there is none, and
    trainings of about the same length share a panel.

    Raises:
        ValueError: no curves, an unknown ``start``, a wrong extension, or no matplotlib.
    """
    check_extension(path)
    if start not in STARTS:
        raise ValueError(f"start must be one of {', '.join(STARTS)}, not {start!r}")
    if not curves:
        raise ValueError("no curves to draw")
    if len(curves) > len(COLOURS):
        raise ValueError(f"{len(curves)} curves, at most {len(COLOURS)} have a colour")
    groups = _groups(curves, start)
    across = min(_ACROSS, len(groups))
    with panels(path, len(groups), across) as (figure, axes):
        numbers = {name: i for i, name in enumerate(curves)}
        before: Optional[Tuple[str, float]] = None
        for axis, names in zip(axes, groups):
            for name in names:
                _draw(axis, name, curves[name], numbers[name], before)
                if start != "zero":
                    curve = curves[name]
                    before = name, curve.scores[curve.best() if start == "best" else -1]
            axis.set_xlim(left=0)
            axis.xaxis.get_major_locator().set_params(nbins=max(8 // across, 3), integer=True)
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            if len(groups) > 1:
                axis.set_title(shown(names[0], 56 // across), loc="left")
            axis.grid(**GRID)
        low, _ = axes[0].get_ylim()
        for axis in axes[::across]:
            axis.set_ylabel(f"validation {metric}")
        if metric == "BLEU" and low > 0:
            bleu_axis(axes[0])
            axes[0].set_ylabel(f"validation {axes[0].get_ylabel()}")
        for axis in axes:
            axis.set_xlabel("updates (optimiser steps)" if across < 3 else "updates")
        dotted = f"dotted: from the {start} validation of the stage before"
        note = dotted if before and len(curves) > 1 else ""
        describe(figure, axes, [title], note, f"Validation {metric} during training")


def _groups(curves: Dict[str, Curve], start: str) -> List[Sequence[str]]:
    lengths = [max(curve.updates[-1], 1) for curve in curves.values()]
    if start == "zero" and max(lengths) <= _COMPARABLE * min(lengths):
        return [list(curves)]
    return [[name] for name in curves]


def _draw(axis, name: str, curve: Curve, number: int, before: Optional[Tuple[str, float]]) -> None:
    style: Dict[str, Any] = {"color": COLOURS[number], "linewidth": 1.8}
    best = curve.best()
    line = axis.plot(curve.updates, curve.scores, marker=MARKERS[number], markersize=5, **style)[0]
    label = f"best {curve.scores[best]:.1f} at update {curve.updates[best]:,}"
    name_it(line, f"{shown(name, 60)}: {label}")
    if before is not None:
        axis.plot([0, curve.updates[0]], [before[1], curve.scores[0]], ":", **style)
