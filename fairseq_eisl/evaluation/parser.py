"""The flags of ``python -m fairseq_eisl.evaluation``."""

import argparse
from typing import Any, Dict, NoReturn

from .curve_plot import STARTS
from .metrics.bleu import TOKENIZERS
from .metrics.registry import registered
from .significance import LEAST, MOST

PROGRAM = "python -m fairseq_eisl.evaluation"
DESCRIPTION = "Scores the outputs of fairseq-generate, and shows the scores."
PLOTS = ("compare", "noise", "column", "cost")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of 1 or more is needed, not {text!r}")
    return int(text)


def _resamples(text: str) -> int:
    if not LEAST <= _positive(text) <= MOST:
        raise argparse.ArgumentTypeError(f"{LEAST} to {MOST} resamples are needed, not {text!r}")
    return int(text)


def make_parser() -> argparse.ArgumentParser:
    """The parser; ``args.command`` is the name of the command."""
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    many: Dict[str, Any] = {"nargs": "+", "action": "extend"}

    def reads_words(part: argparse.ArgumentParser) -> None:
        part.add_argument(
            "--plain-words",
            action="store_true",
            help="the texts are plain words even where some look like subword pieces, which is "
            "refused otherwise",
        )

    def says_how(part: argparse.ArgumentParser) -> None:
        reads_words(part)
        part.add_argument(
            "--tokenize",
            choices=TOKENIZERS,
            default="none",
            help="sacrebleu's tokenisation for BLEU; none is for text that is tokenised "
            "(default: %(default)s)",
        )
        part.add_argument("--lowercase", action="store_true", help="lower-case both sides")

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
    says_how(part)
    for metric in registered():
        for flag in metric.flags:
            part.add_argument(flag.name, metavar=flag.metavar, help=flag.help, default=flag.default)

    def shows_rows(name: str, help: str) -> argparse.ArgumentParser:
        part = commands.add_parser(name, help=help)
        part.add_argument("--rows", required=True, help="CSV file written by score")
        part.add_argument(
            "--where", metavar="KEY=VALUE", default=[], help="only rows with these values", **many
        )
        return part

    def knows_tests(part: argparse.ArgumentParser) -> None:
        part.add_argument(
            "--tests",
            metavar="CSV",
            help="files written by significance --rows: their 95 %% intervals of BLEU become "
            "error bars, where there is one seed",
            default=[],
            **many,
        )

    part = shows_rows("table", "rows as a table")
    part.add_argument("--columns", metavar="NAME", help="columns to show, in this order", **many)
    part.add_argument("--markdown", action="store_true")

    part = shows_rows("plot", "rows as a picture")
    part.add_argument(
        "--kind",
        choices=PLOTS,
        default="compare",
        help="compare: bars of BLEU, repetition and length; noise: BLEU against the level of "
        "noise; column: BLEU against --column; cost: time of an epoch, from "
        "rows of scripts/benchmark_steps.py (default: %(default)s)",
    )
    part.add_argument(
        "--column", metavar="NAME", help="with --kind column: pairs, ngram, or what rows have"
    )
    part.add_argument("--out", required=True, help="a .png or .svg file")
    part.add_argument(
        "--published",
        metavar="CSV",
        help="with --kind noise: a paper's numbers, columns noise, system, bleu; drawn faintly",
    )
    knows_tests(part)

    part = shows_rows("iterations", "BLEU and repetition against refinement iterations")
    part.add_argument("--out", required=True, help="a .png or .svg file")
    knows_tests(part)

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
        choices=STARTS,
        default="best",
        help="where a stage begins: at the best or the last validation of the stage before, "
        "or at zero (default: %(default)s)",
    )
    part.add_argument("--title", default="", help="say the data, noise and seed here")

    part = commands.add_parser("examples", help="outputs of several systems side by side")
    part.add_argument("--source", required=True, help="source words, a sentence a line")
    part.add_argument("--reference", required=True, help="reference words, a sentence a line")
    part.add_argument(
        "--system", required=True, metavar="NAME=FILE", help="a fairseq-generate log each", **many
    )
    reads_words(part)
    part.add_argument("-n", type=_positive, default=5, help="how many (default: %(default)s)")
    part.add_argument("--seed", type=int, default=1, help="picks them (default: %(default)s)")

    part = commands.add_parser(
        "significance", help="paired bootstrap of BLEU, each system against the first"
    )
    part.add_argument("--reference", required=True, help="reference words, a sentence a line")
    part.add_argument(
        "--system",
        required=True,
        metavar="NAME=LOG",
        help="a fairseq-generate log each, the baseline first",
        **many,
    )
    part.add_argument(
        "-n",
        type=_resamples,
        default=1000,
        help=f"how many resamples, {LEAST} to {MOST} (default: %(default)s)",
    )
    part.add_argument("--seed", type=_positive, default=1, help="draws them (default: %(default)s)")
    part.add_argument("--rows", help="CSV file of such tests to append to, not that of score")
    part.add_argument("--set", metavar="KEY=VALUE", default=[], help="further columns", **many)
    says_how(part)

    part = commands.add_parser("report", help="one HTML page of one run or several")
    part.add_argument(
        "--run",
        required=True,
        metavar="DIR",
        help="a folder with rows.csv and, if there is one, report.json",
        **many,
    )
    part.add_argument("--out", required=True, help="an .html file")
    part.add_argument(
        "--published",
        metavar="CSV",
        help="a paper's numbers, columns setting, system, bleu, source; shown apart (with "
        "noise, too, also faintly in the picture of several runs)",
    )
    reads_words(part)
    part.add_argument("--title", default="", help="of the page, otherwise the run's own")
    part.add_argument(
        "-n",
        type=_positive,
        default=8,
        help="how many examples of a run: most changed, worst and random (default: %(default)s)",
    )
    part.add_argument(
        "--seed", type=int, default=1, help="draws the random ones (default: %(default)s)"
    )
    return parser
