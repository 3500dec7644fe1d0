"""``mbr``: of the samples of each sentence, the one that is most like the others."""

import argparse
import math
import os
import re
import time
from typing import Iterator, List

from ...common.errors import Refused, naming
from ...common.files import whole_file
from ..mbr import UTILITIES, Choice, choose, utility_of
from ..readers.inputs import warn
from ..readers.sample_log import Samples, read_all_samples
from .options import MANY, says_how

_EVERY = 10.0  # seconds between two lines of progress
_OF_A_LOG = re.compile(rb"[HD]-\d+\t")


def add_parser(commands) -> None:
    part = commands.add_parser("mbr", help="choose among samples by minimum Bayes risk")
    part.add_argument(
        "--log",
        required=True,
        help="a log of fairseq-generate with several hypotheses a sentence (--sampling --beam 16 "
        "--nbest 16), or logs of several seeds",
        **MANY,
    )
    part.add_argument(
        "--utility",
        choices=UTILITIES,
        default=UTILITIES[0],
        help="what a sample is compared with the others by, sacrebleu's (default: %(default)s)",
    )
    part.add_argument(
        "--out",
        required=True,
        help="a log of the chosen ones, for score and significance; the score in it is the mean "
        "utility, 0 to 100",
    )
    says_how(part)
    part.set_defaults(do=mbr)


def mbr(args: argparse.Namespace) -> None:
    """Write a log of the chosen hypotheses, print one line."""
    _check_out(args)
    samples = read_all_samples("--log", args.log, args.plain_words)
    if all(len(sentence.texts) == 1 for sentence in samples):
        raise Refused(
            f"--log {' '.join(args.log)}: one hypothesis a sentence, there is nothing to choose "
            "from: generate with --sampling --beam 16 --nbest 16, or name the logs of several seeds"
        )
    if args.utility == "chrf" and args.tokenize != "none":
        warn(f"--tokenize {args.tokenize}: no effect with --utility chrf")
    utility = utility_of(args.utility, args.tokenize, args.lowercase)
    choices = [choose(each.texts, utility) for each in _told(samples)]
    lines = [line for i, each in enumerate(samples) for line in _lines(i, each, choices[i])]
    with naming(f"--out {args.out}", args.out), whole_file(args.out) as path:
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write("".join(f"{line}\n" for line in lines))
    print(_summary(args, samples, choices, utility.signature))


def _check_out(args: argparse.Namespace) -> None:
    for log in args.log:
        if os.path.exists(args.out) and os.path.exists(log) and os.path.samefile(args.out, log):
            raise Refused(f"--out {args.out}: this is a --log, it will not be replaced")
    if not os.path.isfile(args.out) or not os.path.getsize(args.out):
        return
    with naming(f"--out {args.out}", args.out), open(args.out, "rb") as f:
        if not any(map(_OF_A_LOG.match, f)):  # a reference, say
            raise ValueError("what is there is no log of hypotheses, it will not be replaced")


def _told(samples: List[Samples]) -> Iterator[Samples]:
    """The same, and now and then a line that says how far it is."""
    begun = told = time.monotonic()
    for done, each in enumerate(samples):
        now = time.monotonic()
        if done and now - told >= _EVERY:
            left = (now - begun) / done * (len(samples) - done)
            warn(f"mbr: {done} of {len(samples)} sentences, {left:.0f} s left")
            told = now
        yield each


def _lines(number: int, samples: Samples, choice: Choice) -> Iterator[str]:
    """As fairseq-generate writes them."""
    score = f"{choice.expected[choice.best]:.4f}"
    if samples.source is not None:
        yield f"S-{number}\t{samples.source}"
    if samples.reference is not None:
        yield f"T-{number}\t{samples.reference}"
    for kind, texts in (("H", samples.raw), ("D", samples.plain)):
        if texts:
            yield f"{kind}-{number}\t{score}\t{texts[choice.best]}"


def _summary(
    args: argparse.Namespace, samples: List[Samples], choices: List[Choice], signature: str
) -> str:
    sizes = sorted({len(each.texts) for each in samples})
    number = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    several = [choice for choice in choices if len(choice.expected) > 1]
    best = math.fsum(c.expected[c.best] for c in several) / len(several)
    mean = math.fsum(math.fsum(c.expected) / len(c.expected) for c in several) / len(several)
    return (
        f"{args.out} | {len(samples)} sentences of {number} samples | {args.utility} against the "
        f"other samples: {best:.2f} of the chosen, {mean:.2f} of all ({signature})"
    )
