"""Runs to one HTML page that holds everything it shows."""

import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from ...common.matplotlib_check import why_no_pictures
from ...common.rows import CHOSEN, Row, ways
from ..examples import CHANGED, RANDOM, WORST, choose
from ..figures.canvas import for_a_page
from ..figures.compare import compare
from ..figures.content_style import COLUMN, content_style, draw_content_style
from ..figures.curve import training_curve
from ..figures.iterations import draw_iterations, iteration_lines
from ..figures.noise import noise as draw_noise
from ..figures.noise_levels import noise_lines, several_levels
from ..readers.run_folder import Run
from ..row_checks import identity, only
from ..short_names import glossary
from ..summary import evidence, headline, varying
from . import parts
from .overview import summary
from .page import page
from .rendering import part, render

_SCORED_BY = ("commit", "date", "python", "torch", "fairseq", "sacrebleu", "cpu", "cores")
_NOISE = "BLEU against the level of noise"
_Picture = Tuple[str, Callable[[str], None]]


def report(
    runs: Sequence[Run],
    published: Sequence[Row] = (),
    title: str = "",
    count: int = 8,
    seed: int = 1,
) -> str:
    """The page, results first: what was found, then scores, pictures and examples; settings and
    commands are folded away. ``published``: rows of a paper, shown apart, and faintly in the
    picture of all runs where they have a ``noise``. ``count``: examples of a run.

    The same runs give the same page.

    Raises:
        ValueError: no runs, or rows with a BLEU that is no number.
    """
    if not runs:
        raise ValueError("no runs to report")
    title = title or (runs[0].title if len(runs) == 1 else f"Results of {len(runs)} runs")
    numbers = iter(range(1, 100_000))
    runs = _told_apart(runs)
    overview = _overview(runs, published, numbers) if len(runs) > 1 else None
    body = render(
        "body.html",
        title=title,
        overview=overview,
        no_pictures=why_no_pictures(),
        runs=[_view(run, numbers, count, seed) for run in runs],
        published=_published(published) if published else "",
    )
    return page(title, body)


def _told_apart(runs: Sequence[Run]) -> List[Run]:
    """Runs of the same title get their folder's name beside it."""
    titles = [run.title for run in runs]
    return [
        run._replace(title=f"{run.title} ({run.folder})")
        if titles.count(run.title) > 1 and run.folder not in ("", run.title)
        else run
        for run in runs
    ]


class _Told(NamedTuple):
    outcome: str
    evidence: str


def _told(rows: Sequence[Row], tests: Sequence[Row], size: int = 0) -> _Told:
    return _Told(headline(rows), evidence(rows, tests, size))


def _overview(
    runs: Sequence[Run], published: Sequence[Row], numbers: Iterator[int]
) -> Dict[str, Any]:
    """What all runs say together: in one sentence, a table of them, and in one picture."""
    tests = [row for run in runs for row in run.tests]
    told, not_told = None, ""
    try:
        told = _told(_together(runs), tests)
    except ValueError as err:
        not_told = str(err)
    drawn = None
    if several_levels([row for run in runs for row in run.rows]):
        paper = [row for row in published if row.get("noise")]
        picture = (_NOISE, lambda path: _noise(_together(runs), path, tests, paper))
        drawn = _draw([picture], numbers)
    return {"told": told, "not_told": not_told, "summary": summary(runs), "drawn": drawn}


def _view(run: Run, numbers: Iterator[int], count: int, seed: int) -> Dict[str, Any]:
    """What the page shows of a run, results first."""
    return {
        "title": run.title,
        "told": _told(run.rows, run.tests, len(run.reference)),
        "results": parts.results(run.rows),
        "glossary": glossary([row["system"] for row in run.rows]),
        "significance": parts.significance(run.tests) if run.tests else "",
        "pictures": _draw(_pictures(run), numbers),
        "examples": _examples(run, count, seed) if run.systems else None,
        "folds": _folds(run),
    }


def _folds(run: Run) -> List[Tuple[str, str]]:
    """How the run was made; what a click unfolds."""
    folds = []
    if run.trials:
        folds.append(("Settings that were tried on validation", parts.trials(run.trials)))
    if run.settings:
        folds.append(("Settings", parts.pairs(list(run.settings.items()))))
    stages = run.commands or [("as written in the rows", text) for text in _values(run, "command")]
    if stages:
        folds.append(("Commands", parts.commands(stages)))
    by = {name: ", ".join(_values(run, name)) for name in _SCORED_BY}
    known = [(name, value) for name, value in by.items() if value]
    if known:
        folds.append(("Scored by", parts.pairs(known, "scored")))
    return folds


