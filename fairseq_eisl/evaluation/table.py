"""Rows of scores as a table."""

from typing import List, Optional, Sequence

from ..common.rows import Row, columns
from ..common.table import text_table
from .metrics.registry import shown_columns

_ABOUT = ("system", "noise", "test_set", "seed", "iterations")


def default_columns() -> List[str]:
    """What a row is of, then the scores of all metrics."""
    return [*_ABOUT, *shown_columns(lambda column: column.in_table)]


def format_table(
    rows: Sequence[Row], names: Optional[Sequence[str]] = None, markdown: bool = False
) -> str:
    """One line a row; columns of numbers stand to the right.

    ``names``: the columns; by default those of :func:`default_columns` that occur,
    or all where none does.

    Raises:
        ValueError: a column that no row has.

    >>> print(format_table([{"system": "CE", "bleu": "8.50"}, {"system": "EISL", "bleu": "32.10"}]))
    system   bleu
    CE       8.50
    EISL    32.10
    """
    if names is None:
        present = columns(rows)
        names = [name for name in default_columns() if name in present] or present
    return text_table(rows, names, markdown)
