#!/usr/bin/env python3
"""A teacher's translations of the training set as training text, in the order of the set.

    python scripts/prepare/distilled.py --log train.out [MORE ...] --source train.en \\
        --target train.de --out distilled.de

``--log`` is the output of ``fairseq-generate --gen-subset train`` without ``--remove-bpe``, so
that the text is still in pieces; or several such outputs, each of a part of the set. ``--source``
is the text that was translated, whose lines are counted. Pairs that were too long for the teacher,
which generation leaves out with ``--skip-invalid-size-inputs-valid-test`` as training does, keep
their line of ``--target``; any other that is missing is an error. The output is written whole or
not at all.
"""

import argparse
from typing import Dict, List, Optional

from fairseq_eisl.common.files import read_lines, whole_file
from fairseq_eisl.common.text_lines import plain_words
from fairseq_eisl.evaluation.readers.generation_log import HINT, entries_of


def distilled(logs: List[str], source: str, target: Optional[str]) -> List[str]:
    """The translation of every line, and the own target of those that are too long.

    Raises:
        OSError, ValueError: a file cannot be read, or a translation is missing.
    """
    log = ", ".join(logs)
    entries = entries_of((line for each in logs for line in read_lines(each)), log)
    found = {i: lines[0].text for i, lines in (entries["D"] or entries["H"]).items()}
    sources = read_lines(source)
    if max(found) >= len(sources):
        raise ValueError(f"{log}: a translation of line {max(found) + 1}, {source} has "
                         f"{len(sources)}")  # fmt: skip
    if target is not None:
        targets = read_lines(target)
        if len(targets) != len(sources):
            raise ValueError(
                f"--target {target}: {len(targets)} lines, {source} has {len(sources)}"
            )
        found.update(_too_long(found, sources, targets))
    missing = [i for i in range(len(sources)) if i not in found]
    if missing:
        raise ValueError(
            f"{log}: {len(found)} translations for {len(sources)} source lines of {source}; the "
            f"first that is missing is H-{missing[0]}. An unfinished run, or: {HINT}"
        )
    return [plain_words(found[i]) for i in range(len(sources))]


def _too_long(found: Dict[int, str], sources: List[str], targets: List[str]) -> Dict[int, str]:
    """The targets of the pairs that have no translation, if all of them are longer than those
    that have one: others got lost."""
    sizes = [max(len(a.split()), len(b.split())) for a, b in zip(sources, targets)]
    missing = {i: target for i, target in enumerate(targets) if i not in found}
    if not missing or min(sizes[i] for i in missing) <= max(sizes[i] for i in found):
        return {}
    print(f"{len(missing)} of {len(sources)} pairs, too long for the teacher, keep their target")
    return missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log", required=True, nargs="+")
    for flag in ("--source", "--out"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--target")
    args = parser.parse_args()
    try:
        lines = distilled(args.log, args.source, args.target)
    except (OSError, ValueError) as err:
        parser.error(str(err))
    try:
        with whole_file(args.out) as part, open(part, "w", encoding="utf-8", newline="\n") as f:
            f.writelines(f"{line}\n" for line in lines)
    except (OSError, ValueError) as err:
        parser.error(f"--out {args.out}: {err}")
    empty = sum(not line.strip() for line in lines)
    print(f"{len(lines)} lines, {empty} of them empty, in {args.out}")


if __name__ == "__main__":
    main()
