"""A run folder: ``rows.csv``, ``report.json`` that says what else belongs to the run, and
``significance.csv`` with tests of the differences, the last two where there are any."""

import json
import os
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from ...common.files import read_lines
from ...common.rows import Row, read_table
from ...common.run_files import (
    CURVE_STARTS,
    NEEDED_COLUMNS,
    REPORT,
    REPORT_KEYS,
    ROWS,
    TESTS,
    TRIAL_COLUMNS,
    TRIALS,
)
from ..intervals import read_tests
from .generation_log import read_generation_log
from .inputs import check_words
from .training_log import Curve, read_curve


class Run(NamedTuple):
    """What a page shows of a run; what the folder does not say is empty.

    commands: stage and shell command. source, reference: sentences. systems: the
    hypotheses of each system, as many as there are references. tests: rows of ``significance``.
    folder: the name of its folder, without those above. trials: settings that were tried on the
    validation set. curve_start: which validation of the stage before a curve goes on from.
    """

    title: str
    rows: List[Row]
    settings: Dict[str, str]
    commands: List[Tuple[str, str]]
    source: List[str]
    reference: List[str]
    systems: Dict[str, List[str]]
    curves: Dict[str, Curve]
    tests: List[Row]
    folder: str = ""
    trials: Sequence[Row] = ()
    curve_start: str = "best"


def read_run(folder: str, plain_words: bool = False) -> Run:
    """Read a run folder. Paths in ``report.json`` are relative to it; every key is optional.

    ``plain_words``: its texts are, even where some look like pieces of words.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is not what it should be, or texts of unequal line counts.
    """
    rows = read_table(os.path.join(folder, ROWS), NEEDED_COLUMNS)
    tests, trials = os.path.join(folder, TESTS), os.path.join(folder, TRIALS)
    about = _read_report(os.path.join(folder, REPORT))

    def path(name: str) -> str:
        return os.path.join(folder, name)

    source, reference = (
        read_lines(path(about[key])) if about.get(key) else [] for key in ("source", "reference")
    )
    if reference:
        check_words(reference, path(about["reference"]), [], plain_words)
    if source and reference and len(source) != len(reference):
        raise ValueError(
            f"{path(about['reference'])}: {len(reference)} lines for the {len(source)} of "
            f"{path(about['source'])}"
        )
    systems = {}
    for system, log in about.get("systems", {}).items():
        if not reference:
            raise ValueError(f"{path(REPORT)}: systems need a reference to be shown beside")
        hypotheses = read_generation_log(path(log)).hypotheses
        check_words(hypotheses, path(log), reference, plain_words)
        if len(hypotheses) != len(reference):
            raise ValueError(
                f"{path(log)}: {len(hypotheses)} hypotheses for the {len(reference)} lines of "
                f"{path(about['reference'])}"
            )
        systems[system] = hypotheses
    return Run(
        title=about.get("title") or os.path.basename(os.path.abspath(folder)),
        rows=rows,
        settings={key: _plain(value) for key, value in about.get("settings", {}).items()},
        commands=[(stage, command) for stage, command in about.get("commands", [])],
        source=source,
        reference=reference,
        systems=systems,
        curves={name: read_curve(path(log)) for name, log in about.get("curves", {}).items()},
        tests=read_tests(tests) if os.path.exists(tests) else [],
        folder=os.path.basename(os.path.abspath(folder)),
        trials=read_table(trials, TRIAL_COLUMNS) if os.path.exists(trials) else [],
        curve_start=about.get("curve_start", "best"),
    )


def _read_report(path: str) -> Dict[str, Any]:
    """``report.json`` with its kinds checked; nothing where there is no such file."""
    if not os.path.exists(path):
        return {}
    try:
        about = json.loads("\n".join(read_lines(path)))
    except json.JSONDecodeError as err:
        raise ValueError(f"{path}: no JSON ({err})") from None
    if not isinstance(about, dict):
        raise ValueError(f"{path}: an object with {', '.join(REPORT_KEYS)} is needed")
    unknown = [key for key in about if key not in REPORT_KEYS]
    if unknown:
        raise ValueError(f"{path}: no key {', '.join(unknown)}; there is {', '.join(REPORT_KEYS)}")
    for key, value in about.items():
        if not _CHECKS[key](value):
            raise ValueError(f"{path}: {key} must be {_KINDS[key]}, not {json.dumps(value)[:60]}")
    return about


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_commands(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(pair, list) and len(pair) == 2 and all(map(_is_text, pair)) for pair in value
    )


_CHECKS = {
    **dict.fromkeys(("title", "source", "reference"), _is_text),
    **dict.fromkeys(("systems", "curves"), _is_texts),
    "settings": lambda value: isinstance(value, dict),
    "commands": _is_commands,
    "curve_start": lambda value: value in CURVE_STARTS,
}
_KINDS = {
    "title": "a text",
    **dict.fromkeys(("source", "reference"), "the name of a file"),
    **dict.fromkeys(("systems", "curves"), "an object of names and files"),
    "settings": "an object of names and values",
    "commands": "a list of [stage, shell command]",
    "curve_start": f"one of {', '.join(CURVE_STARTS)}",
}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
