"""The files of a run's folder: what recipes write and the report reads."""

from typing import Any, Dict, List, Tuple, TypedDict

ROWS = "rows.csv"
"""Scores, a row for each system and way to decode."""
REPORT = "report.json"
"""What else belongs to the run: see ``Report``."""
TESTS = "significance.csv"
"""Tests of the differences."""
TRIALS = "trials.csv"
"""Settings of trainings that were tried on the validation set, a row each."""
UNTUNED = "untuned.yaml"
"""The recipe before some of its settings were chosen by trials."""
PUBLISHED = "published.csv"
"""Scores of a paper, to be shown beside."""

ROW_COLUMNS = (
    "system", "noise", "noise_seed", "seed", "test_set", "model", "recipe", "overrides",
)  # fmt: skip
"""The columns that a recipe gives its rows, beside those that scoring computes."""
NEEDED_COLUMNS = ("system", "bleu", "bleu_signature")
"""The columns without which a row cannot be shown."""
TRIAL_COLUMNS = (
    "training", "setting", "flags", "chosen", "metric", "score", "at_update", "updates",
)  # fmt: skip
"""The columns of trials that are shown."""
PUBLISHED_COLUMNS = ("setting", "system", "bleu", "source")


class Report(TypedDict, total=False):
    """The keys of ``report.json``; paths are relative to its folder, or whole."""

    title: str
    settings: Dict[str, Any]
    commands: List[Tuple[str, str]]
    """Stage and shell command."""
    source: str
    """A file of sentences, as is the reference."""
    reference: str
    systems: Dict[str, str]
    """The generation log of each system."""
    curves: Dict[str, str]
    """The training log of each."""
    curve_start: str
    """Which validation of the one before a curve goes on from: best (unless it is said) or last."""


MOST_SYSTEMS = 14
"""Of one picture: so many colours are told apart."""
CURVE_STARTS = ("best", "last")
REPORT_KEYS = tuple(Report.__annotations__)
