"""``python -m fairseq_eisl.noise``: corrupt a text, a sentence a line, as a stream."""

import argparse
import sys
import time
from typing import Iterable, List, Optional, Set, TextIO

from ..common.output import program
from ..common.text_lines import lines_of
from .operators import Context, example_rng
from .segmentation import detect_scheme, is_number, is_padding_word
from .spec import KINDS, parse_noise
from .words import whole_words

PROGRAM = program("fairseq_eisl.noise", "noise")
DESCRIPTION = """\
Corrupts a text from standard input to standard output, one sentence a line,
words separated by spaces. Line i of the output depends on (seed, i) alone, and
equals what the task noisy_translation does to example i of unsplit text, given
the same blank symbol (the task's default is the dictionary's <unk>).
"""


def _parser() -> argparse.ArgumentParser:
    kinds = "\n".join(f"  {name}:<{kind.argument}>" for name, kind in KINDS.items())
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=DESCRIPTION + "\nnoises (join several by commas):\n" + kinds,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--noise", required=True, metavar="SPEC", help="e.g. repeat:0.5")
    parser.add_argument("--seed", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument(
        "--blank-symbol",
        default="unk",
        metavar="WORD",
        help="the word that stands for a blank (default: %(default)s)",
    )
    parser.add_argument(
        "--vocabulary",
        metavar="FILE",
        help="words to draw from, the first column of each line, e.g. a fairseq dictionary "
        "(needed by substitute, insert and synthetic_released)",
    )
    return parser


def read_vocabulary(path: str) -> List[str]:
    """The first column of each non-empty line, without fairseq's padding symbols.

    Of a dictionary of pieces the whole words, as the task draws them, without marks.
    Raises ValueError for a file without a word.
    """
    with open(path, "rb") as f:
        try:
            words = [line.split()[0] for line in lines_of(f) if line.strip()]
        except ValueError as err:
            raise ValueError(f"{path}: {err}") from None
    words = [word for word in words if not is_padding_word(word)]
    scheme = detect_scheme(words, 0)
    # Numbers may be GPT-2's, but nothing here says which pieces they are.
    if scheme != "none" and not all(map(is_number, words)):
        words = whole_words(words, scheme)
    if not words:
        raise ValueError(f"there is no word in {path!r}")
    return words


LOOKED_AT = 1_000
"""So many lines are looked at for pieces of words."""


def corrupt_lines(source: Iterable[str], target: TextIO, noise, seed: int, context: Context) -> int:
    """Corrupt every line of ``source`` into ``target``; returns their number.

    Says on standard error if the words of the first lines look like pieces of words.
    """
    progress = sys.stderr.isatty()
    start, number = time.time(), 0
    seen: Set[str] = set()
    for number, line in enumerate(source, 1):
        clean = line.split()
        words = noise(clean, example_rng(seed, number - 1), context)
        target.write(" ".join(words) + "\n")
        if number <= LOOKED_AT:
            seen.update(clean)
        if number == LOOKED_AT:
            _warn_of_pieces(seen)
        if progress and number % 10_000 == 0:
            rate = number / (time.time() - start)
            print(f"\r{number:,} lines, {rate:,.0f} a second", end="", file=sys.stderr)
    if progress and number >= 10_000:
        print(file=sys.stderr)
    if number < LOOKED_AT:
        _warn_of_pieces(seen)
    return number


def _warn_of_pieces(words: Set[str]):
    scheme = detect_scheme(sorted(words), 0)
    if scheme != "none":
        print(
            f"{PROGRAM}: warning: the words look like pieces ({scheme}), and noise tears words of "
            "several pieces apart; corrupt the plain text, or train with --target-noise, which "
            "keeps pieces together",
            file=sys.stderr,
        )


def main(argv: Optional[List[str]] = None) -> int:
    parser = _parser()
    args = parser.parse_args(argv)

    def fail(message):
        parser.exit(2, f"{parser.prog}: error: {message}\n")

    vocabulary: List[str] = []
    try:
        noise = parse_noise(args.noise)
    except ValueError as err:
        fail(err)
    if args.vocabulary:
        try:
            vocabulary = read_vocabulary(args.vocabulary)
        except (ValueError, OSError) as err:
            fail(f"--vocabulary: {err}")
    # A blank that is in the file is no word to put in for another, as in training.
    vocabulary = [word for word in vocabulary if word != args.blank_symbol]
    if noise.needs_vocabulary and not vocabulary:
        fail(f"--noise {args.noise} draws random words: give them with --vocabulary FILE")
    if len(args.blank_symbol.split()) != 1:
        fail(f"--blank-symbol: one word is needed, not {args.blank_symbol!r}")
    if sys.stdin is None:
        fail("standard input is closed: the text is read from it")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    try:
        context = Context(args.blank_symbol, vocabulary)
        corrupt_lines(lines_of(sys.stdin.buffer), sys.stdout, noise, args.seed, context)
        sys.stdout.flush()
    except ValueError as err:
        fail(f"standard input, {err}")
    return 0