def _examples(run: Run, count: int, seed: int) -> Dict[str, Any]:
    chosen = choose(count, run.reference, run.systems, seed)
    first, *later = run.systems
    of = ", ".join(later) or first
    why = {
        CHANGED: f"chrF of {of} differs most from that of {first}",
        WORST: f"lowest chrF of {of}",
        RANDOM: f"drawn with seed {seed}",
    }
    kinds = []
    for kind, numbers in chosen.numbers.items():
        blocks = parts.examples(run.source, run.reference, run.systems, numbers, chosen.chrf)
        kinds.append((f"{kind.capitalize()}: {why[kind]}", blocks))
    return {
        "count": sum(map(len, chosen.numbers.values())),
        "total": len(run.reference),
        "seed": seed,
        "kinds": kinds,
    }


def _values(run: Run, name: str) -> List[str]:
    return list(dict.fromkeys(row[name] for row in run.rows if row.get(name)))


def _pictures(run: Run) -> List[_Picture]:
    """What can be drawn of a run: a caption, and how to draw it into a file."""
    pictures: List[_Picture] = []
    several = set(varying(run.rows)) - {"noise"}
    one = _first(_first(run.rows, "length_candidates"), "search")
    for name in ways(one):  # else each system has the one that trials chose for it
        one = _first(one, name) if name in CHOSEN else one
    if "iterations" in several:
        pictures.append(
            (
                "Scores against refinement iterations",
                lambda path: draw_iterations(iteration_lines(one, run.tests), path),
            )
        )
    else:
        pictures.append(("Scores of the systems", lambda path: _compare(one, path, run.tests)))
    if several_levels(run.rows):
        pictures.append((_NOISE, lambda path: _noise(one, path, run.tests)))
    if any(row.get(COLUMN) for row in run.rows):
        caption = "Content (BLEU to the sources) against style (accuracy)"
        pictures.append(
            (caption, lambda path: draw_content_style(content_style(one, run.tests), path))
        )
    if run.curves:
        start = run.curve_start
        caption = f"Validation BLEU during training, each stage from the {start} of the one before"
        pictures.append((caption, lambda path: training_curve(run.curves, path, start)))
    return pictures


def _compare(rows: Sequence[Row], path: str, tests: Sequence[Row]) -> None:
    for name in varying(rows):
        if name != "noise":
            only(name, [row.get(name, "") for row in rows])
    compare(rows, path, tests)


def _noise(
    rows: Sequence[Row], path: str, tests: Sequence[Row], published: Sequence[Row] = ()
) -> None:
    draw_noise(noise_lines(rows, published, tests), path)


def _together(runs: Sequence[Run]) -> List[Row]:
    """Raises ValueError: two runs have rows of the same system, noise and seed."""
    owner: Dict[Tuple[str, ...], int] = {}
    for i, run in enumerate(runs):
        for row in run.rows:
            key = tuple(row.get(name, "") for name in ("system", "noise", "seed"))
            if owner.setdefault(key, i) != i:  # one would hide the other
                both = f"{runs[owner[key]].title} and {run.title}"
                raise ValueError(f"two runs have rows of {identity(row)}: {both}")
    return [row for run in runs for row in run.rows]


def _first(rows: Sequence[Row], name: str) -> List[Row]:
    return [row for row in rows if row.get(name, "") == rows[0].get(name, "")]


def _draw(pictures: Sequence[_Picture], numbers: Iterator[int]) -> List[str]:
    """Pictures as HTML; one whose rows do not fit together is a line that says why."""
    drawn: List[str] = []
    if why_no_pictures():  # the page says so once
        return drawn
    with tempfile.TemporaryDirectory() as folder, for_a_page():
        for caption, draw in pictures:
            path = os.path.join(folder, "picture.svg")
            try:
                draw(path)
            except ValueError as err:
                drawn.append(part("note", f"No picture “{caption}”: {err}"))
                continue
            with open(path, encoding="utf-8") as f:
                drawn.append(parts.picture(f.read(), caption, next(numbers)))
    return drawn


def _published(rows: Sequence[Row]) -> str:
    head = ("setting", "system", "BLEU", "source")
    body = [[row["setting"], row["system"], row["bleu"], row["source"]] for row in rows]
    return parts.table(head, body)
