"""``python -m fairseq_eisl.evaluation``: score, table, plot, iterations, curve, examples."""

import argparse
import contextlib
import os
import sys
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Sequence

from . import metrics, plots
from .comparison import compare_rows
from .examples import format_examples, pick
from .files import read_lines
from .generation_log import HINT, read_generation_log
from .iterations import iteration_lines
from .leftovers import check_pieces
from .provenance import provenance
from .rows import Row, append_row, read_rows, select
from .table import format_table
from .training_log import read_curve

PROGRAM = "python -m fairseq_eisl.evaluation"
DESCRIPTION = "Scores the outputs of fairseq-generate, and shows the scores."


class _Refused(Exception):
    """One line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


@contextlib.contextmanager
def _flag(given: str, path: str = "") -> Iterator[None]:
    """Turn what goes wrong in the block into one line after the flag as it was given."""
    try:
        yield
    except OSError as err:
        where = "" if err.filename in (None, path) else f"{err.filename}: "
        raise _Refused(f"{given}: {where}{err.strerror or err}") from err
    except ValueError as err:
        reason, own = str(err), f"{path}: "
        reason = reason[len(own) :] if path and reason.startswith(own) else reason
        raise _Refused(f"{given}: {reason}") from err


def _pairs(flag: str, texts: Sequence[str]) -> Dict[str, str]:
    pairs: Dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and key and value):
            raise _Refused(f"{flag} {text}: key=value is needed")
        if key in pairs:
            raise _Refused(f"{flag} {text}: {key} is given twice")
        pairs[key] = value
    return pairs


def _read_reference(path: str) -> List[str]:
    with _flag(f"--reference {path}", path):
        references = read_lines(path)
        check_pieces(references, path)
    return references


def _read_hypotheses(given: str, path: str, reference: str, references: List[str]) -> List[str]:
    with _flag(given, path):
        hypotheses = read_generation_log(path).hypotheses
        check_pieces(hypotheses, path, references)
    if len(hypotheses) != len(references):
        raise _Refused(
            f"{given}: {len(hypotheses)} hypotheses for the {len(references)} lines of "
            f"--reference {reference}: another test set? Or: {HINT}"
        )
    return hypotheses


def score(args: argparse.Namespace) -> None:
    """Print the scores of one log; with ``--rows`` append them as a row."""
    extra = _pairs("--set", args.set)
    references = _read_reference(args.reference)
    hypotheses = _read_hypotheses(f"--log {args.log}", args.log, args.reference, references)
    bleu = metrics.bleu(hypotheses, references, args.tokenize, args.lowercase)
    row = {
        "bleu": f"{bleu.score:.2f}",
        "bleu_signature": bleu.signature,
        "brevity_penalty": f"{bleu.brevity_penalty:.3f}",
        "repetition": f"{metrics.repetition_rate(hypotheses):.2f}",
        "repetition_reference": f"{metrics.repetition_rate(references):.2f}",
        "length_ratio": f"{metrics.length_ratio(hypotheses, references):.3f}",
        "length_error": f"{metrics.length_error(hypotheses, references):.2f}",
        "unk_rate": f"{metrics.unk_rate(hypotheses):.2f}",
        "words_signature": metrics.WORD_SIGNATURE,
        "sentences": str(len(hypotheses)),
        "log": os.path.basename(args.log),
        "reference": os.path.basename(args.reference),
        **provenance(),
    }
    for key, value in extra.items():
        if key in row:
            raise _Refused(f"--set {key}={value}: {key} is a computed column, use another name")
    print(
        "BLEU {bleu} ({bleu_signature}) | brevity penalty {brevity_penalty} | "
        "repeated words {repetition} % (reference {repetition_reference} %) | "
        "length ratio {length_ratio}, error {length_error} words | unknown words {unk_rate} % | "
        "{sentences} sentences".format(**row)
    )
    if args.rows:
        with _flag(f"--rows {args.rows}", args.rows):
            append_row(args.rows, {**extra, **row})


def _chosen_rows(args: argparse.Namespace) -> List[Row]:
    wanted = _pairs("--where", args.where)
    with _flag(f"--rows {args.rows}", args.rows):
        rows = read_rows(args.rows)
        if not rows:
            raise ValueError("there is a header but no row")
    with _flag(f"--where {' '.join(args.where)}"):
        return select(rows, wanted)


def table(args: argparse.Namespace) -> None:
    """Print rows as a table."""
    rows = _chosen_rows(args)
    with _flag(f"--columns {' '.join(args.columns or ())}"):
        print(format_table(rows, args.columns, args.markdown))


def plot(args: argparse.Namespace) -> None:
    """Draw rows."""
    with _flag(f"--out {args.out}", args.out):
        plots.check_extension(args.out)
    rows = _chosen_rows(args)
    with _flag(f"--rows {args.rows}"):
        compare_rows(rows)
    with _flag(f"--out {args.out}", args.out):
        plots.compare(rows, args.out)
    print(args.out)


def iterations(args: argparse.Namespace) -> None:
    """Draw rows against the number of refinement iterations."""
    with _flag(f"--out {args.out}", args.out):
        plots.check_extension(args.out)
    rows = _chosen_rows(args)
    with _flag(f"--rows {args.rows}"):
        data = iteration_lines(rows)
    with _flag(f"--out {args.out}", args.out):
        plots.iterations(data, args.out)
    print(args.out)


def curve(args: argparse.Namespace) -> None:
    """Draw validations out of training logs."""
    with _flag(f"--out {args.out}", args.out):
        plots.check_extension(args.out)
    curves = {}
    for name, path in _pairs("--log", args.log).items():
        with _flag(f"--log {name}={path}", path):
            curves[name] = read_curve(path)
    with _flag(f"--out {args.out}", args.out):
        plots.training_curve(curves, args.out, args.start, args.title)
    print(args.out)


def examples(args: argparse.Namespace) -> None:
    """Print sentences of several systems side by side."""
    logs = _pairs("--system", args.system)
    with _flag(f"--source {args.source}", args.source):
        source = read_lines(args.source)
    references = _read_reference(args.reference)
    if len(source) != len(references):
        raise _Refused(
            f"--reference {args.reference}: {len(references)} lines for the {len(source)} of "
            f"--source {args.source}"
        )
    systems = {
        name: _read_hypotheses(f"--system {name}={path}", path, args.reference, references)
        for name, path in logs.items()
    }
    print(format_examples(source, references, systems, pick(args.n, len(source), args.seed)))


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of 1 or more is needed, not {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    many: Dict[str, Any] = {"nargs": "+", "action": "extend"}

    part: argparse.ArgumentParser
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
        **many,
    )
    part.add_argument(
        "--tokenize",
        choices=metrics.TOKENIZERS,
        default="none",
        help="sacrebleu's tokenisation; none is for text that is tokenised (default: %(default)s)",
    )
    part.add_argument("--lowercase", action="store_true", help="lower-case both for BLEU")
    part.set_defaults(run=score)

    def shows_rows(name: str, help: str) -> argparse.ArgumentParser:
        part = commands.add_parser(name, help=help)
        part.add_argument("--rows", required=True, help="CSV file written by score")
        part.add_argument(
            "--where", metavar="KEY=VALUE", default=[], help="only rows with these values", **many
        )
        return part

    part = shows_rows("table", "rows as a table")
    part.add_argument("--columns", metavar="NAME", help="columns to show, in this order", **many)
    part.add_argument("--markdown", action="store_true")
    part.set_defaults(run=table)

    part = shows_rows("plot", "rows as a picture")
    part.add_argument("--kind", choices=["compare"], default="compare")
    part.add_argument("--out", required=True, help="a .png or .svg file")
    part.set_defaults(run=plot)

    part = shows_rows("iterations", "BLEU and repetition against refinement iterations")
    part.add_argument("--out", required=True, help="a .png or .svg file")
    part.set_defaults(run=iterations)

    part = commands.add_parser("curve", help="validation BLEU of training logs as a picture")
    part.add_argument(
        "--log",
        required=True,
        metavar="NAME=FILE",
        help="a log of fairseq-train for each stage, in order: --log CE=ce.log EISL=eisl.log",
        **many,
    )
    part.add_argument("--out", required=True, help="a .png or .svg file")
    part.add_argument(
        "--start",
        choices=plots.STARTS,
        default="best",
        help="where a stage begins: at the best or the last validation of the stage before, "
        "or at zero (default: %(default)s)",
    )
    part.add_argument("--title", default="", help="say the data, noise and seed here")
    part.set_defaults(run=curve)

    part = commands.add_parser("examples", help="outputs of several systems side by side")
    part.add_argument("--source", required=True, help="source words, a sentence a line")
    part.add_argument("--reference", required=True, help="reference words, a sentence a line")
    part.add_argument(
        "--system", required=True, metavar="NAME=FILE", help="a fairseq-generate log each", **many
    )
    part.add_argument("-n", type=_positive, default=5, help="how many (default: %(default)s)")
    part.add_argument("--seed", type=int, default=1, help="picks them (default: %(default)s)")
    part.set_defaults(run=examples)
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; 0 if it went well. Exits with 2 and one line on a wrong input."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        args.run(args)
        sys.stdout.flush()
    except _Refused as err:
        parser.error(str(err))
    except BrokenPipeError:  # `| head` closed the pipe: no more output is wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
