"""Rows to lines of BLEU over the level of a noise, after checks that they fit together."""

import math
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from ...common.rows import Row
from ..row_checks import check_one_way, number
from .collect import Ends, by_seed, check_rows, known_intervals, values_of

_NEEDED = ("system", "noise", "seed", "test_set", "bleu", "bleu_signature")
# Else two rows look like one.
_SAME = ("test_set", "arch", "model", "targets", "iterations", "length_candidates", "search")


class Levels(NamedTuple):
    """For each of the rising ``levels`` one BLEU a seed. ``inf`` is the level ``all``."""

    levels: List[float]
    values: List[List[float]]


class NoiseLevels(NamedTuple):
    """panels: noise type to system to its line. published: the same of a paper, or empty.

    seeds: the same for all. signature: sacrebleu's. intervals: by type of noise, level and
    system the 95 % interval of the BLEU of one seed, where it is known.
    """

    panels: Dict[str, Dict[str, Levels]]
    published: Dict[str, Dict[str, Levels]]
    seeds: List[str]
    test_set: str
    signature: str
    intervals: Mapping[Tuple[str, float, str], Ends]


def split_noise(text: str) -> Tuple[str, float]:
    """A noise of one type, ``type:level``; no noise has the type ``""`` and the level 0.

    Raises:
        ValueError: a mixture of several, or no level.

    >>> split_noise("repeat:0.3"), split_noise("shuffle:all"), split_noise("none")
    (('repeat', 0.3), ('shuffle', inf), ('', 0.0))
    """
    text = text.strip()
    if text in ("", "none"):
        return "", 0.0
    kind, _, level = (part.strip() for part in text.partition(":"))
    try:
        value = math.inf if level == "all" else float(level)
    except ValueError:
        value = math.nan
    if not kind or not value >= 0 or (math.isinf(value) and level != "all"):
        raise ValueError(f"noise is {text!r}, not one type:level such as repeat:0.3, or none")
    return kind, value


def check_noises(rows: Sequence[Row]) -> None:
    """Raises ValueError: a noise of ``rows`` is no single ``type:level``; says of which row."""
    for line, row in enumerate(rows, 1):
        try:
            split_noise(row["noise"])
        except ValueError as err:
            raise ValueError(f"row {line}: {err}") from None


def several_levels(rows: Sequence[Row]) -> bool:
    """Do rows have a noise at two levels or more, so that there is a line to draw?"""
    try:
        found = {split_noise(row.get("noise", "")) for row in rows}
    except ValueError:
        return False
    kinds = {kind for kind, _ in found if kind}
    return any(sum(own in ("", kind) for own, _ in found) > 1 for kind in kinds)


_Point = Tuple[str, float, str]  # type of noise, level, system


def _point(row: Row) -> _Point:
    return (*split_noise(row["noise"]), row["system"])


def _place(point: _Point) -> str:
    kind, level, system = point
    return f"{system} {kind}:{level:g}" if kind else f"{system} without noise"


def noise_lines(
    rows: Sequence[Row], published: Sequence[Row] = (), tests: Sequence[Row] = ()
) -> NoiseLevels:
    """Collect rows by the columns noise, system and seed.

    Rows without noise are level 0 of every type. Of rows with the same system, noise and
    seed the last one counts. ``published``: rows of :func:`published.read_published`, of
    which those are kept whose type of noise occurs in ``rows``. ``tests``: rows of
    ``significance``, which know the intervals.

    Raises:
        ValueError: a column is missing or empty, a noise that is no ``type:level``,
            nothing but clean rows, a BLEU that is no number, unequal seeds, or rows of several
            test sets or kinds of BLEU.
    """
    check_rows(rows, _NEEDED, same=_SAME, may_be_empty=("noise",))
    check_one_way(rows)
    seeds = values_of(rows, "seed")
    found: Dict[_Point, Dict[str, float]] = {}
    for row in rows:
        found.setdefault(_point(row), {})[row["seed"]] = number(row, "bleu")
    points = by_seed(found, seeds, _place)
    sure = known_intervals(rows, tests, seeds, _point)
    kinds = list(dict.fromkeys(kind for kind, _, _ in points if kind))
    if not kinds:
        raise ValueError("no row has a noise: there is no level to draw against")
    for of, level, system in list(sure):
        for kind in kinds if not of else ():  # the clean rows are level 0 of every type
            if (kind, 0.0, system) not in points:
                sure[kind, 0.0, system] = sure[of, level, system]
    theirs = {_point(row): [number(row, "bleu")] for row in published}
    return NoiseLevels(
        panels={kind: _panel(points, kind) for kind in kinds},
        published={kind: _panel(theirs, kind) for kind in kinds} if theirs else {},
        seeds=seeds,
        test_set=rows[-1]["test_set"],
        signature=rows[-1]["bleu_signature"],
        intervals=sure,
    )


def _panel(points: Dict[_Point, List[float]], kind: str) -> Dict[str, Levels]:
    """The lines of one type of noise, the clean rows at level 0 unless there are own ones."""
    lines: Dict[str, Levels] = {}
    own = {(level, system) for of, level, system in points if of == kind}
    for system in dict.fromkeys(system for _, _, system in points):
        if system not in {name for _, name in own}:
            continue
        at = {level: points[kind, level, system] for level, name in own if name == system}
        clean = points.get(("", 0.0, system))
        if clean:
            at.setdefault(0.0, clean)
        levels = sorted(at)
        lines[system] = Levels(levels, [at[level] for level in levels])
    return lines
