"""``python -m fairseq_eisl.evaluation``: what each of its commands does."""

import argparse
import os
import sys
from typing import List, Optional

from ..common.errors import Refused, naming
from ..common.files import check_kind, read_lines, whole_file
from ..common.matplotlib_check import why_no_pictures
from ..common.provenance import provenance
from ..common.rows import Row, append_row, read_rows, select
from . import plots
from .column_plot import column_values, draw_column
from .comparison import compare_rows
from .cost_plot import draw_costs, step_costs
from .curve_plot import training_curve
from .drawing import check_picture
from .examples import format_examples, pick
from .inputs import pairs, read_hypotheses, read_reference
from .intervals import read_tests
from .iterations import iteration_lines
from .metrics.registry import SENTENCES, Job
from .metrics.scoring import scores, sentence
from .noise_levels import check_noises, noise_lines
from .noise_plot import noise as draw_noise
from .parser import PROGRAM, make_parser
from .published import NOISE, TABLE, read_published
from .report import report as make_report
from .run_folder import read_run
from .significance import format_significance, paired_bootstrap, significance_rows
from .table import format_table
from .training_log import read_curve


def score(args: argparse.Namespace) -> None:
    """Print the scores of one log; with ``--rows`` append them as a row."""
    extra = pairs("--set", args.set)
    if args.rows == "":
        raise Refused("--rows: a file is needed, not an empty name")
    references = read_reference(args.reference, plain=args.plain_words)
    hypotheses = read_hypotheses(
        f"--log {args.log}", args.log, args.reference, references, args.plain_words
    )
    job = Job(hypotheses, references, args)
    row = {
        **scores(job),
        SENTENCES: str(len(hypotheses)),
        "log": os.path.basename(args.log),
        "reference": os.path.basename(args.reference),
        **provenance(),
    }
    _check_extra(extra, row)
    print(f"{sentence(job, row)} | {row[SENTENCES]} sentences")
    if args.rows:
        with naming(f"--rows {args.rows}", args.rows):
            append_row(args.rows, {**extra, **row})


def _check_extra(extra: Row, computed: Row) -> None:
    for key, value in extra.items():
        if key in computed:
            raise Refused(f"--set {key}={value}: {key} is a computed column, use another name")


def _chosen_rows(args: argparse.Namespace) -> List[Row]:
    wanted = pairs("--where", args.where)
    with naming(f"--rows {args.rows}", args.rows):
        rows = read_rows(args.rows)
        if not rows:
            raise ValueError("there is a header but no row")
    with naming(f"--where {' '.join(args.where)}"):
        return select(rows, wanted)


def _tests(args: argparse.Namespace) -> List[Row]:
    tests: List[Row] = []
    for path in args.tests:
        with naming(f"--tests {path}", path):
            tests += read_tests(path)
    return tests


def table(args: argparse.Namespace) -> None:
    """Print rows as a table."""
    rows = _chosen_rows(args)
    with naming(f"--columns {' '.join(args.columns or ())}"):
        text = format_table(rows, args.columns, args.markdown)
    print(text)


def plot(args: argparse.Namespace) -> None:
    """Draw rows."""
    with naming(f"--out {args.out}", args.out):
        check_picture(args.out)
        check_kind(args.out)
    published = []
    if args.published:
        with naming(f"--published {args.published}", args.published):
            if args.kind != "noise":
                raise ValueError(f"belongs to --kind noise, not to --kind {args.kind}")
            published = read_published(args.published, NOISE)
            check_noises(published)
    if (args.kind == "column") != bool(args.column):
        raise Refused("--column NAME and --kind column belong together")
    if args.tests and args.kind == "cost":
        raise Refused("--tests are of BLEU, which --kind cost does not draw")
    tests = _tests(args)
    rows = _chosen_rows(args)
    with naming(f"--rows {args.rows}"):
        if args.kind == "noise":
            data = noise_lines(rows, published, tests)
        elif args.kind == "column":
            values = column_values(rows, args.column, tests)
        elif args.kind == "cost":
            costs = step_costs(rows)
        else:
            compare_rows(rows)
    with naming(f"--out {args.out}", args.out):
        if args.kind == "noise":
            draw_noise(data, args.out)
        elif args.kind == "column":
            draw_column(values, args.out)
        elif args.kind == "cost":
            draw_costs(costs, args.out)
        else:
            plots.compare(rows, args.out, tests)
    print(args.out)


