"""Tables of results, made of the rows in data/results."""

import csv
import statistics
from pathlib import Path
from typing import Dict, List, Sequence

from fairseq_eisl.evaluation.over_seeds import over_seeds

from .code import table

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
Row = Dict[str, str]


def read(name: str, **where: str) -> List[Row]:
    """The rows of a file of data/results that have these values."""
    with open(RESULTS / name, encoding="utf-8", newline="") as f:
        rows = [row for row in csv.DictReader(f)]
    found = [
        row for row in rows if all(row[key] in value.split("|") for key, value in where.items())
    ]
    if not found:
        raise ValueError(f"{name}: no row has {where}")
    return found


def pivot(
    name: str, index: str, across: str, values: str = "bleu", digits: int = 1, **where: str
) -> str:
    """A line for each ``index``, a column for each of ``across`` and each of ``values``.

    Of several seeds mean and sample standard deviation; which ones is a column then. Columns are
    joined by spaces in the arguments.
    """
    rows = read(name, **where)
    columns, wanted = _values(rows, across), values.split()
    lines, told = [], []
    for key in _values(rows, index):
        mine = [row for row in rows if row[index] == key]
        told.append(", ".join(_values(mine, "seed")) if "seed" in mine[0] else "")
        lines.append([f"`{key}`"])
        for value in wanted:
            for column in columns:
                texts = [row[value] for row in mine if row[across] == column]
                lines[-1].append(_mean(texts, digits))
    header = [f"{column}{'' if value == 'bleu' else ', ' + value.replace('_', ' ')}"
              for value in wanted for column in columns]  # fmt: skip
    if any("," in seeds for seeds in told):
        header = ["seeds", *header]
        lines = [[line[0], seeds, *line[1:]] for line, seeds in zip(lines, told)]
    return table([index.replace("_", " "), *header], lines)


def _values(rows: Sequence[Row], column: str) -> List[str]:
    return list(dict.fromkeys(row[column] for row in rows))


def _mean(texts: Sequence[str], digits: int) -> str:
    numbers = [float(text) for text in texts if text]
    mean = f"{statistics.fmean(numbers):.{digits}f}" if numbers else ""
    return f"{mean} ± {statistics.stdev(numbers):.{digits}f}" if len(numbers) > 1 else mean


def seeds(name: str, ceiling: str = "", columns: str = "", **where: str) -> str:
    """Mean and spread of each system over its seeds, as ``evaluation seeds`` has it."""
    lines = over_seeds(read(name, **where), ceiling)
    names = columns.split() or [key for key in lines[0] if any(line[key] for line in lines)]
    for line in lines:
        line["noise"] = f"`{line['noise']}`"
    return table(names, [[line[key] for key in names] for line in lines])


def rows(name: str, columns: str, digits: int = -1, **where: str) -> str:
    """Rows as they are; ``digits``: of numbers that have some."""
    names = columns.split()
    shown = [[_rounded(row[key], digits) for key in names] for row in read(name, **where)]
    return table([key.replace("_", " ") for key in names], shown)


def _rounded(text: str, digits: int) -> str:
    try:
        return text if digits < 0 or text.isdigit() else f"{float(text):.{digits}f}"
    except ValueError:
        return text


def made_by(name: str, **where: str) -> str:
    """Where the rows of a file come from: commits, machines, seeds, signature."""
    found = read(name, **where)
    parts = []
    for key, what in (
        ("commit", "commit"), ("seed", "seed"), ("bleu_signature", "BLEU"), ("cpu", "on"),
        ("torch", "torch"),
    ):  # fmt: skip
        values = list(dict.fromkeys(row[key] for row in found if row.get(key)))
        if values:
            parts.append(f"{what} {', '.join(f'`{value}`' for value in values)}")
    return f"Rows: `data/results/{name}`; {'; '.join(parts)}."


MACROS = (pivot, seeds, rows, made_by)
