"""Rows of scores as a table."""

from typing import Optional, Sequence

from ..common.rows import Row, columns
from ..common.table import text_table

DEFAULT_COLUMNS = (
    "system",
    "noise",
    "test_set",
    "seed",
    "iterations",
    "bleu",
    "bleu_detok",
    "chrf",
    "ter",
    "bleurt",
    "repetition",
    "repetition_reference",
    "length_ratio",
    "length_error",
    "unk_rate",
    "sentences",
)


def format_table(
    rows: Sequence[Row], names: Optional[Sequence[str]] = None, markdown: bool = False
) -> str:
    """One line a row; columns of numbers stand to the right.

    ``names``: the columns; by default those of :data:`DEFAULT_COLUMNS` that occur,
    or all where none does.

    :raises ValueError: a column that no row has.

    >>> print(format_table([{"system": "CE", "bleu": "8.50"}, {"system": "EISL", "bleu": "32.10"}]))
    system   bleu
    CE       8.50
    EISL    32.10
    """
    if names is None:
        present = columns(rows)
        names = [name for name in DEFAULT_COLUMNS if name in present] or present
    return text_table(rows, names, markdown)
