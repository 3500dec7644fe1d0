"""Numbers that a paper printed, from a CSV file. They stand beside ours, never in a difference."""

import math
from typing import List, Sequence

from ...common.rows import Row, check_columns, read_rows
from ..row_checks import number

TABLE = ("setting", "system", "bleu", "source")
NOISE = ("noise", "system", "bleu")


def read_published(path: str, columns: Sequence[str]) -> List[Row]:
    """Rows with the ``columns`` (:data:`TABLE` or :data:`NOISE`), all filled, bleu a number.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no such table.
    """
    rows = read_rows(path)
    if not rows:
        raise ValueError(f"{path}: there is a header but no row")
    try:
        check_columns(rows, columns)
        for line, row in enumerate(rows, 1):
            empty = [name for name in columns if not row[name].strip()]
            if empty:
                raise ValueError(f"row {line} has no {', '.join(empty)}")
            if not math.isfinite(number(row, "bleu")):
                raise ValueError(f"row {line}: bleu is {row['bleu']}, no number")
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from None
    return rows
