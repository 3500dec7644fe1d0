"""The commands together: one of them runs, what it refuses is one line."""

import argparse
import contextlib
import importlib
import logging
import sys
import warnings
from typing import Iterator, List, NoReturn, Optional

from ..common.errors import Refused
from . import PROGRAM

DESCRIPTION = """\
Analyses of the Edit-Invariant Sequence Loss on trained models: each prints a table, appends rows
to a CSV file (--rows) and draws a figure (--out)."""
_COMMANDS = ("sensitivity", "exact", "ngrams", "selection", "gradients")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser; ``args.do`` is the function of the chosen command."""
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name in _COMMANDS:
        importlib.import_module(f".{name}", __package__).add_parser(commands)
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; 0 if it went well. Exits with 2 and one line on a wrong input."""
    with _no_chatter():
        parser = make_parser()
        args = parser.parse_args(argv)
        args.argv = (*PROGRAM.split(), *(sys.argv[1:] if argv is None else argv))
        try:
            args.do(args)
        except Refused as err:
            parser.error(str(err))
    return 0


@contextlib.contextmanager
def _no_chatter() -> Iterator[None]:
    """Warnings alone: fairseq logs much while it is imported, and sets the root logger to all."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with warnings.catch_warnings():
            # of torch, on the two masks that fairseq's attention has
            warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask")
            yield
    finally:
        logging.disable(before)
