"""``seeds``: rows of several seeds as one line a system and noise."""

import argparse

from ...common.errors import Refused, naming
from ...common.rows import columns
from ...common.table import text_table
from ..figures.ladder import draw_ladder
from ..over_seeds import over_seeds
from .options import check_out, chosen_rows, shows_rows


def add_parser(commands) -> None:
    part = shows_rows(commands, "seeds", "mean and spread over the seeds, beside the ceiling")
    part.add_argument(
        "--ceiling",
        metavar="SYSTEM",
        default="",
        help="the system trained on clean targets: what share of its BLEU the others reach",
    )
    part.add_argument("--markdown", action="store_true")
    part.add_argument("--out", help="draw it as well, into this .png or .svg file")
    part.set_defaults(do=seeds)


def seeds(args: argparse.Namespace) -> None:
    """Print the table; draw it where a file is named."""
    if args.out is not None:
        if not args.out:
            raise Refused("--out: a file is needed, not an empty name")
        check_out(args)
    rows = chosen_rows(args)
    with naming(f"--rows {args.rows}"):
        lines = over_seeds(rows, args.ceiling)
    shown = [name for name in columns(lines) if any(line.get(name) for line in lines)]
    print(text_table(lines, shown, args.markdown))
    if args.out is not None:
        with naming(f"--out {args.out}", args.out):
            draw_ladder(rows, args.out, args.ceiling)
        print(args.out)
