"""What rows must agree in before their numbers stand beside each other."""

from typing import Optional, Sequence

from ..common.rows import Row, kinds, ways


def repetition_reference(rows: Sequence[Row]) -> Optional[float]:
    """Percentage of repeated words of the rows' reference, None if unknown.

    Raises:
        ValueError: rows of several references.
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

    Raises:
        ValueError: there are several.
    """
    different = list(dict.fromkeys(values))
    if len(different) > 1:
        raise ValueError(f"rows of several {name} are not compared: {', '.join(different)}")
    return different[0]


def check_one_way(rows: Sequence[Row]):
    """Raise ValueError where a system has several translations under one noise and seed, or its
    seeds are of several models or searches: which of them is meant must be said."""
    for name in [*ways(rows), *kinds(rows)]:
        values = dict.fromkeys(row.get(name, "") for row in rows)
        raise ValueError(
            f"a system has rows of several {name} ({', '.join(values)}); choose one, e.g. "
            f"--where {name}={next(iter(values))}"
        )


def bleu_kind(signature: str) -> str:
    """What a sacrebleu signature says about the score; the version left out."""
    return "|".join(part for part in signature.split("|") if not part.startswith("version:"))


def number(row: Row, name: str) -> float:
    """The value of a column as a number.

    Raises:
        ValueError: it is none; says of which row.
    """
    try:
        return float(row[name])
    except ValueError:
        raise ValueError(f"{name} is {row[name]!r}, no number: {identity(row)}") from None


def identity(row: Row) -> str:
    """What tells a row from others, for an error."""
    names = ("system", "arch", "noise", "seed", "iterations")
    return ", ".join(f"{name} {row[name]}" for name in names if row.get(name)) or "no name"
