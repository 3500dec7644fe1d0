#!/usr/bin/env python3
"""Learn one sentencepiece BPE from text files, or split texts into its pieces.

    python scripts/prepare/sentencepiece_bpe.py train --size 4000 --model bpe train.de train.en
    python scripts/prepare/sentencepiece_bpe.py train --size auto --model bpe train.de train.en
    python scripts/prepare/sentencepiece_bpe.py encode --model bpe.model train.de train.bpe.de
    python scripts/prepare/sentencepiece_bpe.py encode --model bpe.model < train.de > train.bpe.de
    python scripts/prepare/sentencepiece_bpe.py blank --symbol '▁<unk>' dict.en.txt dict.txt

Removing the pieces (--remove-bpe sentencepiece) gives the words of the text back exactly, parted
by single spaces: nothing is normalised, but white space of any kind (a no-break space, a tab, a
carriage return) is a space, and so is U+2581, which is how sentencepiece writes one. How many
lines that touched is said.
"""

import argparse
import math
import os
import re
import sys

import sentencepiece

from fairseq_eisl.common.files import read_lines, whole_file
from fairseq_eisl.common.prepared_text import (
    SPACE_MARK,
    TextReport,
    prepare_files,
    prepared_lines,
    print_notes,
)

FILLER = re.compile(r"madeupword\d{4} 0")
FACTOR = 8  # fairseq fills its dictionaries up to a multiple of it, symbols of its own included
OWN = ("<s>", "<pad>", "</s>", "<unk>")  # these symbols, which the file does not hold

# Pieces beside the characters, a square root of the running words. It comes to about the 2000 that
# serve 5,000 to 20,000 sentence pairs best (Sennrich and Zhang, ACL 2019), and to the usual 32,000
# where there are millions.
A_ROOT, MOST = 6, 32000
MANY = 4  # times as many as fit


def fitting(lines):
    """How many pieces a text is enough for: each is to be seen often enough to be learnt."""
    words = sum(len(line.split()) for line in lines)
    characters = len({character for line in lines for character in line})
    return min(MOST, characters + A_ROOT * math.isqrt(words)), words


def size_of(text):
    """The type of --size."""
    if text != "auto" and not text.lstrip("-").isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number or auto is needed, not {text!r}")
    return text if text == "auto" else int(text)


def check_blank(symbol):
    """Stop unless the symbol stands for one word by itself and is not one of fairseq's."""
    words = symbol.replace(SPACE_MARK, " ").split()
    if len(words) != 1 or symbol.split() != [symbol]:
        raise ValueError(
            f"the blank must be one word, such as {SPACE_MARK}<unk>, not {symbol!r} "
            "(leave it out for a dictionary without one)"
        )
    if symbol in OWN:
        raise ValueError(
            f"the blank {symbol!r} is a symbol of fairseq's own, which every dictionary has; "
            f"write {SPACE_MARK}{symbol} for a word of its own, or leave the blank out"
        )
    if not symbol.startswith(SPACE_MARK):
        raise ValueError(
            f"the blank {symbol!r} must begin with {SPACE_MARK} (U+2581), as "
            f"{SPACE_MARK}{words[0]}: without this mark of a word it would be glued to the word "
            "before it"
        )


