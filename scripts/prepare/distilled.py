#!/usr/bin/env python3
"""A teacher's translations of the training set as training text, in the order of the set.

    python scripts/prepare/distilled.py --log train.out --source train.en --out distilled.de

``--log`` is the output of ``fairseq-generate --gen-subset train`` without ``--remove-bpe``, so
that the text is still in pieces; ``--source`` is the text that was translated, whose lines are
counted. The output is written whole or not at all.
"""

import argparse

from fairseq_eisl.common.files import read_lines, whole_file
from fairseq_eisl.common.text_lines import plain_words
from fairseq_eisl.evaluation.readers.generation_log import read_generation_log


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag in ("--log", "--source", "--out"):
        parser.add_argument(flag, required=True)
    args = parser.parse_args()
    try:
        hypotheses = read_generation_log(args.log).hypotheses
        lines = len(read_lines(args.source))
    except (OSError, ValueError) as err:
        parser.error(str(err))
    if len(hypotheses) != lines:
        parser.error(
            f"--log {args.log}: {len(hypotheses)} translations for {lines} source lines of "
            f"{args.source}"
        )
    hypotheses = [plain_words(line) for line in hypotheses]
    try:
        with whole_file(args.out) as part, open(part, "w", encoding="utf-8", newline="\n") as f:
            f.writelines(f"{line}\n" for line in hypotheses)
    except (OSError, ValueError) as err:
        parser.error(f"--out {args.out}: {err}")
    empty = sum(not line.strip() for line in hypotheses)
    print(f"{len(hypotheses)} lines, {empty} of them empty, in {args.out}")


if __name__ == "__main__":
    main()
