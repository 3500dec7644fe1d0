#!/usr/bin/env python3
"""Texts made ready for training: the same lines for every reader, plain spaces between words.

    python scripts/prepare/sentences.py [--first N] FROM TO [FROM TO ...]

A line ends at a newline and nowhere else. Carriage returns, tabs, no-break spaces and all other
white space become single spaces; how many lines that touched is said. Texts of one call are
translations of one another, so they must have the same number of lines. All files are written
whole, or none.
"""

import argparse
import sys

from fairseq_eisl.common.prepared_text import prepare_files, print_notes


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=int, metavar="N", help="only the first N lines of each")
    parser.add_argument(
        "--mark-is-space",
        action="store_true",
        help="the character U+2581, sentencepiece's mark of a space, becomes a space, too",
    )
    parser.add_argument(
        "--for-pieces",
        action="store_true",
        help="the text will be split into pieces, so that <pad> and the like in it do no harm",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="FROM TO, as often as needed")
    args = parser.parse_args()
    if len(args.files) % 2:
        parser.error(f"FROM TO are needed in pairs, not {len(args.files)} files")
    files = list(zip(args.files[::2], args.files[1::2]))
    try:
        reports = prepare_files(files, first=args.first, mark_is_space=args.mark_is_space)
    except OSError as err:
        raise SystemExit(f"{parser.prog}: {err.filename}: {err.strerror}") from None
    except ValueError as err:
        raise SystemExit(f"{parser.prog}: {err}") from None
    if args.for_pieces:
        reports = [report.for_pieces() for report in reports]
    print_notes(args.files[::2], reports, sys.stderr)


if __name__ == "__main__":
    main()
