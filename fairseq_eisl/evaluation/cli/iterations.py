"""``iterations``: rows against the number of refinement iterations, as a picture."""

import argparse

from ...common.errors import naming
from ..figures.iterations import draw_iterations, iteration_lines
from .options import check_out, chosen_rows, draws, known_tests, knows_tests, shows_rows


def add_parser(commands) -> None:
    part = shows_rows(commands, "iterations", "BLEU and repetition against refinement iterations")
    draws(part)
    knows_tests(part)
    part.set_defaults(do=iterations)


def iterations(args: argparse.Namespace) -> None:
    """Draw rows against the number of refinement iterations."""
    check_out(args)
    tests = known_tests(args)
    rows = chosen_rows(args)
    with naming(f"--rows {args.rows}"):
        data = iteration_lines(rows, tests)
    with naming(f"--out {args.out}", args.out):
        draw_iterations(data, args.out)
    print(args.out)
