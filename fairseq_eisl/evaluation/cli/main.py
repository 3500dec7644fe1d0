"""The commands together: one of them runs, what it refuses is one line."""

import argparse
from typing import List, NoReturn, Optional

from ...common.errors import Refused
from .. import PROGRAM
from . import curve, examples, iterations, mbr, plot, report, score, seeds, significance, table

DESCRIPTION = "Scores the outputs of fairseq-generate, and shows the scores."
_COMMANDS = (score, mbr, table, seeds, plot, iterations, curve, examples, significance, report)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser; ``args.command`` is the name of the command, ``args.do`` its function."""
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; 0 if it went well. Exits with 2 and one line on a wrong input."""
    parser = make_parser()
    args = parser.parse_args(argv)
    try:
        args.do(args)
    except Refused as err:
        parser.error(str(err))
    return 0