def iterations(args: argparse.Namespace) -> None:
    """Draw rows against the number of refinement iterations."""
    with naming(f"--out {args.out}", args.out):
        check_picture(args.out)
        check_kind(args.out)
    tests = _tests(args)
    rows = _chosen_rows(args)
    with naming(f"--rows {args.rows}"):
        data = iteration_lines(rows, tests)
    with naming(f"--out {args.out}", args.out):
        plots.iterations(data, args.out)
    print(args.out)


def curve(args: argparse.Namespace) -> None:
    """Draw validations out of training logs."""
    with naming(f"--out {args.out}", args.out):
        check_picture(args.out)
        check_kind(args.out)
    curves = {}
    for name, path in pairs("--log", args.log, files=True).items():
        with naming(f"--log {name}={path}", path):
            curves[name] = read_curve(path)
    with naming(f"--out {args.out}", args.out):
        training_curve(curves, args.out, args.start, args.title)
    print(args.out)


def examples(args: argparse.Namespace) -> None:
    """Print sentences of several systems side by side."""
    logs = pairs("--system", args.system, files=True)
    with naming(f"--source {args.source}", args.source):
        source = read_lines(args.source)
    references = read_reference(args.reference, plain=args.plain_words)
    if len(source) != len(references):
        raise Refused(
            f"--reference {args.reference}: {len(references)} lines for the {len(source)} of "
            f"--source {args.source}"
        )
    systems = {
        name: read_hypotheses(
            f"--system {name}={path}", path, args.reference, references, args.plain_words
        )
        for name, path in logs.items()
    }
    print(format_examples(source, references, systems, pick(args.n, len(source), args.seed)))


def significance(args: argparse.Namespace) -> None:
    """Print a paired bootstrap; with ``--rows`` append a row for each system."""
    logs = pairs("--system", args.system, files=True)
    extra = pairs("--set", args.set)
    if args.rows == "":
        raise Refused("--rows: a file is needed, not an empty name")
    references = read_reference(args.reference, plain=args.plain_words)
    systems = {
        name: read_hypotheses(
            f"--system {name}={path}", path, args.reference, references, args.plain_words
        )
        for name, path in logs.items()
    }
    with naming(f"--system {' '.join(args.system)}"):
        result = paired_bootstrap(
            systems, references, args.n, args.seed, args.tokenize, args.lowercase
        )
    rows = [{**row, "sentences": str(len(references))} for row in significance_rows(result)]
    known = {"reference": os.path.basename(args.reference), **provenance()}
    _check_extra(extra, {**rows[0], "log": "", **known})
    print(format_significance(result))
    for row, log in zip(rows, logs.values()) if args.rows else ():
        with naming(f"--rows {args.rows}", args.rows):
            append_row(args.rows, {**extra, **row, "log": os.path.basename(log), **known})


def report(args: argparse.Namespace) -> None:
    """Write the page of one run or several."""
    if not args.out.lower().endswith((".html", ".htm")):
        raise Refused(f"--out {args.out}: a page ends in .html")
    with naming(f"--out {args.out}", args.out):
        check_kind(args.out)
    if why_no_pictures():
        print(f"{PROGRAM}: the page has no pictures: {why_no_pictures()}", file=sys.stderr)
    published = []
    if args.published:
        with naming(f"--published {args.published}", args.published):
            published = read_published(args.published, TABLE)
    runs = []
    for folder in args.run:
        with naming(f"--run {folder}", folder):
            runs.append(read_run(folder, args.plain_words))
    with naming(f"--run {' '.join(args.run)}"):
        page = make_report(runs, published, args.title, args.n, args.seed)
    with naming(f"--out {args.out}", args.out):
        with whole_file(args.out) as temporary, open(temporary, "w", encoding="utf-8") as f:
            f.write(page)
    print(args.out)


_COMMANDS = (score, table, plot, iterations, curve, examples, significance, report)


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; 0 if it went well. Exits with 2 and one line on a wrong input."""
    parser = make_parser()
    args = parser.parse_args(argv)
    commands = {command.__name__: command for command in _COMMANDS}
    try:
        commands[args.command](args)
    except Refused as err:
        parser.error(str(err))
    return 0
