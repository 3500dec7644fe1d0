"""Runs to one HTML page that holds everything it shows."""

import os
import tempfile
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from ...common.matplotlib_check import why_no_pictures
from ...common.rows import Row
from ..examples import CHANGED, RANDOM, WORST, choose
from ..figures.canvas import for_a_page
from ..figures.compare import compare
from ..figures.curve import training_curve
from ..figures.iterations import draw_iterations, iteration_lines
from ..figures.noise import noise as draw_noise
from ..figures.noise_levels import noise_lines, several_levels
from ..readers.run_folder import Run
from ..row_checks import identity, only
from ..short_names import glossary
from ..summary import evidence, headline, varying
from . import parts as report_parts
from .overview import summary
from .page import page
from .parts import escape, folded

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

    :raises ValueError: no runs, or rows with a BLEU that is no number.
    """
    if not runs:
        raise ValueError("no runs to report")
    title = title or (runs[0].title if len(runs) == 1 else f"Results of {len(runs)} runs")
    numbers = iter(range(1, 100_000))
    runs = _told_apart(runs)
    body: List[str] = []
    if len(runs) > 1:
        body += _overview(runs, published, numbers)
    elif runs[0].title != title:
        body.append(f'<p class="note">{escape(runs[0].title)}</p>')
    reason = why_no_pictures()
    if reason:
        body.append(f'<p class="note">No pictures: {escape(reason)}</p>')
    for i, run in enumerate(runs, 1):
        if len(runs) > 1:
            body.append(f'<h2 id="run-{i}">{escape(run.title)}</h2>')
        body += _headline(run.rows, run.tests, len(run.reference))
        body += _sections(run, numbers, count, seed)
    if published:
        body.append(_published(published))
    return page(title, "\n".join(body))


def _told_apart(runs: Sequence[Run]) -> List[Run]:
    """Runs of the same title get their folder's name beside it."""
    titles = [run.title for run in runs]
    return [
        run._replace(title=f"{run.title} ({run.folder})")
        if titles.count(run.title) > 1 and run.folder not in ("", run.title)
        else run
        for run in runs
    ]


def _headline(rows: Sequence[Row], tests: Sequence[Row], size: int = 0) -> List[str]:
    return [
        f'<p class="outcome">{escape(headline(rows))}</p>',
        f'<p class="evidence">{escape(evidence(rows, tests, size))}</p>',
    ]


def _overview(runs: Sequence[Run], published: Sequence[Row], numbers: Iterator[int]) -> List[str]:
    """What all runs say together, where on the page what is, and a table of them."""
    tests = [row for run in runs for row in run.tests]
    rows = [row for run in runs for row in run.rows]
    try:
        body = _headline(_together(runs), tests)
    except ValueError as err:
        body = [f'<p class="note">Not told in one sentence: {escape(str(err))}</p>']
    drawn = several_levels(rows)
    links = [("summary", "Summary", "")]
    links += [("all-runs", "All runs in one picture", "")] if drawn else []
    links += [(f"run-{i}", run.title, f": {headline(run.rows)}") for i, run in enumerate(runs, 1)]
    links += [("published", "Published numbers", "")] if published else []
    items = "\n".join(
        f'<li><a href="#{name}">{escape(text)}</a>{escape(more)}</li>' for name, text, more in links
    )
    body.append(f'<nav class="contents">\n<h3>Contents</h3>\n<ul>\n{items}\n</ul>\n</nav>')
    body.append(f'<h3 id="summary">Summary</h3>\n{summary(runs)}')
    if drawn:
        body.append('<h3 id="all-runs">All runs</h3>')
        paper = [row for row in published if row.get("noise")]
        picture = (_NOISE, lambda path: _noise(_together(runs), path, tests, paper))
        body += _draw([picture], numbers)
    return body


