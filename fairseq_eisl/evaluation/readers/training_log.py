"""Validation scores out of a ``fairseq-train`` log."""

import json
import math
import re
from typing import Any, Dict, List, NamedTuple, Optional

from ...common.text_lines import decoded_lines, one_line, without_end


class Curve(NamedTuple):
    """updates: optimiser steps, rising. scores: the metric after each, as fairseq wrote it."""

    updates: List[int]
    scores: List[float]

    def best(self, lower: bool = False) -> int:
        """Index of the highest score, or of the lowest, the earliest of equals; NaN is the
        worst."""
        signed = [-score if lower else score for score in self.scores]
        ranked = [-math.inf if math.isnan(score) else score for score in signed]
        return ranked.index(max(ranked))


def read_curve(path: str, metric: str = "bleu", subset: str = "valid") -> Curve:
    """Read the validations of ``subset`` from a log of format simple, tqdm or json.

    A resumed run that validates an update again overrules what came before.

    Raises:
        OSError: the file cannot be read.
        ValueError: no validations, or none with the metric.
    """
    found: Dict[int, float] = {}
    validations = 0
    for line in _log_lines(path):
        stats = parse_validation(line, subset)
        if stats is None or "num_updates" not in stats:
            continue
        validations += 1
        if metric in stats:
            found[int(stats["num_updates"])] = stats[metric]
    if not validations:
        raise ValueError(
            f"{path}: no validation of '{subset}' in it: not the log of fairseq-train, "
            "or --log-format none, or --disable-validation"
        )
    if not found:
        hint = ": train with --eval-bleu" if metric == "bleu" else ""
        raise ValueError(f"{path}: {validations} validations, none with {metric}{hint}")
    updates = sorted(found)
    return Curve(updates, [found[u] for u in updates])


def _log_lines(path: str) -> List[str]:
    """The lines of a log. What a progress bar has drawn stands before a message, on the same line;
    a carriage return parts the two, so it ends a line here.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is empty, or no UTF-8 text.
    """
    try:
        with open(path, "rb") as f:
            whole = [without_end(line) for line in decoded_lines(f)]
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from None
    if not whole:
        raise ValueError(f"{path}: the file is empty")
    return [one_line(part) for line in whole for part in line.split("\r")]


def parse_validation(line: str, subset: str = "valid") -> Optional[Dict[str, float]]:
    """The numbers of one line that reports a validation of ``subset``, else None.

    >>> line = "| valid | epoch 001 | valid on 'valid' subset | bleu 12.3 | num_updates 7"
    >>> parse_validation(line) == {"epoch": 1, "bleu": 12.3, "num_updates": 7}
    True
    >>> parse_validation('x | INFO | valid | {"valid_bleu": "12.3", "valid_num_updates": "7"}')
    {'bleu': 12.3, 'num_updates': 7.0}
    """
    if "{" in line:
        stats = _json(line)
        prefix = subset + "_"
        if stats is None or prefix + "num_updates" not in stats:
            return None
        named = {k[len(prefix) :]: v for k, v in stats.items() if k.startswith(prefix)}
        return _numbers(named)
    parts = [part.strip() for part in line.split("|")]
    on = [part for part in parts if part.startswith("valid on '")]
    if on != [f"valid on '{subset}' subset"] and (on or subset not in parts):
        return None
    return _numbers(dict(part.split(" ", 1) for part in parts if " " in part))


def _json(line: str) -> Optional[Dict[str, Any]]:
    """The numbers of a line of --log-format json; None where there are none."""
    start = line.find("{")
    if start < 0:
        return None
    try:
        stats = json.loads(line[start:])
    except ValueError:
        return None  # the configuration, for one
    return stats if isinstance(stats, dict) else None


def _numbers(stats: Dict[str, str]) -> Dict[str, float]:
    numbers = {}
    for key, value in stats.items():
        try:
            numbers[key] = float(value)
        except (TypeError, ValueError):
            pass
    return numbers


_WALL = re.compile(r"(?<!\w)wall[ =](\d+)")
_THREADS = re.compile(r"^\$ OMP_NUM_THREADS=(\d\S*) ", re.MULTILINE)
_UPDATES = re.compile(r"num_updates[ =](\d+)")


def training_effort(path: str) -> Dict[str, str]:
    """Columns of a row: ``training_seconds``, ``updates`` at the end of a training, ``threads``.

    fairseq's clock begins anew when a training is resumed; the times of all starts are added,
    each up to its last line. A training that was killed before it wrote a time has none. From
    logs of format simple, tqdm or json. The threads are OMP_NUM_THREADS of all starts, as a
    recipe's log says.

    Raises:
        OSError: the file cannot be read.
        ValueError: there is no number of updates in it.
    """
    lines = _log_lines(path)
    seconds, updates = [], []
    for line in lines:
        stats = _json(line)
        if stats is None:
            seconds += _WALL.findall(line)
            updates += _UPDATES.findall(line)
        elif "train_num_updates" in stats:  # the end of an epoch
            updates.append(str(stats["train_num_updates"]))
            seconds += [str(stats["train_wall"])] if "train_wall" in stats else []
        elif "num_updates" in stats:
            updates.append(str(stats["num_updates"]))
            seconds += [str(stats["wall"])] if "wall" in stats else []
    if not updates:
        raise ValueError(f"{path}: no update in it: not the log of fairseq-train, or of "
                         "--log-format none")  # fmt: skip
    total = last = 0
    for now in (int(float(each)) for each in seconds):
        if now < last:  # another start
            total += last
        last = now
    known = str(total + last) if seconds else ""
    found = {"training_seconds": known, "updates": updates[-1]}
    threads = "+".join(dict.fromkeys(_THREADS.findall("\n".join(lines))))
    return {**found, "threads": threads} if threads else found
