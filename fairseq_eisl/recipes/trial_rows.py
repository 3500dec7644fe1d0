"""Trials that were run before, on whatever machine: their rows instead of trials once more."""

import math
from typing import Dict, Iterable, Optional

from ..common.rows import Row, read_table
from ..common.run_files import TRIAL_COLUMNS
from .errors import RecipeError

KEY = "trial"
"""The column that says what was tried, see :func:`trial_key.trial_key`."""
_COLUMNS = (*TRIAL_COLUMNS, "better", "commit", KEY)


class TrialRows:
    """Rows of trials (the trials.csv of a run, or of several), by what was tried."""

    def __init__(self, rows: Iterable[Row] = ()):
        self._rows: Dict[str, Row] = {}
        for row in rows:
            if row[KEY]:
                self._rows.setdefault(row[KEY], row)

    @classmethod
    def read(cls, path: Optional[str]) -> "TrialRows":
        """Of a file, or none. Raises RecipeError, one line, where it is no table of trials."""
        if path is None:
            return cls()
        try:
            return cls(read_table(path, _COLUMNS, _check))
        except (OSError, ValueError) as err:
            reason = getattr(err, "strerror", None)
            raise RecipeError(f"trials: {path}: {reason}" if reason else f"trials: {err}") from None

    def find(self, key: str) -> Optional[Row]:
        """The row of the trial of this key."""
        row = self._rows.get(key)
        return None if row is None else dict(row)


def _check(number: int, row: Row):
    """Raise ValueError where the score of a row is none; ``nan`` is one, and never chosen."""
    try:
        math.isfinite(float(row["score"]))
    except ValueError:
        raise ValueError(f"row {number}: score: {row['score']!r} is no number") from None
