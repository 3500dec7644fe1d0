"""Rows of several seeds to one line a system and noise: mean, spread, share of the ceiling."""

import statistics
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..common.rows import Row, check_columns, noise_of
from .row_checks import bleu_kind, check_one_way, number, only

_NEEDED = ("system", "noise", "seed", "bleu", "bleu_signature", "test_set")
_MEANS = {"repetition": 2, "length_ratio": 3}
"""Columns whose mean is shown where every row has them, and its digits."""


class Group(NamedTuple):
    """The rows of a system under one noise, a row a seed; ``bleu`` in the order of ``seeds``."""

    noise: str
    system: str
    seeds: List[str]
    bleu: List[float]
    rows: List[Row]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.bleu)


def groups(rows: Sequence[Row]) -> List[Group]:
    """Rows by noise and system, in order of appearance. Of rows of the same seed the last one
    counts: rows are appended, the newest score stands.

    Raises:
        ValueError: there are none, a column is missing, a BLEU that is no number, or rows of
            several test sets, kinds of BLEU, or ways in which one system translates.
    """
    if not rows:
        raise ValueError("no rows to average")
    check_columns(rows, _NEEDED)
    only("test_set", [row["test_set"] for row in rows])
    only("bleu_signature", [bleu_kind(row["bleu_signature"]) for row in rows])
    check_one_way(rows)
    found: Dict[Tuple[str, str], Dict[str, Row]] = {}
    for row in rows:
        found.setdefault((noise_of(row), row["system"]), {})[row["seed"]] = row
    return [
        Group(noise, system, list(of), [number(r, "bleu") for r in of.values()], list(of.values()))
        for (noise, system), of in found.items()
    ]


def ceiling_of(found: Sequence[Group], ceiling: str) -> Group:
    """The group of the system that was trained on clean targets.

    Raises:
        ValueError: no row has that system, or rows of several noises do.
    """
    mine = [group for group in found if group.system == ceiling]
    systems = ", ".join(dict.fromkeys(group.system for group in found))
    if not mine:
        raise ValueError(f"no row has the system {ceiling}; there is {systems}")
    only(f"noises of the ceiling {ceiling}", [group.noise for group in mine])
    return mine[0]


def over_seeds(rows: Sequence[Row], ceiling: str = "") -> List[Row]:
    """A line for each noise and system.

    ``bleu`` is the mean over the seeds; ``sd`` its sample standard deviation, ``least`` and
    ``most`` the ends, empty with one seed. ``ceiling``: the system that was trained on clean
    targets, first in the table; ``recovery`` is the percentage of its mean that another reaches.

    Raises:
        ValueError: see :func:`groups` and :func:`ceiling_of`.

    >>> one = {"noise": "repeat:0.5", "system": "EISL", "bleu_signature": "", "test_set": "t"}
    >>> lines = over_seeds([{**one, "seed": "1", "bleu": "30"}, {**one, "seed": "2", "bleu": "32"}])
    >>> lines[0]["seeds"], lines[0]["bleu"], lines[0]["sd"]
    ('1, 2', '31.00', '1.41')
    """
    found = groups(rows)
    top = ceiling_of(found, ceiling) if ceiling else None
    if top is not None:
        found = [top, *(group for group in found if group is not top)]
    return [_line(group, top) for group in found]


def _line(group: Group, top: Optional[Group]) -> Row:
    several = len(group.bleu) > 1
    line = {
        "noise": group.noise,
        "system": group.system,
        "seeds": ", ".join(group.seeds),
        "bleu": f"{group.mean:.2f}",
        "sd": f"{statistics.stdev(group.bleu):.2f}" if several else "",
        "least": f"{min(group.bleu):.2f}" if several else "",
        "most": f"{max(group.bleu):.2f}" if several else "",
    }
    if top is not None:
        line["recovery"] = f"{100 * group.mean / top.mean:.1f}" if top.mean else ""
    for name, digits in _MEANS.items():
        if all(row.get(name) for row in group.rows):
            mean = statistics.fmean(number(row, name) for row in group.rows)
            line[name] = f"{mean:.{digits}f}"
    line["updates"] = _span([row.get("updates", "") for row in group.rows])
    return line


def _span(counts: Sequence[str]) -> str:
    """The least and the most of them; empty where one is not known."""
    if not all(count.isdigit() for count in counts):
        return ""
    ends = sorted({min(map(int, counts)), max(map(int, counts))})
    return " to ".join(map(str, ends))
