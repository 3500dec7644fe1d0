"""Which checkpoints of a folder: the last by epoch or update, the best by validation."""

import os
import re
from typing import Any, Dict, List, Optional, Tuple

from .files import read_checkpoint

_EPOCH = re.compile(r"checkpoint(\d+)\.pt")
_UPDATE = re.compile(r"checkpoint_\d+_(\d+)\.pt")
# fairseq adds to the three decimals of the score a random number that parts equal scores.
_BEST = re.compile(r"checkpoint\.best_(.+)_(-?\d+\.\d{3})(\d*)\.pt")


def last_checkpoints(
    folder: str, count: int, by_updates: bool = False, upper_bound: Optional[int] = None
) -> List[str]:
    """The newest ``count`` checkpoints, the oldest of them first.

    By epoch (``checkpoint12.pt``), or by update (``checkpoint_3_4000.pt``, those of
    ``--save-interval-updates``). ``upper_bound``: the highest epoch or update that counts.

    Raises:
        OSError: the folder cannot be read.
        ValueError: there are fewer.
    """
    pattern, shape = (_UPDATE, "checkpoint_E_U.pt") if by_updates else (_EPOCH, "checkpointN.pt")
    found = [(int(match[1]), name) for name, match in _matches(folder, pattern)]
    if upper_bound is not None:
        found = [(number, name) for number, name in found if number <= upper_bound]
        shape += f" up to {upper_bound}"
    names = [name for _, name in sorted(found)]
    _check_count(folder, count, names, shape)
    return [os.path.join(folder, name) for name in names[-count:]]


def best_checkpoints(
    folder: str, count: int, metric: Optional[str] = None, maximize: Optional[bool] = None
) -> List[str]:
    """The ``count`` best of those kept by ``--keep-best-checkpoints``, the best of all last.

    ``metric``: as in their names, needed if there are several. ``maximize``: whether a
    higher value is better; by default as the checkpoints' own training had it
    (``--maximize-best-checkpoint-metric``).

    Raises:
        OSError: the folder or a checkpoint cannot be read.
        ValueError: there are fewer, an unclear metric, or no word on what is better.
    """
    found = _matches(folder, _BEST)
    metrics = sorted({match[1] for _, match in found})
    if metric is None and len(metrics) > 1:
        raise ValueError(f"{folder}: checkpoints by several metrics, choose: {', '.join(metrics)}")
    if metric is not None and found and metric not in metrics:
        raise ValueError(
            f"{folder}: no checkpoints by the metric {metric!r}, there is {', '.join(metrics)}"
        )
    chosen = [(name, match) for name, match in found if metric in (None, match[1])]
    _check_count(folder, count, [name for name, _ in chosen], "checkpoint.best_METRIC_VALUE.pt")
    if maximize is None:
        maximize = _maximized(os.path.join(folder, chosen[0][0]), chosen[0][1][1])
    sign = 1.0 if maximize else -1.0
    chosen.sort(key=lambda entry: (sign * float(entry[1][2]), entry[1][3]))
    return [os.path.join(folder, name) for name, _ in chosen[-count:]]


def _matches(folder: str, pattern) -> List[Tuple[str, Any]]:
    found = [(name, pattern.fullmatch(name)) for name in sorted(os.listdir(folder))]
    return [(name, match) for name, match in found if match]


def _check_count(folder: str, count: int, names: List[str], shape: str) -> None:
    if count < 1:
        raise ValueError(f"a number of 1 or more is needed, not {count}")
    if len(names) < count:
        there = f"{len(names)}: {', '.join(names)}" if names else "none"
        raise ValueError(f"{folder}: {count} checkpoints {shape} are needed, there is {there}")


def _maximized(path: str, metric: str) -> bool:
    """What the training behind a checkpoint said about its metric."""
    state = read_checkpoint(path)
    settings: Dict[str, Any] = {}
    if state.get("args") is not None:  # as fairseq does: before cfg
        settings = vars(state["args"])
    elif state.get("cfg") is not None:
        settings = state["cfg"].get("checkpoint") or {}
    own = settings.get("best_checkpoint_metric")
    if own != metric or "maximize_best_checkpoint_metric" not in settings:
        raise ValueError(
            f"{path}: its training does not say whether a higher {metric} is better "
            f"(its --best-checkpoint-metric: {own or 'unknown'}): choose maximize or minimize"
        )
    return bool(settings["maximize_best_checkpoint_metric"])
