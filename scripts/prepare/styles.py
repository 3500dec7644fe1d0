#!/usr/bin/env python3
"""Texts of two styles, which are no translations of one another, made ready for training.

    python scripts/prepare/styles.py DEST A B --train FILE_A FILE_B --valid FILE_A FILE_B \\
        --test FILE_A FILE_B [--human FILE_A FILE_B] [--first N] [--first-valid N]
    python scripts/prepare/styles.py DEST A B --train FILE_A FILE_B --held-out N \\
        --merged-test FILE LABELS

Writes {train,valid,test}.{A,B}, and for scores, in the order in which a model rewrites the test set
(the sentences of A, then those of B): test.source, test.wanted (the style that each should get)
and, with --human, test.human, what people have written instead, in the way the corpora are written
(lower-cased, punctuation and clitics apart). mono.{train,valid}.B are the sentences of both styles,
in turns, for a language model and for word vectors.

--held-out N: the last N training sentences of each style are for validation. --merged-test: one
file, and a label for each of its lines (0 for A, 1 for B).
"""

import argparse
import os
import re
import sys
import tempfile

from fairseq_eisl.common.files import read_lines, whole_file
from fairseq_eisl.common.prepared_text import check_kept, prepare_files, print_notes

_CLITICS = re.compile(r"(?<=\w)(n't|'(?:s|re|ve|ll|d|m))(?!\w)")
_MARKS = re.compile(r"(\.{2,}|[.,!?;:()\"$&])")


def as_written(text: str) -> str:
    """A sentence as the corpora are written.

    >>> as_written("It didn't taste good, it's 3.50!")
    "it did n't taste good , it 's 3.50 !"
    """
    text = _CLITICS.sub(r" \1", text.lower().replace("’", "'"))
    text = re.sub(r"(?<=\d)([.,])(?=\d)", "\0\\1\0", text)  # a number is a word
    parts = re.split("(\0[.,]\0)", text)
    parts = [part.strip("\0") if "\0" in part else _MARKS.sub(r" \1 ", part) for part in parts]
    return " ".join("".join(parts).split())


def prepared(path: str) -> list:
    """The lines of a text, as they are trained on, empty ones among them."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "text")
        (report,) = prepare_files([(path, target)], mark_is_space=True)
        print_notes([path], [report.without_empty()], sys.stderr)
        return read_lines(target)


def words(path: str) -> list:
    """The sentences of a text: its lines without the empty ones."""
    return _sentences(prepared(path), path)


def _sentences(lines: list, path: str) -> list:
    found = [line for line in lines if line]
    if not found:
        raise ValueError(f"{path}: there is no sentence in it")
    if len(found) < len(lines):
        left = len(lines) - len(found)
        print(f"note: {path}: {left:,} of {len(lines):,} lines have no word and are left out",
              file=sys.stderr)  # fmt: skip
    return found


def pairs(paths: list) -> list:
    """The lines of both styles."""
    return [words(path) for path in paths]


def by_label(path: str, labels: str) -> list:
    """The sentences of a merged file, by their labels."""
    lines, styles = prepared(path), read_lines(labels)
    if len(lines) != len(styles):
        raise ValueError(
            f"{labels} has {len(styles):,} labels for the {len(lines):,} lines of {path}"
        )
    found: list = [[], []]
    for number, (line, style) in enumerate(zip(lines, styles), 1):
        if style.strip() not in ("0", "1"):
            raise ValueError(f"{labels}: line {number}: a label is 0 or 1, not {style!r}")
        found[int(style)].append(line)
    for style in (0, 1):
        if not found[style]:
            raise ValueError(f"{labels}: no line has the label {style}")
    return [_sentences(lines, f"{path}, label {style}") for style, lines in enumerate(found)]


def human(paths: list, test: list) -> list:
    """What people have written instead of the test sentences of both styles."""
    found = []
    for path, sentences in zip(paths, test):
        lines = read_lines(path)
        if len(lines) != len(sentences):
            raise ValueError(
                f"{path} has {len(lines):,} lines for {len(sentences):,} sentences of its style"
            )
        found += [as_written(line) for line in lines]
    return found


def in_turns(both: list) -> list:
    """The sentences of both styles, one of each in turns, then the rest of the longer one."""
    shorter = min(map(len, both))
    mixed = [line for pair in zip(*both) for line in pair]
    return mixed + both[0][shorter:] + both[1][shorter:]


def write(path: str, lines: list) -> None:
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as f:
        f.writelines(f"{line}\n" for line in lines)


def made_of(args: argparse.Namespace) -> list:
    """The files that are written."""
    names = ["test.source", "test.wanted", "test.human"]
    for split in ("train", "valid", "test"):
        names += [f"{split}.{args.a}", f"{split}.{args.b}", f"mono.{split}.{args.b}"]
    return [os.path.join(args.dest, name) for name in names]


def prepare(args: argparse.Namespace) -> None:
    """Raises ValueError, one line that names the file."""
    given = (args.train, args.valid, args.test, args.human, args.merged_test)
    check_kept([path for paths in given for path in paths or ()], made_of(args))
    train = pairs(args.train)
    if args.held_out:
        for path, lines in zip(args.train, train):
            if len(lines) <= args.held_out:
                raise ValueError(f"{path}: {len(lines):,} lines, not more than the held-out ones")
        valid = [lines[-args.held_out :] for lines in train]
        train = [lines[: -args.held_out] for lines in train]
    else:
        valid = pairs(args.valid)
    train = [lines[: args.first] for lines in train]
    valid = [lines[: args.first_valid] for lines in valid]
    test = by_label(*args.merged_test) if args.merged_test else pairs(args.test)
    styles = (args.a, args.b)
    for split, both in (("train", train), ("valid", valid), ("test", test)):
        for style, lines in zip(styles, both):
            write(os.path.join(args.dest, f"{split}.{style}"), lines)
    write(os.path.join(args.dest, "test.source"), test[0] + test[1])
    wanted = [args.b] * len(test[0]) + [args.a] * len(test[1])
    write(os.path.join(args.dest, "test.wanted"), wanted)
    if args.human:
        write(os.path.join(args.dest, "test.human"), human(args.human, test))
    for split, both in (("train", train), ("valid", valid)):
        write(os.path.join(args.dest, f"mono.{split}.{args.b}"), in_turns(both))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dest", metavar="DEST")
    parser.add_argument("a", metavar="A", help="name of the first style")
    parser.add_argument("b", metavar="B", help="name of the second style")
    for name in ("train", "valid", "test", "human"):
        parser.add_argument(f"--{name}", nargs=2, metavar="FILE", required=name == "train")
    parser.add_argument("--merged-test", nargs=2, metavar=("FILE", "LABELS"))
    parser.add_argument("--held-out", type=int, metavar="N")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N to train on")
    parser.add_argument("--first-valid", type=int, metavar="N", help="only the first N to validate")
    args = parser.parse_args()
    if bool(args.held_out) == bool(args.valid):
        parser.error("one of --valid and --held-out is needed")
    if bool(args.merged_test) == bool(args.test):
        parser.error("one of --test and --merged-test is needed")
    for name in ("first", "first_valid", "held_out"):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} needs 1 or more")
    if args.a == args.b:
        parser.error(f"two styles are needed, not {args.a} twice")
    try:
        prepare(args)
    except OSError as err:
        raise SystemExit(f"{parser.prog}: {err.filename}: {err.strerror}") from None
    except ValueError as err:
        raise SystemExit(f"{parser.prog}: {err}") from None


if __name__ == "__main__":
    main()
