"""Scores over the refinement iterations of a decoder: lines, after checks that they fit."""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...common.rows import CHOSEN, WAYS, Row
from ..row_checks import identity, number, only, repetition_reference
from .canvas import (
    COLOURS,
    GRID,
    MARKERS,
    WIDTH,
    bleu_axis,
    canvas,
    check_extension,
    coloured,
    describe,
    error_bar,
    name_it,
    reference_line,
    say_spread,
)
from .collect import Ends, check_rows, known_intervals, mean, noise_said, values_of

METRICS = ("bleu", "repetition", "length_error")
_PANELS = (  # metric, title, unit
    ("bleu", "BLEU", "BLEU"),
    ("repetition", "Repeated words", "% of words"),
    ("length_error", "Length error", "words"),
)
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
    intervals: Dict[Tuple[str, int], Ends]


def iteration_lines(rows: Sequence[Row], tests: Sequence[Row] = ()) -> Iterations:
    """Collect rows by the columns system, iterations, arch and seed (the last two optional).

    ``iterations`` is what ``--iter-decode-max-iter`` was: refinements after the first pass.
    ``tests``: rows of ``significance``, which know the intervals.

    Raises:
        ValueError: a column is missing or empty, iterations is no integer, a value no
            number, two rows of the same run, unequal seeds, or rows of several test sets,
            noises, references or kinds of BLEU.
    """
    check_rows(rows, _NEEDED, same=("test_set", "noise"))
    named = len(values_of(rows, "arch")) > 1

    def point(row: Row) -> Tuple[str, int]:
        label = f"{row.get('arch', '')} {row['system']}".strip() if named else row["system"]
        return label, _integer(row)

    found: Dict[Tuple[str, int], Dict[str, Row]] = {}
    for row in rows:
        of = found.setdefault(point(row), {})
        if row.get("seed", "") in of:
            raise ValueError(f"two rows of the same run: {identity(row)}")
        of[row.get("seed", "")] = row
    _check_lines(rows, [point(row)[0] for row in rows])
    seeds = values_of(rows, "seed")
    sure = known_intervals(rows, tests, seeds, point)
    for label, count in sorted(found):
        for seed in seeds:
            if seed not in found[label, count]:
                which = f"seed {seed}" if seed else "an empty seed"
                raise ValueError(f"{label} at {count} iterations has no row for {which}")
    lines = {
        label: _line({count: found[label, count] for own, count in found if own == label}, seeds)
        for label in dict.fromkeys(label for label, _ in found)  # in order of appearance
    }
    return Iterations(
        lines=lines,
        seeds=seeds,
        test_set=rows[0].get("test_set", ""),
        noise=rows[0].get("noise", ""),
        signature=rows[-1]["bleu_signature"],
        repetition_reference=repetition_reference(rows),
        intervals=sure,
    )


def _check_lines(rows: Sequence[Row], labels: Sequence[str]) -> None:
    """Raises ValueError: the rows of one line differ in more than their iterations."""
    for label in dict.fromkeys(labels):
        of = [row for row, own in zip(rows, labels) if own == label]
        for name in (each for each in WAYS if each not in ("iterations", *CHOSEN)):
            only(name, values_of(of, name))
        for seed in values_of(of, "seed"):
            for name in CHOSEN:
                only(name, [row.get(name, "") for row in of if row.get("seed", "") == seed])


def _line(found: Dict[int, Dict[str, Row]], seeds: Sequence[str]) -> Line:
    """Of one system, its rows by iterations and seed."""
    counts = sorted(found)
    values = {
        metric: [[number(found[count][seed], metric) for seed in seeds] for count in counts]
        for metric in METRICS
    }
    return Line(counts, values)


def _integer(row: Row) -> int:
    text = row["iterations"]
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"iterations is {text!r}, no integer of 0 or more: {identity(row)}")
    return int(text)


def draw_iterations(data: Iterations, path: str) -> None:
    """BLEU, repetition rate and length error against refinement iterations, one line a system.

    With several seeds a line is their mean, in a band from the least to the largest; with one,
    error bars are the intervals that are known of its BLEU.

    Raises:
        ValueError: too many systems for the colours, or a wrong extension.
    """
    check_extension(path)
    coloured(list(data.lines))
    with canvas(path, (WIDTH, 4.0)) as figure:
        axes = figure.subplots(1, 3)
        for axis, (metric, title, unit) in zip(axes, _PANELS):
            for i, name in enumerate(data.lines):
                _draw(axis, data, metric, name, i)
            last = max(line.iterations[-1] for line in data.lines.values())
            axis.set_xlim(-0.03 * last - 0.2, last * 1.03 + 0.2)
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.set_xlabel("refinement iterations")
            axis.set_ylabel(unit)
            axis.set_title(title, loc="left")
            axis.grid(**GRID)
        bleu_axis(axes[0])
        for axis in axes[1:]:
            axis.set_ylim(0, max(1.08 * axis.dataLim.y1, 0.1))  # room for the highest marker
        if data.repetition_reference is not None:
            reference_line(axes[1], _PANELS[1][2], data.repetition_reference)
        seeds = say_spread(data.seeds, bool(data.intervals), "line: mean", "band")
        about = [data.test_set, noise_said(data.noise), seeds]
        otherwise = "Scores against refinement iterations"
        describe(figure, axes[:1], about, f"BLEU: {data.signature}", otherwise)


def _draw(axis, data: Iterations, metric: str, name: str, number: int) -> None:
    """The line of one system, in its band or with its intervals."""
    line = data.lines[name]
    values = [[math.nan] if any(map(math.isnan, seeds)) else seeds for seeds in line.values[metric]]
    style: Dict[str, Any] = {"color": COLOURS[number], "linewidth": 1.8, "markersize": 5}
    means = list(map(mean, values))
    name_it(axis.plot(line.iterations, means, marker=MARKERS[number], **style)[0], name)
    if len(data.seeds) > 1:
        low, high = ([end(seeds) for seeds in values] for end in (min, max))
        axis.fill_between(line.iterations, low, high, color=COLOURS[number], alpha=0.2)
    sure = data.intervals if metric == "bleu" else {}
    for count, height in zip(line.iterations, means):
        if (name, count) in sure:
            error_bar(axis, count, height, *sure[name, count])
