"""``plot``: rows as a picture."""

import argparse
from typing import Any, Callable, Dict, List, Sequence

from ...common.errors import Refused, naming
from ...common.rows import Row
from ..figures.column import column_values, draw_column
from ..figures.compare import compare
from ..figures.comparison import compare_rows
from ..figures.content_style import content_style, draw_content_style
from ..figures.cost import draw_costs, step_costs
from ..figures.exact import draw_exact, exact_values
from ..figures.gradients import draw_gradients, gradient_shares
from ..figures.noise import noise
from ..figures.noise_levels import check_noises, noise_lines
from ..figures.selection import draw_selection, selection_values
from ..figures.sensitivity import draw_sensitivity, sensitivity_values
from ..readers.published import NOISE, read_published
from .options import check_out, chosen_rows, draws, known_tests, knows_tests, shows_rows

_Draw = Callable[[str], None]


def add_parser(commands) -> None:
    part = shows_rows(commands, "plot", "rows as a picture")
    part.add_argument(
        "--kind",
        choices=tuple(_KINDS),
        default="compare",
        help="compare: bars of BLEU, repetition and length; noise: BLEU against the level of "
        "noise; column: BLEU against --column; style: BLEU to the sources against accuracy; cost: "
        "time of an epoch, from rows of scripts/benchmarks/steps.py; sensitivity, exact, "
        "selection, gradients: from rows of python -m fairseq_eisl.analyses (default: %(default)s)",
    )
    part.add_argument(
        "--column", metavar="NAME", help="with --kind column: pairs, ngram, or what rows have"
    )
    draws(part)
    part.add_argument(
        "--published",
        metavar="CSV",
        help="with --kind noise: a paper's numbers, columns noise, system, bleu; drawn faintly",
    )
    knows_tests(part)
    part.set_defaults(do=plot)


def plot(args: argparse.Namespace) -> None:
    """Draw rows."""
    check_out(args)
    published = _published(args)
    if (args.kind == "column") != bool(args.column):
        raise Refused("--column NAME and --kind column belong together")
    if args.tests and args.kind not in _OF_BLEU:
        raise Refused(f"--tests are of BLEU, which --kind {args.kind} does not draw")
    tests = known_tests(args)
    rows = chosen_rows(args)
    with naming(f"--rows {args.rows}"):
        draw = _KINDS[args.kind](args, rows, published, tests)
    with naming(f"--out {args.out}", args.out):
        draw(args.out)
    print(args.out)


def _published(args: argparse.Namespace) -> List[Row]:
    if not args.published:
        return []
    with naming(f"--published {args.published}", args.published):
        if args.kind != "noise":
            raise ValueError(f"belongs to --kind noise, not to --kind {args.kind}")
        published = read_published(args.published, NOISE)
        check_noises(published)
    return published


def _compare(args, rows: Sequence[Row], published, tests: Sequence[Row]) -> _Draw:
    compare_rows(rows)
    return lambda path: compare(rows, path, tests)


def _noise(args, rows: Sequence[Row], published: Sequence[Row], tests: Sequence[Row]) -> _Draw:
    lines = noise_lines(rows, published, tests)
    return lambda path: noise(lines, path)


def _column(args, rows: Sequence[Row], published, tests: Sequence[Row]) -> _Draw:
    values = column_values(rows, args.column, tests)
    return lambda path: draw_column(values, path)


def _style(args, rows: Sequence[Row], published, tests: Sequence[Row]) -> _Draw:
    points = content_style(rows, tests)
    return lambda path: draw_content_style(points, path)


def _rows_alone(collect: Callable[[Sequence[Row]], Any], draw: Callable[[Any, str], None]):
    """A kind that is drawn from its rows and nothing else."""

    def kind(args, rows: Sequence[Row], published, tests) -> _Draw:
        data = collect(rows)
        return lambda path: draw(data, path)

    return kind


_OF_BLEU = ("compare", "noise", "column", "style")
_KINDS: Dict[str, Callable[..., _Draw]] = {
    "compare": _compare,
    "noise": _noise,
    "column": _column,
    "style": _style,
    "cost": _rows_alone(step_costs, draw_costs),
    "sensitivity": _rows_alone(sensitivity_values, draw_sensitivity),
    "exact": _rows_alone(exact_values, draw_exact),
    "selection": _rows_alone(selection_values, draw_selection),
    "gradients": _rows_alone(gradient_shares, draw_gradients),
}
