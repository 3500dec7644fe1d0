"""Rows to the numbers of a comparison of systems, after checks that they may be compared."""

import math
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..common.rows import Row, check_columns

METRICS = ("bleu", "repetition", "length_ratio")
_NEEDED = ("system", "test_set", "seed", "bleu_signature", *METRICS)


class Comparison(NamedTuple):
    """values[metric, system, setting]: one number a seed, in the order of ``seeds``.

    repetition_reference: percentage of repeated words of the reference, None if unknown.
    signature: sacrebleu's, the same for all.
    """

    systems: List[str]
    settings: List[str]
    seeds: List[str]
    test_set: str
    signature: str
    repetition_reference: Optional[float]
    values: Dict[Tuple[str, str, str], List[float]]

    def mean(self, metric: str, system: str, setting: str) -> float:
        """Mean over the seeds; NaN without a row, or with a NaN among them."""
        values = self.values.get((metric, system, setting))
        return sum(values) / len(values) if values else math.nan


def compare_rows(rows: Sequence[Row]) -> Comparison:
    """Collect rows by the columns system, noise (optional), seed and test_set.

    Of rows with the same system, noise and seed the last one counts: rows are
    appended, the newest score stands.

    :raises ValueError: a column is missing or empty, a value is no number, rows of
        several test sets, references or kinds of BLEU, or systems with unequal seeds.
    """
    if not rows:
        raise ValueError("no rows to compare")
    check_columns(rows, _NEEDED)
    for row in rows:
        empty = [name for name in _NEEDED if not row.get(name, "")]
        if empty:
            raise ValueError(f"a row has no {', '.join(empty)}: {identity(row)}")
    latest = {(r["system"], r.get("noise", ""), r["seed"]): r for r in rows}
    test_set = only("test_set", [r["test_set"] for r in rows])
    only("bleu_signature", [bleu_kind(r["bleu_signature"]) for r in rows])
    reference = repetition_reference(rows)
    systems, settings, seeds = (list(dict.fromkeys(key[i] for key in latest)) for i in range(3))
    values: Dict[Tuple[str, str, str], List[float]] = {}
    for system in systems:
        for setting in settings:
            have = [s for s in seeds if (system, setting, s) in latest]
            if have and have != seeds:
                lacking = ", ".join(s for s in seeds if s not in have)
                where = f"{system} {setting}".strip()
                raise ValueError(f"{where} has no row for seed {lacking}, others have")
            for metric in METRICS if have else ():
                key = metric, system, setting
                values[key] = [number(latest[system, setting, s], metric) for s in seeds]
    signature = rows[-1]["bleu_signature"]
    return Comparison(systems, settings, seeds, test_set, signature, reference, values)


def repetition_reference(rows: Sequence[Row]) -> Optional[float]:
    """Percentage of repeated words of the rows' reference, None if unknown.

    :raises ValueError: rows of several references.
    """
    repeated = {number(r, "repetition_reference") for r in rows if r.get("repetition_reference")}
    if len(repeated) > 1:
        raise ValueError(
            "rows of several references: repetition_reference is "
            + ", ".join(f"{value:g}" for value in sorted(repeated))
        )
    return repeated.pop() if repeated else None


def only(name: str, values: Sequence[str]) -> str:
    """The one value of a column.

    :raises ValueError: there are several.
    """
    different = list(dict.fromkeys(values))
    if len(different) > 1:
        raise ValueError(f"rows of several {name} are not compared: {', '.join(different)}")
    return different[0]


def bleu_kind(signature: str) -> str:
    """What a sacrebleu signature says about the score; the version left out."""
    return "|".join(part for part in signature.split("|") if not part.startswith("version:"))


def number(row: Row, name: str) -> float:
    """The value of a column as a number.

    :raises ValueError: it is none; says of which row.
    """
    try:
        return float(row[name])
    except ValueError:
        raise ValueError(f"{name} is {row[name]!r}, no number: {identity(row)}") from None


def identity(row: Row) -> str:
    """What tells a row from others, for an error."""
    names = ("system", "arch", "noise", "seed", "iterations")
    return ", ".join(f"{name} {row[name]}" for name in names if row.get(name)) or "no name"
