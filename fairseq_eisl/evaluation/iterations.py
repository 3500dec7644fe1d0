"""Rows to lines over the refinement iterations of a decoder, after checks that they fit."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..common.rows import Row, check_columns
from .comparison import bleu_kind, identity, number, only, repetition_reference
from .intervals import interval

METRICS = ("bleu", "repetition", "length_error")
_NEEDED = ("system", "iterations", "bleu_signature", *METRICS)


class Line(NamedTuple):
    """values[metric]: for each of the rising ``iterations`` one number a seed."""

    iterations: List[int]
    values: Dict[str, List[List[float]]]


class Iterations(NamedTuple):
    """lines: by system, or ``arch system`` where there are several architectures.

    test_set, noise: empty if unknown. seeds: the same for all, ``[""]`` if unknown.
    repetition_reference: percentage of repeated words of the reference, None if unknown.
    signature: sacrebleu's. intervals: by line and iterations the 95 % interval of the BLEU of
    one seed, where it is known.
    """

    lines: Dict[str, Line]
    seeds: List[str]
    test_set: str
    noise: str
    signature: str
    repetition_reference: Optional[float]
    intervals: Dict[Tuple[str, int], Tuple[float, float]]


def iteration_lines(rows: Sequence[Row], tests: Sequence[Row] = ()) -> Iterations:
    """Collect rows by the columns system, iterations, arch and seed (the last two optional).

    ``iterations`` is what ``--iter-decode-max-iter`` was: refinements after the first pass.
    ``tests``: rows of ``significance``, which know the intervals.

    :raises ValueError: a column is missing or empty, iterations is no integer, a value no
        number, two rows of the same run, unequal seeds, or rows of several test sets,
        noises, references or kinds of BLEU.
    """
    if not rows:
        raise ValueError("no rows to draw")
    check_columns(rows, _NEEDED)
    for row in rows:
        empty = [name for name in _NEEDED if not row.get(name, "")]
        if empty:
            raise ValueError(f"a row has no {', '.join(empty)}: {identity(row)}")
    test_set, noise = (only(n, [row.get(n, "") for row in rows]) for n in ("test_set", "noise"))
    only("bleu_signature", [bleu_kind(row["bleu_signature"]) for row in rows])
    several = len({row.get("arch", "") for row in rows}) > 1
    found: Dict[Tuple[str, int, str], Row] = {}
    for row in rows:
        label = f"{row.get('arch', '')} {row['system']}".strip() if several else row["system"]
        key = label, _integer(row), row.get("seed", "")
        if key in found:
            raise ValueError(f"two rows of the same run: {identity(row)}")
        found[key] = row
    seeds = list(dict.fromkeys(seed for _, _, seed in found))
    sure: Dict[Tuple[str, int], Tuple[float, float]] = {}
    for (label, count, _), row in found.items() if len(seeds) == 1 else ():
        known = interval(row, tests)
        if known:
            sure[label, count] = known.low, known.high
    points: Dict[str, List[int]] = {}
    for label, count in sorted({key[:2] for key in found}):
        for seed in seeds:
            if (label, count, seed) not in found:
                which = f"seed {seed}" if seed else "an empty seed"
                raise ValueError(f"{label} at {count} iterations has no row for {which}")
        points.setdefault(label, []).append(count)
    lines = {
        label: Line(
            points[label],
            {
                metric: [
                    [number(found[label, count, seed], metric) for seed in seeds]
                    for count in points[label]
                ]
                for metric in METRICS
            },
        )
        for label in dict.fromkeys(key[0] for key in found)  # in order of appearance
    }
    return Iterations(
        lines=lines,
        seeds=seeds,
        test_set=test_set,
        noise=noise,
        signature=rows[-1]["bleu_signature"],
        repetition_reference=repetition_reference(rows),
        intervals=sure,
    )


def _integer(row: Row) -> int:
    text = row["iterations"]
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"iterations is {text!r}, no integer of 0 or more: {identity(row)}")
    return int(text)
