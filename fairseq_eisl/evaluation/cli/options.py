"""Flags that several commands have, and what they name."""

import argparse
from typing import Any, Dict, List, Mapping

from ...common.errors import Refused, naming
from ...common.files import check_kind
from ...common.rows import Row, read_rows, select
from ..figures.canvas import check_picture
from ..intervals import read_tests
from ..metrics.bleu import TOKENIZERS
from ..readers.inputs import pairs, read_hypotheses

MANY: Dict[str, Any] = {"nargs": "+", "action": "extend"}


def positive(text: str) -> int:
    """The type of a number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of 1 or more is needed, not {text!r}")
    return int(text)


def reads_words(part: argparse.ArgumentParser) -> None:
    """Add what a command that reads texts takes."""
    part.add_argument(
        "--plain-words",
        action="store_true",
        help="the texts are plain words even where some look like subword pieces, which is "
        "refused otherwise",
    )


def says_how(part: argparse.ArgumentParser) -> None:
    """Add what a command that scores texts takes."""
    reads_words(part)
    part.add_argument(
        "--tokenize",
        choices=TOKENIZERS,
        default="none",
        help="sacrebleu's tokenisation for BLEU; none is for text that is tokenised "
        "(default: %(default)s)",
    )
    part.add_argument("--lowercase", action="store_true", help="lower-case both sides")


def shows_rows(commands, name: str, help: str) -> argparse.ArgumentParser:
    """Add a command that shows rows."""
    part = commands.add_parser(name, help=help)
    part.add_argument("--rows", required=True, help="CSV file written by score")
    part.add_argument(
        "--where",
        metavar="KEY=VALUE",
        default=[],
        help="only rows with these values; KEY=: those without one",
        **MANY,
    )
    return part


def knows_tests(part: argparse.ArgumentParser) -> None:
    """Add what a command that draws intervals takes."""
    part.add_argument(
        "--tests",
        metavar="CSV",
        help="files written by significance --rows: their 95 %% intervals of BLEU become "
        "error bars, where there is one seed",
        default=[],
        **MANY,
    )


def draws(part: argparse.ArgumentParser) -> None:
    """Add what a command that draws a picture takes."""
    part.add_argument("--out", required=True, help="a .png or .svg file")


def check_out(args: argparse.Namespace) -> None:
    """Before any work: can the picture be drawn?"""
    with naming(f"--out {args.out}", args.out):
        check_picture(args.out)
        check_kind(args.out)


def check_rows_file(args: argparse.Namespace) -> None:
    """``--rows`` of a command that appends to it where it is given."""
    if args.rows == "":
        raise Refused("--rows: a file is needed, not an empty name")


def check_extra(extra: Mapping[str, str], computed: Mapping[str, str]) -> None:
    """``--set`` overrules no column that is computed."""
    for key, value in extra.items():
        if key in computed:
            raise Refused(f"--set {key}={value}: {key} is a computed column, use another name")


def chosen_rows(args: argparse.Namespace) -> List[Row]:
    """The rows of ``--rows`` that ``--where`` wants."""
    wanted = pairs("--where", args.where, may_be_empty=True)
    with naming(f"--rows {args.rows}", args.rows):
        rows = read_rows(args.rows)
        if not rows:
            raise ValueError("there is a header but no row")
    with naming(f"--where {' '.join(args.where)}"):
        return select(rows, wanted)


def known_tests(args: argparse.Namespace) -> List[Row]:
    """The rows of all ``--tests``."""
    tests: List[Row] = []
    for path in args.tests:
        with naming(f"--tests {path}", path):
            tests += read_tests(path)
    return tests


def hypotheses_of(
    args: argparse.Namespace, logs: Mapping[str, str], references: List[str]
) -> Dict[str, List[str]]:
    """The hypotheses of each ``--system``, by its name."""
    return {
        name: read_hypotheses(
            f"--system {name}={path}", path, args.reference, references, args.plain_words
        )
        for name, path in logs.items()
    }
