"""Rows to the numbers of a picture: the checks and the grouping that pictures share."""

from typing import Callable, Dict, List, Mapping, Sequence, Tuple, TypeVar

from ...common.rows import Row, check_columns
from ..intervals import interval
from ..row_checks import bleu_kind, identity, only

Ends = Tuple[float, float]
Key = TypeVar("Key")
Value = TypeVar("Value")


def check_rows(
    rows: Sequence[Row],
    needed: Sequence[str],
    same: Sequence[str] = (),
    may_be_empty: Sequence[str] = (),
    purpose: str = "draw",
) -> None:
    """Rows with the columns ``needed``, of one kind of BLEU and one value of each of ``same``.

    Raises:
        ValueError: there are none, a column is missing or empty, or several values.
    """
    if not rows:
        raise ValueError(f"no rows to {purpose}")
    check_columns(rows, needed)
    for row in rows:
        empty = [n for n in needed if n not in may_be_empty and not row.get(n, "")]
        if empty:
            raise ValueError(f"a row has no {', '.join(empty)}: {identity(row)}")
    for name in same:
        only(name, values_of(rows, name))
    only("bleu_signature", [bleu_kind(row["bleu_signature"]) for row in rows])


def values_of(rows: Sequence[Row], name: str) -> List[str]:
    """The different values of a column, in order of appearance; a row without it has ``""``."""
    return list(dict.fromkeys(row.get(name, "") for row in rows))


def by_seed(
    found: Mapping[Key, Mapping[str, Value]], seeds: Sequence[str], where: Callable[[Key], str]
) -> Dict[Key, List[Value]]:
    """What there is of each seed, in their order.

    Raises:
        ValueError: something has no row for a seed that others have; says ``where``.
    """
    for key, values in found.items():
        lacking = ", ".join(seed for seed in seeds if seed not in values)
        if lacking:
            raise ValueError(f"{where(key)} has no row for seed {lacking}, others have")
    return {key: [values[seed] for seed in seeds] for key, values in found.items()}


def known_intervals(
    rows: Sequence[Row], tests: Sequence[Row], seeds: Sequence[str], key: Callable[[Row], Key]
) -> Dict[Key, Ends]:
    """The 95 % intervals of BLEU that ``tests`` know; none where there are several seeds."""
    found = {}
    for row in rows if len(seeds) == 1 else ():
        known = interval(row, tests)
        if known:
            found[key(row)] = known.low, known.high
    return found


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def noise_said(noise: str) -> str:
    """For a title; nothing where there is none."""
    return f"noise {noise}" if noise else ""


_SETTINGS = ("selection", "temperature", "after_eos")


def check_analysis(rows: Sequence[Row], needed: Sequence[str], same: Sequence[str] = ()) -> None:
    """Rows of one analysis, with the columns ``needed`` and one value of each of ``same``; of one
    setting of EISL, too.

    Raises:
        ValueError: there are none, a column is missing, several values, or other sentences.
    """
    if not rows:
        raise ValueError("no rows to draw")
    check_columns(rows, ("checkpoint", "subset", "sentences", *needed))
    for name in ("title", "data", "subset", "sentences", *_SETTINGS, *same):
        only(name, values_of(rows, name))


def said_of(row: Row) -> List[str]:
    """For a title: the data, the sentences and the model of a row of an analysis."""
    sentences = f"{row['sentences']} sentences of {row['subset']}"
    return [*filter(None, [row.get("title", "")]), sentences, f"model {row['checkpoint']}"]
