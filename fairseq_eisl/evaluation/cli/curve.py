"""``curve``: validations out of training logs, as a picture."""

import argparse

from ...common.errors import naming
from ..figures.curve import STARTS, training_curve
from ..readers.inputs import pairs
from ..readers.training_log import read_curve
from .options import MANY, check_out, draws


def add_parser(commands) -> None:
    part = commands.add_parser("curve", help="validation BLEU of training logs as a picture")
    part.add_argument(
        "--log",
        required=True,
        metavar="NAME=FILE",
        help="a log of fairseq-train for each stage, in order: --log CE=ce.log EISL=eisl.log",
        **MANY,
    )
    draws(part)
    part.add_argument(
        "--start",
        choices=STARTS,
        default="best",
        help="where a stage begins: at the best or the last validation of the stage before, "
        "or at zero (default: %(default)s)",
    )
    part.add_argument("--title", default="", help="say the data, noise and seed here")
    part.set_defaults(do=curve)


def curve(args: argparse.Namespace) -> None:
    """Draw validations out of training logs."""
    check_out(args)
    curves = {}
    for name, path in pairs("--log", args.log, files=True).items():
        with naming(f"--log {name}={path}", path):
            curves[name] = read_curve(path)
    with naming(f"--out {args.out}", args.out):
        training_curve(curves, args.out, args.start, args.title)
    print(args.out)
