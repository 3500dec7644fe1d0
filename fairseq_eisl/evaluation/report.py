"""Runs to one HTML page that holds everything it shows."""

import os
import tempfile
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from . import plots, report_parts
from .comparison import identity, only
from .examples import pick
from .iterations import iteration_lines
from .noise_levels import noise_lines, several_levels
from .noise_plot import noise as draw_noise
from .outcome import sentence, varying
from .report_page import page
from .rows import Row
from .run_folder import Run

_SCORED_BY = ("commit", "date", "python", "torch", "fairseq", "sacrebleu", "cpu", "cores")
_Picture = Tuple[str, Callable[[str], None]]


def report(
    runs: Sequence[Run],
    published: Sequence[Row] = (),
    title: str = "",
    count: int = 8,
    seed: int = 1,
) -> str:
    """The page. ``published``: rows of a paper, shown apart, and faintly in the picture of all
    runs where they have a ``noise``. ``count``: examples of a run.

    The same runs give the same page.

    :raises ValueError: no runs, or rows with a BLEU that is no number.
    """
    if not runs:
        raise ValueError("no runs to report")
    title = title or (runs[0].title if len(runs) == 1 else f"Results of {len(runs)} runs")
    numbers = iter(range(1, 1000))
    body: List[str] = []
    if len(runs) > 1:
        links = "\n".join(
            f'<li><a href="#run-{i}">{report_parts.escape(run.title)}</a>: '
            f"{report_parts.escape(sentence(run.rows))}</li>"
            for i, run in enumerate(runs, 1)
        )
        body.append(f'<ul class="outcome">\n{links}\n</ul>')
        if several_levels([row for run in runs for row in run.rows]):
            body.append("<h3>All runs</h3>")
            caption = "BLEU against the level of noise"
            paper = [row for row in published if row.get("noise")]
            body += _draw([(caption, lambda path: _noise(_together(runs), path, paper))], numbers)
    for i, run in enumerate(runs, 1):
        if len(runs) > 1:
            body.append(f'<h2 id="run-{i}">{report_parts.escape(run.title)}</h2>')
        elif run.title != title:
            body.append(f'<p class="note">{report_parts.escape(run.title)}</p>')
        body.append(f'<p class="outcome">{report_parts.escape(sentence(run.rows))}</p>')
        body += _sections(run, numbers, count, seed)
    if published:
        body.append(_published(published))
    return page(title, "\n".join(body))


def _sections(run: Run, numbers: Iterator[int], count: int, seed: int) -> List[str]:
    body = []
    if run.settings:
        body += ["<h3>Settings</h3>", report_parts.pairs(list(run.settings.items()))]
    stages = run.commands or [("as written in the rows", text) for text in _values(run, "command")]
    if stages:
        body += ["<h3>Commands</h3>", report_parts.commands(stages)]
    body += ["<h3>Results</h3>", report_parts.results(run.rows)]
    if run.tests:
        body += ["<h3>Is it chance?</h3>", report_parts.significance(run.tests)]
    by = {name: ", ".join(_values(run, name)) for name in _SCORED_BY}
    known = [(name, value) for name, value in by.items() if value]
    if known:
        body += ['<p class="note">Scored by:</p>', report_parts.pairs(known, "scored")]
    body += ["<h3>Pictures</h3>", *_draw(_pictures(run), numbers)]
    if run.systems:
        chosen = pick(count, len(run.reference), seed)
        body.append("<h3>Examples</h3>")
        body.append(
            f'<p class="note">{len(chosen)} of {len(run.reference)} sentences, drawn with seed '
            f"{seed}. <mark>Marked</mark>: a word that equals the one before it. "
            "<del>Missing</del>: words of the reference that the output lacks.</p>"
        )
        body.append(report_parts.examples(run.source, run.reference, run.systems, chosen))
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
                lambda path: plots.iterations(iteration_lines(rows), path),
            )
        )
    else:
        one = _first(run.rows, "length_candidates")
        pictures.append(("Scores of the systems", lambda path: _compare(one, path)))
    if several_levels(run.rows):
        caption = "BLEU against the level of noise"
        pictures.append((caption, lambda path: _noise(run.rows, path)))
    if run.curves:
        caption = "Validation BLEU during training, each stage from the best of the one before"
        pictures.append((caption, lambda path: plots.training_curve(run.curves, path)))
    return pictures


def _compare(rows: Sequence[Row], path: str) -> None:
    for name in varying(rows):
        if name != "noise":
            only(name, [row.get(name, "") for row in rows])
    plots.compare(rows, path)


def _noise(rows: Sequence[Row], path: str, published: Sequence[Row] = ()) -> None:
    draw_noise(noise_lines(rows, published), path)


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
    drawn = []
    with tempfile.TemporaryDirectory() as folder:
        for caption, draw in pictures:
            path = os.path.join(folder, "picture.svg")
            try:
                draw(path)
            except ValueError as err:
                text = report_parts.escape(f"No picture “{caption}”: {err}")
                drawn.append(f'<p class="note">{text}</p>')
                continue
            with open(path, encoding="utf-8") as f:
                drawn.append(report_parts.picture(f.read(), caption, next(numbers)))
    return drawn


def _published(rows: Sequence[Row]) -> str:
    head = ("setting", "system", "BLEU", "source")
    body = [[row["setting"], row["system"], row["bleu"], row["source"]] for row in rows]
    return (
        '<section class="published">\n<h3>Published numbers: the paper’s, not ours</h3>\n'
        '<p class="note">Copied from where the last column says. They come from other models, '
        "data and kinds of BLEU, and are not to be subtracted from the numbers above.</p>\n"
        f"{report_parts.table(head, body)}\n</section>"
    )