def _sections(run: Run, numbers: Iterator[int], count: int, seed: int) -> List[str]:
    body = ["<h3>Results</h3>", report_parts.results(run.rows)]
    named = glossary([row["system"] for row in run.rows])
    if named:
        body.append(f'<p class="note">{escape(named)}</p>')
    if run.tests:
        body += ["<h3>Is it chance?</h3>", report_parts.significance(run.tests)]
    drawn = _draw(_pictures(run), numbers)
    if drawn:
        body += ["<h3>Pictures</h3>", *drawn]
    if run.systems:
        body += _examples(run, count, seed)
    folds = []
    if run.settings:
        folds.append(folded("Settings", report_parts.pairs(list(run.settings.items()))))
    stages = run.commands or [("as written in the rows", text) for text in _values(run, "command")]
    if stages:
        folds.append(folded("Commands", report_parts.commands(stages)))
    by = {name: ", ".join(_values(run, name)) for name in _SCORED_BY}
    known = [(name, value) for name, value in by.items() if value]
    if known:
        folds.append(folded("Scored by", report_parts.pairs(known, "scored")))
    if folds:
        inside = "\n".join(folds)
        body.append(f'<h3>How it was made</h3>\n<div class="folds">\n{inside}\n</div>')
    return body


def _examples(run: Run, count: int, seed: int) -> List[str]:
    chosen = choose(count, run.reference, run.systems, seed)
    first, *later = run.systems
    of = ", ".join(later) or first
    why = {
        CHANGED: f"chrF of {of} differs most from that of {first}",
        WORST: f"lowest chrF of {of}",
        RANDOM: f"drawn with seed {seed}",
    }
    total = sum(map(len, chosen.numbers.values()))
    body = ["<h3>Examples</h3>"]
    body.append(
        f'<p class="note">{total} of {len(run.reference)} sentences, drawn with seed {seed} where '
        "they are random. <mark>Marked</mark>: a word that equals the one before it. "
        "<del>Missing</del>: words of the reference that the output lacks. chrF: of the sentence, "
        "0 to 100.</p>"
    )
    for kind, numbers in chosen.numbers.items():
        body.append(f"<h4>{escape(f'{kind.capitalize()}: {why[kind]}')}</h4>")
        body.append(
            report_parts.examples(run.source, run.reference, run.systems, numbers, chosen.chrf)
        )
    return body


def _values(run: Run, name: str) -> List[str]:
    return list(dict.fromkeys(row[name] for row in run.rows if row.get(name)))


def _pictures(run: Run) -> List[_Picture]:
    """What can be drawn of a run: a caption, and how to draw it into a file."""
    pictures: List[_Picture] = []
    several = set(varying(run.rows)) - {"noise"}
    if "iterations" in several:
        rows = _first(run.rows, "length_candidates")
        pictures.append(
            (
                "Scores against refinement iterations",
                lambda path: draw_iterations(iteration_lines(rows, run.tests), path),
            )
        )
    else:
        one = _first(run.rows, "length_candidates")
        pictures.append(("Scores of the systems", lambda path: _compare(one, path, run.tests)))
    if several_levels(run.rows):
        pictures.append((_NOISE, lambda path: _noise(run.rows, path, run.tests)))
    if run.curves:
        caption = "Validation BLEU during training, each stage from the best of the one before"
        pictures.append((caption, lambda path: training_curve(run.curves, path)))
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
    """:raises ValueError: two runs have rows of the same system, noise and seed."""
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
                text = escape(f"No picture “{caption}”: {err}")
                drawn.append(f'<p class="note">{text}</p>')
                continue
            with open(path, encoding="utf-8") as f:
                drawn.append(report_parts.picture(f.read(), caption, next(numbers)))
    return drawn


def _published(rows: Sequence[Row]) -> str:
    head = ("setting", "system", "BLEU", "source")
    body = [[row["setting"], row["system"], row["bleu"], row["source"]] for row in rows]
    return (
        '<section class="published" id="published">\n'
        "<h3>Published numbers: the paper’s, not ours</h3>\n"
        '<p class="note">Copied from where the last column says. They come from other models, '
        "data and kinds of BLEU, and are not to be subtracted from the numbers above.</p>\n"
        f"{report_parts.table(head, body)}\n</section>"
    )
