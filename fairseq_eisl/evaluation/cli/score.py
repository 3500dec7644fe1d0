"""``score``: the scores of one log."""

import argparse
import os

from ...common.errors import naming
from ...common.provenance import provenance
from ...common.rows import append_row
from ..metrics.registry import SENTENCES, Job, registered
from ..metrics.scoring import scores, sentence
from ..readers.inputs import pairs, read_hypotheses, read_reference
from .options import MANY, check_extra, check_rows_file, says_how


def add_parser(commands) -> None:
    part = commands.add_parser("score", help="score a log of fairseq-generate, append a row")
    part.add_argument("--log", required=True, help="standard output of fairseq-generate")
    part.add_argument(
        "--reference",
        required=True,
        help="the plain words, a sentence a line (the T lines of the log do not do: words "
        "outside the dictionary are <unk> there)",
    )
    part.add_argument("--rows", help="CSV file to append to")
    part.add_argument(
        "--set",
        metavar="KEY=VALUE",
        default=[],
        help="further columns; plot needs system=, test_set=, seed= and uses noise=; iterations "
        "needs system= and iterations= (--iter-decode-max-iter), and uses arch= and seed=",
        **MANY,
    )
    says_how(part)
    for flag in (flag for metric in registered() for flag in metric.flags):
        part.add_argument(flag.name, metavar=flag.metavar, help=flag.help, default=flag.default)
    part.set_defaults(do=score)


def score(args: argparse.Namespace) -> None:
    """Print the scores of one log; with ``--rows`` append them as a row."""
    extra = pairs("--set", args.set)
    check_rows_file(args)
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
    check_extra(extra, row)
    print(f"{sentence(job, row)} | {row[SENTENCES]} sentences")
    if args.rows:
        with naming(f"--rows {args.rows}", args.rows):
            append_row(args.rows, {**extra, **row})
