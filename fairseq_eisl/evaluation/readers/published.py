"""Numbers that a paper printed, from a CSV file. They stand beside ours, never in a difference."""

import math
from typing import List, Sequence

from ...common.rows import Row, read_table
from ..row_checks import number

TABLE = ("setting", "system", "bleu", "source")
NOISE = ("noise", "system", "bleu")


def read_published(path: str, columns: Sequence[str]) -> List[Row]:
    """Rows with the ``columns`` (:data:`TABLE` or :data:`NOISE`), all filled, bleu a number.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such table.
    """

    def check(line: int, row: Row) -> None:
        empty = [name for name in columns if not row[name].strip()]
        if empty:
            raise ValueError(f"row {line} has no {', '.join(empty)}")
        if not math.isfinite(number(row, "bleu")):
            raise ValueError(f"row {line}: bleu is {row['bleu']}, no number")

    return read_table(path, columns, check)
