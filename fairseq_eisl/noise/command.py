"""``python -m fairseq_eisl.noise``: corrupt a text, a sentence a line, as a stream."""

import argparse
import sys
import time
from typing import BinaryIO, Iterable, Iterator, List, Optional, TextIO

from .operators import Context, example_rng
from .spec import KINDS, parse_noise
from .words import is_padding_word

DESCRIPTION = """\
Corrupts a text from standard input to standard output, one sentence a line,
words separated by spaces. Line i of the output depends on (seed, i) alone, and
equals what the task noisy_translation does to example i of unsplit text, given
the same blank symbol (the task's default is the dictionary's <unk>).
"""


def _parser() -> argparse.ArgumentParser:
    kinds = "\n".join(f"  {name}:<{kind.argument}>" for name, kind in KINDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m fairseq_eisl.noise",
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
    """The first column of each non-empty line, without fairseq's padding symbols."""
    with open(path, encoding="utf-8") as f:
        words = [line.split()[0] for line in f if line.strip()]
    words = [word for word in words if not is_padding_word(word)]
    if not words:
        raise ValueError(f"there is no word in {path!r}")
    return words


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of a UTF-8 stream; only a newline ends one.

    Raises ValueError with the number of a line that is not UTF-8.
    """
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as err:
            raise ValueError(f"standard input, line {number}: {err}") from None


def corrupt_lines(source: Iterable[str], target: TextIO, noise, seed: int, context: Context) -> int:
    """Corrupt every line of ``source`` into ``target``; returns their number."""
    progress = sys.stderr.isatty()
    start, number = time.time(), 0
    for number, line in enumerate(source, 1):
        words = noise(line.split(), example_rng(seed, number - 1), context)
        target.write(" ".join(words) + "\n")
        if progress and number % 10_000 == 0:
            rate = number / (time.time() - start)
            print(f"\r{number:,} lines, {rate:,.0f} a second", end="", file=sys.stderr)
    if progress and number >= 10_000:
        print(file=sys.stderr)
    return number


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
    if noise.needs_vocabulary and not vocabulary:
        fail(f"--noise {args.noise} draws random words: give them with --vocabulary FILE")
    if len(args.blank_symbol.split()) != 1:
        fail(f"--blank-symbol: one word is needed, not {args.blank_symbol!r}")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    try:
        context = Context(args.blank_symbol, vocabulary)
        corrupt_lines(read_lines(sys.stdin.buffer), sys.stdout, noise, args.seed, context)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` closed the pipe: no more output is wanted
        sys.stdout = None
    except ValueError as err:
        fail(err)
    return 0
