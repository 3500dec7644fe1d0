"""The log of ``fairseq-generate`` to hypotheses in the order of the data."""

import re
from typing import Dict, Iterable, List, NamedTuple, Optional

from ...common.files import read_lines

_LINE = re.compile(r"([STHD])-(\d+)(?:\t(.*))?", re.DOTALL)
HINT = (
    "stock fairseq drops the last partial batch: generate again with "
    "--required-batch-size-multiple 1"
)


class GenerationLog(NamedTuple):
    """Sentences 0 to n-1.

    hypotheses: the best hypothesis of each sentence; empty ones are kept.
    references: the T lines, None where the log has none. fairseq rebuilds them from
        its dictionary: a word outside it reads ``<<unk>>``, so they do not do for scores.
    """

    hypotheses: List[str]
    references: Optional[List[str]]


def read_generation_log(path: str) -> GenerationLog:
    """Read the standard output (or ``--results-path`` file) of ``fairseq-generate``.

    Takes D lines (detokenised) where the log has any, else H lines. Of an n-best
    list the first hypothesis counts, fairseq writes the best one first.

    Raises:
        OSError: the file cannot be read.
        ValueError: no hypotheses, or ids that are missing or occur twice.
    """
    return parse_generation_log(read_lines(path), path)


def parse_generation_log(lines: Iterable[str], name: str = "log") -> GenerationLog:
    """The same from lines; ``name`` begins every error.

    >>> parse_generation_log(["H-1\\t-0.5\\tb", "H-0\\t-0.1\\ta a", "T-0\\ta", "T-1\\tb"])
    GenerationLog(hypotheses=['a a', 'b'], references=['a', 'b'])
    """
    found = entries_of(lines, name)
    best = found["D"] or found["H"]
    everyone = set().union(*found.values())
    hypotheses = in_order(best, everyone, name, "hypothesis")
    references = None
    if found["T"]:
        references = in_order(found["T"], everyone, name, "reference (T line)")
    return GenerationLog(
        [each[0].text for each in hypotheses],
        None if references is None else [each[0].text for each in references],
    )


class Entry(NamedTuple):
    """The text of a line, and the score before it (as written; empty for S and T lines)."""

    text: str
    score: str = ""


Entries = Dict[str, Dict[int, List[Entry]]]
"""By kind of line, S, T, H and D, and by sentence; several H and D lines are an n-best list."""


def entries_of(lines: Iterable[str], name: str = "log") -> Entries:
    """All lines of sentences, in their order.

    Raises:
        ValueError: no hypotheses, or ids that occur twice.
    """
    found: Entries = {kind: {} for kind in "STHD"}
    last: Dict[str, int] = {}
    twice = set()
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        kind, key, text = match.group(1), int(match.group(2)), match.group(3) or ""
        entry = Entry(text)
        if kind in "HD":
            entry = _after_score(text, f"{name}: line {number} ({kind}-{key})")
        if key in found[kind] and (kind in "ST" or last[kind] != key):
            twice.add(key)  # an n-best list has one S and T, and its H lines stand together
        found[kind].setdefault(key, []).append(entry)
        last[kind] = key
    if not (found["D"] or found["H"]):
        raise ValueError(
            f"{name}: no H-<id> or D-<id> lines: not the output of fairseq-generate, "
            "or written with --quiet"
        )
    if twice:
        raise ValueError(
            f"{name}: {_ids(twice)} more than once: the logs of several runs in one file? "
            "Keep one run a file, all of it made with --required-batch-size-multiple 1"
        )
    return found


def _after_score(text: str, where: str) -> Entry:
    score, _, hypothesis = text.partition("\t")
    try:
        float(score)
    except ValueError:
        raise ValueError(f"{where}: a score is needed before the text, not {score!r}") from None
    return Entry(hypothesis, score)


def in_order(
    texts: Dict[int, List[Entry]], ids: Iterable[int], name: str, what: str
) -> List[List[Entry]]:
    """The lines of sentences 0 to n-1, where n-1 is the largest id.

    Raises:
        ValueError: some have none; ``what`` is missing.
    """
    count = max(ids) + 1
    missing = [i for i in range(count) if i not in texts]
    if missing:
        raise ValueError(
            f"{name}: no {what} for {_ids(missing)} ({len(texts)} of {count} sentences "
            f"present); an unfinished run, or: {HINT}"
        )
    return [texts[i] for i in range(count)]


def _ids(ids: Iterable[int], most: int = 10) -> str:
    ids = sorted(ids)
    text = ("id " if len(ids) == 1 else "ids ") + ", ".join(map(str, ids[:most]))
    return text + (f" and {len(ids) - most} more" if len(ids) > most else "")
