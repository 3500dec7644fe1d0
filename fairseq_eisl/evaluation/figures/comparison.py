"""Rows to the numbers of a comparison of systems, after checks that they may be compared."""

import math
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...common.rows import Row
from ..row_checks import check_one_way, number, repetition_reference
from .collect import by_seed, check_rows, mean, values_of

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
        return mean(values) if values else math.nan


def compare_rows(rows: Sequence[Row]) -> Comparison:
    """Collect rows by the columns system, noise (optional), seed and test_set.

    Of rows with the same system, noise and seed the last one counts: rows are
    appended, the newest score stands.

    Raises:
        ValueError: a column is missing or empty, a value is no number, rows of
            several test sets, references or kinds of BLEU, of several ways in which one system
            translates, or systems with unequal seeds.
    """
    check_rows(rows, _NEEDED, same=("test_set",), purpose="compare")
    check_one_way(rows)
    reference = repetition_reference(rows)
    systems, settings, seeds = (values_of(rows, name) for name in ("system", "noise", "seed"))
    latest: Dict[Tuple[str, str], Dict[str, Row]] = {
        (system, setting): {} for system in systems for setting in settings
    }
    for row in rows:
        latest[row["system"], row.get("noise", "")][row["seed"]] = row
    found = by_seed({k: of for k, of in latest.items() if of}, seeds, lambda k: " ".join(k).strip())
    values = {
        (metric, *key): [number(row, metric) for row in each]
        for key, each in found.items()
        for metric in METRICS
    }
    return Comparison(
        systems,
        settings,
        seeds,
        rows[0]["test_set"],
        rows[-1]["bleu_signature"],
        reference,
        values,
    )
