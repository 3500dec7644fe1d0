"""Trials that were run before, on whatever machine: their rows instead of trials once more."""

import csv
from typing import Dict, Iterable, List, Optional, Sequence

from ..common.run_files import TRIAL_COLUMNS
from .errors import RecipeError

_GROUP = ("recipe", "training", "noise", "seed", "metric", "better")
_TRIAL = (*_GROUP, "setting", "flags")
_COLUMNS = tuple(dict.fromkeys((*TRIAL_COLUMNS, *_GROUP, "commit")))


class TrialRows:
    """Rows of trials (the trials.csv of a run, or of several), as long as they hold.

    A trial begins with what was chosen before it, and no row says what that was: once another
    setting is chosen than theirs, the rows of all later trials are of something else.
    """

    def __init__(self, rows: Iterable[Dict[str, str]] = ()):
        self._rows = list(rows)
        self._hold = True

    @classmethod
    def read(cls, path: Optional[str]) -> "TrialRows":
        """Of a file, or none. Raises RecipeError, one line, where it is no table of trials."""
        if path is None:
            return cls()
        try:
            with open(path, encoding="utf-8", newline="") as f:
                reader = csv.DictReader(f)
                missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
                if missing:
                    raise RecipeError(f"trials: {path}: no column {', '.join(missing)}")
                return cls(reader)
        except (OSError, UnicodeDecodeError, csv.Error) as err:
            reason = getattr(err, "strerror", None) or err
            raise RecipeError(f"trials: {path}: {reason}") from None

    def find(self, wanted: Dict[str, str], updates: Optional[int]) -> Optional[Dict[str, str]]:
        """The row of a trial with these values, of as many updates where they are given."""
        for row in self._rows if self._hold else ():
            same = all(row[key] == wanted[key] for key in _TRIAL)
            if same and (updates is None or row["updates"] == str(updates)):
                return dict(row)
        return None

    def compare(self, found: Sequence[Dict[str, str]], best: int):
        """Take notice of what is chosen now: the index among the rows of these settings."""
        theirs: List[str] = [
            row["setting"]
            for row in self._rows
            if row["chosen"] and all(row[key] == found[0][key] for key in _GROUP)
        ]
        self._hold = self._hold and found[best]["setting"] in theirs
