"""``table``: rows as a table."""

import argparse

from ...common.errors import naming
from ..table import format_table
from .options import MANY, chosen_rows, shows_rows


def add_parser(commands) -> None:
    part = shows_rows(commands, "table", "rows as a table")
    part.add_argument("--columns", metavar="NAME", help="columns to show, in this order", **MANY)
    part.add_argument("--markdown", action="store_true")
    part.set_defaults(do=table)


def table(args: argparse.Namespace) -> None:
    """Print rows as a table."""
    rows = chosen_rows(args)
    with naming(f"--columns {' '.join(args.columns or ())}"):
        text = format_table(rows, args.columns, args.markdown)
    print(text)
