"""Logs of ``fairseq-generate`` with several hypotheses a sentence, all of them kept."""

from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

from ...common.errors import naming
from ...common.files import read_lines
from .generation_log import Entry, entries_of, in_order
from .inputs import check_words


class Samples(NamedTuple):
    """The hypotheses of one sentence, in the order of the log.

    source, reference: the S and T lines, None where there are none.
    raw: the H lines; empty where the log has D lines alone.
    plain: the D lines (detokenised), one for each of ``raw``; empty where the log has none.
    """

    source: Optional[str]
    reference: Optional[str]
    raw: List[str]
    plain: List[str]

    @property
    def texts(self) -> List[str]:
        """What is compared: D lines, where there are any."""
        return self.plain or self.raw


def read_samples(path: str) -> List[Samples]:
    """The sentences of a log, in the order of the data.

    Raises:
        OSError: the file cannot be read.
        ValueError: no hypotheses, ids that are missing or occur twice, or H and D lines that do
            not go together.
    """
    return parse_samples(read_lines(path), path)


def parse_samples(lines: Sequence[str], name: str = "log") -> List[Samples]:
    """The same from lines; ``name`` begins every error.

    >>> parse_samples(["S-0\\tein", "H-0\\t-0.5\\ta", "H-0\\t-0.7\\tone"])
    [Samples(source='ein', reference=None, raw=['a', 'one'], plain=[])]
    """
    found = entries_of(lines, name)
    ids = set().union(*found.values())
    columns: Dict[str, List[List[Entry]]] = {}
    for kind, entries in found.items():
        if entries:
            columns[kind] = in_order(entries, ids, name, f"{kind} line")
    count = max(ids) + 1
    samples = []
    for i in range(count):
        of = {kind: [e.text for e in column[i]] for kind, column in columns.items()}
        raw, plain = of.get("H", []), of.get("D", [])
        if raw and plain and len(raw) != len(plain):
            raise ValueError(
                f"{name}: sentence {i} has {len(raw)} H lines and {len(plain)} D lines; one for "
                "each is needed"
            )
        source, reference = (of[kind][0] if kind in of else None for kind in "ST")
        samples.append(Samples(source, reference, raw, plain))
    return samples


def read_all_samples(given: str, paths: Sequence[str], plain: bool = False) -> List[Samples]:
    """The sentences of several logs, each with the hypotheses of all: one log after another.

    ``given`` is the flag. ``plain``: they are words, whatever looks like pieces of them.

    Raises:
        Refused: what :func:`read_samples` raises, logs of different sentences, or pieces of words.
    """
    whole: List[Samples] = []
    for path in paths:
        with naming(f"{given} {path}", path):
            samples = read_samples(path)
            for problem in _differences(whole, samples):
                raise ValueError(f"{problem}: not the sentences of {paths[0]}")
            texts = [text for each in samples for text in each.texts]
            owners = [i for i, each in enumerate(samples) for _ in each.texts]
            check_words(texts, path, [], plain, owners)
        whole = [_joined(a, b) for a, b in zip(whole, samples)] if whole else samples
    return whole


def _joined(ours: Samples, theirs: Samples) -> Samples:
    return Samples(
        theirs.source if ours.source is None else ours.source,
        theirs.reference if ours.reference is None else ours.reference,
        ours.raw + theirs.raw,
        ours.plain + theirs.plain,
    )


def _differences(whole: Sequence[Samples], samples: Sequence[Samples]) -> Iterator[str]:
    """What tells the sentences of another log apart; nothing for the first log."""
    if not whole:
        return
    if len(whole) != len(samples):
        yield f"{len(samples)} sentences, not {len(whole)}"
    for i, (ours, theirs) in enumerate(zip(whole, samples)):
        for kind, one, other in (
            ("S", ours.source, theirs.source),
            ("T", ours.reference, theirs.reference),
        ):
            if one is not None and other is not None and one != other:
                yield f"{kind}-{i} is {other!r}, not {one!r}"
        for kind, left, right in (("H", ours.raw, theirs.raw), ("D", ours.plain, theirs.plain)):
            if bool(left) != bool(right):
                yield f"it has {'' if right else 'no '}{kind} lines"
