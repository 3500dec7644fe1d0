"""``significance``: a paired bootstrap of BLEU."""

import argparse
import os

from ...common.errors import naming
from ...common.provenance import provenance
from ...common.rows import append_row
from ..readers.inputs import pairs, read_reference
from ..significance import LEAST, MOST, format_significance, paired_bootstrap, significance_rows
from .options import MANY, check_extra, check_rows_file, hypotheses_of, positive, says_how


def _resamples(text: str) -> int:
    if not LEAST <= positive(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{LEAST} to {MOST} resamples are needed, not {text!r}")
    return int(text)


def add_parser(commands) -> None:
    part = commands.add_parser(
        "significance", help="paired bootstrap of BLEU, each system against the first"
    )
    part.add_argument("--reference", required=True, help="reference words, a sentence a line")
    part.add_argument(
        "--system",
        required=True,
        metavar="NAME=LOG",
        help="a fairseq-generate log each, the baseline first",
        **MANY,
    )
    part.add_argument(
        "-n",
        type=_resamples,
        default=1000,
        help=f"how many resamples, {LEAST} to {MOST} (default: %(default)s)",
    )
    part.add_argument("--seed", type=positive, default=1, help="draws them (default: %(default)s)")
    part.add_argument("--rows", help="CSV file of such tests to append to, not that of score")
    part.add_argument("--set", metavar="KEY=VALUE", default=[], help="further columns", **MANY)
    says_how(part)
    part.set_defaults(do=significance)


def significance(args: argparse.Namespace) -> None:
    """Print a paired bootstrap; with ``--rows`` append a row for each system."""
    logs = pairs("--system", args.system, files=True)
    extra = pairs("--set", args.set)
    check_rows_file(args)
    references = read_reference(args.reference, plain=args.plain_words)
    systems = hypotheses_of(args, logs, references)
    with naming(f"--system {' '.join(args.system)}"):
        result = paired_bootstrap(
            systems, references, args.n, args.seed, args.tokenize, args.lowercase
        )
    rows = [{**row, "sentences": str(len(references))} for row in significance_rows(result)]
    known = {"reference": os.path.basename(args.reference), **provenance()}
    check_extra(extra, {**rows[0], "log": "", **known})
    print(format_significance(result))
    for row, log in zip(rows, logs.values()) if args.rows else ():
        with naming(f"--rows {args.rows}", args.rows):
            append_row(args.rows, {**extra, **row, "log": os.path.basename(log), **known})
