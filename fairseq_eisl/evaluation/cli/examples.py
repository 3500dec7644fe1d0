"""``examples``: sentences of several systems side by side."""

import argparse

from ...common.errors import Refused, naming
from ...common.files import read_lines
from ..examples import format_examples, pick
from ..readers.inputs import pairs, read_reference
from .options import MANY, hypotheses_of, positive, reads_words


def add_parser(commands) -> None:
    part = commands.add_parser("examples", help="outputs of several systems side by side")
    part.add_argument("--source", required=True, help="source words, a sentence a line")
    part.add_argument("--reference", required=True, help="reference words, a sentence a line")
    part.add_argument(
        "--system", required=True, metavar="NAME=FILE", help="a fairseq-generate log each", **MANY
    )
    reads_words(part)
    part.add_argument("-n", type=positive, default=5, help="how many (default: %(default)s)")
    part.add_argument("--seed", type=int, default=1, help="picks them (default: %(default)s)")
    part.set_defaults(do=examples)


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
    systems = hypotheses_of(args, logs, references)
    print(format_examples(source, references, systems, pick(args.n, len(source), args.seed)))
