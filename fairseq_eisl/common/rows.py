"""Results are rows of a CSV file; tables and pictures are made from rows."""

import contextlib
import csv
import fcntl
import io
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from .files import whole_file

Row = Dict[str, str]


def append_row(path: str, row: Mapping[str, Any]) -> None:
    """Add one row; processes may do so at the same time without losing one.

    New columns extend the header, earlier rows are empty there; values are kept as
    ``str(value)``, None as the empty string. The file is replaced whole, under a lock
    (``<path>.lock`` beside it, gone afterwards). Needs a POSIX system.

    Raises:
        ValueError: an empty row or column name, or a file that is no table of such rows:
            it and the row have but one column in common, or less than half of the columns of the
            narrower one. It stays as it is.
        OSError: the file cannot be written.
    """
    if not row:
        raise ValueError("an empty row says nothing: give it at least one column")
    for name in row:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a column needs a name, not {name!r}")
    target = os.path.realpath(path)  # two names of one file share the lock
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with _locked(target + ".lock"):
        rows = _rows_like(path, row)
        rows.append({key: "" if value is None else str(value) for key, value in row.items()})
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, columns(rows), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        with whole_file(path) as temporary, open(temporary, "wb") as f:
            f.write(text.getvalue().encode("utf-8"))
            f.flush()
            os.fsync(f.fileno())


# Columns that a table of anything may have.
_ANYWHERE = {"date", "name", "id", "time"}


def _rows_like(path: str, row: Mapping[str, Any]) -> List[Row]:
    """The rows of a file, if there is one and a row such as ``row`` can be one of them."""
    if not os.path.exists(path) or not (os.path.isdir(path) or os.path.getsize(path)):
        return []
    header, rows = _read(path)
    shared = len((set(header) & set(row)) - _ANYWHERE)
    # One name in common may be chance: a list under "bleu", a sheet with a column "system".
    if shared < min(2, len(row)) or 2 * shared < min(len(header), len(row)):
        shown = ", ".join(header)[:80]
        raise ValueError(
            f"{path}: this is no file of such rows (its first line is {shown!r}), it stays as it is"
        )
    return rows


def read_rows(path: str) -> List[Row]:
    """All rows, oldest first, each with every column of the header; values are text.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is empty, no UTF-8 text, or a row does not fit the header.
    """
    return _read(path)[1]


def _read(path: str) -> Tuple[List[str], List[Row]]:
    """Header and rows."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as f:
            reader = csv.reader(f, strict=True)
            header = next(reader, None)
            if header is None:
                raise ValueError(f"{path}: the file is empty")
            if len(set(header)) != len(header):
                twice = sorted({name for name in header if header.count(name) > 1})
                raise ValueError(f"{path}: column {', '.join(twice)} occurs twice in the header")
            rows = []
            for cells in reader:
                if len(cells) != len(header):
                    raise ValueError(
                        f"{path}: line {reader.line_num} has {len(cells)} cells, "
                        f"the header {len(header)}"
                    )
                rows.append(dict(zip(header, cells)))
    except UnicodeDecodeError as err:
        raise ValueError(f"{path}: no UTF-8 text ({err.reason} at byte {err.start})") from None
    except csv.Error as err:
        raise ValueError(f"{path}: no CSV table ({err})") from None
    return header, rows


def columns(rows: Sequence[Mapping[str, Any]]) -> List[str]:
    """The columns of all rows, in order of appearance.

    >>> columns([{"a": 1, "b": 2}, {"a": 1, "c": 3}])
    ['a', 'b', 'c']
    """
    return list(dict.fromkeys(name for row in rows for name in row))


def select(rows: Sequence[Row], wanted: Mapping[str, str]) -> List[Row]:
    """The rows whose columns have the wanted values, compared as text.

    Raises:
        ValueError: a column that no row has, or no row left; names what there is.

    >>> select([{"seed": "1"}, {"seed": "2"}], {"seed": "2"})
    [{'seed': '2'}]
    """
    for name, value in wanted.items():
        check_columns(rows, [name])
        values = list(dict.fromkeys(row.get(name, "") for row in rows))
        rows = [row for row in rows if row.get(name, "") == value]
        if not rows:
            there = ", ".join(text or "none" for text in values)
            raise ValueError(f"no row has {name}={value}; there is {there}")
    return list(rows)


def read_table(
    path: str, columns: Sequence[str], check: Callable[[int, Row], None] = lambda number, row: None
) -> List[Row]:
    """Rows with these columns, one or more; ``check(number, row)``, from 1, may raise a ValueError.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such table; the path stands before what is wrong.
    """
    rows = read_rows(path)
    if not rows:
        raise ValueError(f"{path}: there is a header but no row")
    try:
        check_columns(rows, columns)
        for place, row in enumerate(rows, 1):
            check(place, row)
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from None
    return rows


def check_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Raises ValueError: a column of ``names`` that no row has; names those there are."""
    known = columns(rows)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"no column {', '.join(missing)}; there is {', '.join(known) or 'none'}")


@contextlib.contextmanager
def _locked(lock: str) -> Iterator[None]:
    while True:
        handle = os.open(lock, os.O_CREAT | os.O_RDWR, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:  # whoever held the lock before has removed the file: lock the one that is there now
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                break
        except FileNotFoundError:
            pass
        os.close(handle)
    try:
        yield
    finally:
        os.unlink(lock)
        os.close(handle)


WAYS = (
    *("model", "arch", "targets", "iterations", "length_candidates"),
    *("search", "beam", "lenpen", "lm_weight"),
)
"""Columns that tell several translations of one system from a score that was computed again."""
CHOSEN = ("beam", "lenpen", "lm_weight")
"""Those of them that trials may have chosen for each seed."""
NO_NOISE = ("", "none")


def noise_of(row: Row) -> str:
    """Of a row; ``none`` where there is none."""
    noise = row.get("noise", "")
    return "none" if noise in NO_NOISE else noise


def ways(rows: Sequence[Row]) -> List[str]:
    """The columns of :data:`WAYS` in which rows of one system, noise and seed differ."""
    return _differing(rows, WAYS, lambda row: (row["system"], noise_of(row), row.get("seed", "")))


def kinds(rows: Sequence[Row]) -> List[str]:
    """The columns of :data:`WAYS`, but those of :data:`CHOSEN`, in which rows of one system and
    noise differ, whatever their seeds: a mean over them would be of several things."""
    names = [name for name in WAYS if name not in CHOSEN]
    return _differing(rows, names, lambda row: (row["system"], noise_of(row)))


def _differing(
    rows: Sequence[Row], names: Sequence[str], key: Callable[[Row], Tuple[str, ...]]
) -> List[str]:
    found: Dict[Tuple[str, ...], List[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return [
        name
        for name in names
        if any(len({row.get(name, "") for row in same}) > 1 for same in found.values())
    ]
