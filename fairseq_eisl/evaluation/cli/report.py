"""``report``: the page of one run or several."""

import argparse
import sys

from ...common.errors import Refused, naming
from ...common.files import check_kind, whole_file
from ...common.matplotlib_check import why_no_pictures
from .. import PROGRAM
from ..readers.published import TABLE, read_published
from ..readers.run_folder import read_run
from ..report import content
from .options import MANY, positive, reads_words


def add_parser(commands) -> None:
    part = commands.add_parser("report", help="one HTML page of one run or several")
    part.add_argument(
        "--run",
        required=True,
        metavar="DIR",
        help="a folder with rows.csv and, if there is one, report.json",
        **MANY,
    )
    part.add_argument("--out", required=True, help="an .html file")
    part.add_argument(
        "--published",
        metavar="CSV",
        help="a paper's numbers, columns setting, system, bleu, source; shown apart (with "
        "noise, too, also faintly in the picture of several runs)",
    )
    reads_words(part)
    part.add_argument("--title", default="", help="of the page, otherwise the run's own")
    part.add_argument(
        "-n",
        type=positive,
        default=8,
        help="how many examples of a run: most changed, worst and random (default: %(default)s)",
    )
    part.add_argument(
        "--seed", type=int, default=1, help="draws the random ones (default: %(default)s)"
    )
    part.set_defaults(do=report)


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
        page = content.report(runs, published, args.title, args.n, args.seed)
    with naming(f"--out {args.out}", args.out):
        with whole_file(args.out) as temporary, open(temporary, "w", encoding="utf-8") as f:
            f.write(page)
    print(args.out)