def train(args):
    def sentences():
        for path in args.files:
            report = TextReport()
            with open(path, "rb") as stream:
                try:
                    yield from prepared_lines(stream, report, mark_is_space=True)
                except ValueError as err:
                    raise ValueError(f"{path}: {err}") from None
            if not report.lines:
                raise ValueError(f"{path}: the file is empty: nothing to learn from")

    if args.blank is not None:
        check_blank(args.blank)
    if args.size != "auto" and args.size < 3:
        what = "more than 3 pieces are needed, as many are symbols of its own"
        raise ValueError(f"--size: {what}, not {args.size}")
    lines = list(sentences())  # sentencepiece would swallow what goes wrong in an iterator
    if not any(lines):
        raise ValueError(f"{', '.join(args.files)}: there is no word to learn from")
    size, words = fitting(lines)
    if args.size == "auto":
        print(f"{size} pieces for {words} words of text", file=sys.stderr)
    else:
        if args.size > MANY * size:
            print(
                f"note: --size (data.vocabulary of a recipe): {args.size} pieces are many for "
                f"{words} words of text, most would hardly be seen; about {size} fit (auto, or "
                "null in a recipe)",
                file=sys.stderr,
            )
        size = args.size
    with whole_file(args.model + ".model") as model, whole_file(args.model + ".vocab") as vocab:
        prefix = model[: -len(".model")]
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_prefix=prefix,
                vocab_size=size,
                model_type="bpe",
                character_coverage=1.0,
                normalization_rule_name="identity",
                hard_vocab_limit=False,  # a small text may have fewer pieces than asked for
                shuffle_input_sentence=False,
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as err:
            small = re.search(r"(\d+) vs (\d+)", str(err))
            if small is None or "required_chars" not in str(err):
                raise
            raise ValueError(
                f"--size (data.vocabulary of a recipe): {size} pieces are too few: the text "
                f"needs {small[2]} for its characters alone, and more for words; choose "
                f"{int(small[2]) + 100} or more, or auto (null in a recipe)"
            ) from None
        os.replace(prefix + ".vocab", vocab)
        processor = sentencepiece.SentencePieceProcessor(model_file=model)
        if args.blank is not None and processor.piece_to_id(args.blank) != processor.unk_id():
            raise ValueError(taken(args.blank))


def encode(args):
    model = sentencepiece.SentencePieceProcessor(model_file=args.model)

    def pieces(line):
        return " ".join(model.encode(line, out_type=str))

    if args.files:
        if len(args.files) % 2:
            raise ValueError(f"FROM TO are needed in pairs, not {len(args.files)} files")
        files = list(zip(args.files[::2], args.files[1::2]))
        reports = prepare_files(files, pieces, mark_is_space=True)
        print_notes(args.files[::2], [r.for_pieces() for r in reports], sys.stderr)
        return
    report = TextReport()
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    try:
        for line in prepared_lines(sys.stdin.buffer, report, mark_is_space=True):
            print(pieces(line))
    except ValueError as err:
        raise ValueError(f"standard input, {err}") from None
    print_notes(["standard input"], [report.for_pieces()], sys.stderr)


def taken(symbol):
    return (
        f"the blank {symbol!r} is a piece of the text already, so that blanks and words would be "
        "one symbol; choose another"
    )


def blank(args):
    """The symbol takes the place of a filler, so that size and order stay; where there is none,
    it is appended, with fillers up to fairseq's next multiple."""
    check_blank(args.symbol)
    lines = read_lines(args.dictionary)
    pieces = [line.rsplit(" ", 1)[0] for line in lines]
    if args.symbol in pieces:
        raise ValueError(f"{args.dictionary}: {taken(args.symbol)}")
    fillers = [number for number, line in enumerate(lines) if FILLER.fullmatch(line)]
    if fillers:
        lines[fillers[0]] = f"{args.symbol} 0"
    else:
        lines.append(f"{args.symbol} 0")
        room = -(len(OWN) + len(lines)) % FACTOR
        lines += [f"madeupword{number:04d} 0" for number in range(room)]
    with whole_file(args.out) as part, open(part, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(f"{line}\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    part = commands.add_parser("train", help="learn MODEL.model from text files")
    part.add_argument(
        "--size",
        type=size_of,
        required=True,
        help="number of pieces, or auto for as many as the text is enough for",
    )
    part.add_argument("--model", required=True, help="prefix of the files to write")
    part.add_argument("--blank", metavar="SYMBOL", help="no piece may be this, the blank to be")
    part.add_argument("files", nargs="+")
    part.set_defaults(run=train)
    part = commands.add_parser("encode", help="texts to pieces; standard input without files")
    part.add_argument("--model", required=True, help="a file MODEL.model")
    part.add_argument("files", nargs="*", metavar="FILE", help="FROM TO, as often as needed")
    part.set_defaults(run=encode)
    part = commands.add_parser("blank", help="a dictionary with a symbol for blanked words")
    part.add_argument("--symbol", required=True)
    part.add_argument("dictionary")
    part.add_argument("out")
    part.set_defaults(run=blank)
    args = parser.parse_args()
    try:
        args.run(args)
    except (OSError, RuntimeError, ValueError) as err:
        reason = " ".join(str(err).split())
        if isinstance(err, OSError) and err.filename:
            reason = f"{err.filename}: {err.strerror}"
        raise SystemExit(f"{parser.prog} {args.command}: {reason}") from None


if __name__ == "__main__":
    main()
