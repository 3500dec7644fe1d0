"""What a test of significance says of a row: the interval of its BLEU, and p."""

import math
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

from ..common.rows import Row, read_table
from .row_checks import number

TESTED = ("system", "baseline", "bleu", "bleu_mean", "bleu_margin", "p_value", "bleu_signature")
_SAME = (
    *("test_set", "noise", "seed", "arch", "model", "targets"),
    *("iterations", "length_candidates", "search"),
)
_RESAMPLES = re.compile(r"(?:^|\|)bs:(\d+)")
_DIGITS = 4  # of p in the rows


class Interval(NamedTuple):
    """low, high: the 95 % interval of BLEU. p: of :func:`p_text`, empty for the baseline."""

    low: float
    high: float
    p: str
    baseline: str


def p_text(value: str, signature: str) -> str:
    """A p value with its sign: ``= 0.0310``, or ``<= 0.001`` where it is the least there can be.

    A bootstrap of n resamples counts itself, so that p is never below 1 / (n + 1).

    >>> p_text("0.0010", "nrefs:1|bs:1000|seed:1"), p_text("0.0020", "nrefs:1|bs:1000|seed:1")
    ('<= 0.001', '= 0.0020')
    """
    found = _RESAMPLES.search(signature)
    least = 1 / (int(found.group(1)) + 1) if found else 0.0
    unit = 10**-_DIGITS
    if float(value) <= round(least, _DIGITS):
        return f"<= {round(max(math.ceil(round(least / unit, 6)), 1) * unit, _DIGITS):g}"
    return f"= {value}"


def read_tests(path: str) -> List[Row]:
    """Rows that ``significance --rows`` has written.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such table.
    """

    def check(place: int, row: Row) -> None:
        for name in ("bleu", "bleu_mean", "bleu_margin", *(["p_value"] * bool(row["p_value"]))):
            number(row, name)

    return read_table(path, TESTED, check)


def ends(mean: float, margin: float) -> Tuple[float, float]:
    """Of an interval of BLEU, which is never below 0 nor above 100."""
    return max(mean - margin, 0.0), min(mean + margin, 100.0)


def interval(row: Row, tests: Sequence[Row]) -> Optional[Interval]:
    """What ``tests`` (rows of ``significance``) say of a row; None where they say nothing.

    A test is of the row if the columns that both have agree, and the BLEU: one of an earlier
    score, or of another kind of BLEU, is not. Of several the last one counts.

    Raises:
        ValueError: a mean or margin that is no number.
    """
    for test in reversed(tests):
        if test["system"] != row["system"] or not _agree(row, test):
            continue
        mean, margin = number(test, "bleu_mean"), number(test, "bleu_margin")
        p = p_text(test["p_value"], test["bleu_signature"]) if test["p_value"] else ""
        return Interval(*ends(mean, margin), p, test["baseline"])
    return None


def _agree(row: Row, test: Row) -> bool:
    same = all(row[n] == test[n] for n in _SAME if row.get(n) and test.get(n))
    return same and math.isclose(number(row, "bleu"), number(test, "bleu"), abs_tol=0.005)
