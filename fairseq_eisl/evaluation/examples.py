"""Outputs of several systems side by side, with their repetitions and gaps marked."""

import random
from typing import Dict, List, Mapping, NamedTuple, Sequence

from sacrebleu.metrics import CHRF

from .word_diff import condensed, missing_words

CHANGED, WORST, RANDOM = "most changed", "worst", "random"


class Choice(NamedTuple):
    """numbers: of sentences, from 0, by why they were chosen. chrf: by system, of each sentence."""

    numbers: Dict[str, List[int]]
    chrf: Dict[str, List[float]]


def mark_repetitions(text: str) -> str:
    """Put every word that equals the word before it in brackets, long repetitions once.

    >>> mark_repetitions("a a man . .")
    'a [a] man . [.]'
    >>> mark_repetitions("a " + 50 * "man ")
    'a man [man] (48 times more)'
    """
    parts = []
    for piece in condensed(text):
        parts += [f"[{word.text}]" if word.repeated else word.text for word in piece.words]
        parts += [f"({piece.more} times more)"] if piece.more else []
    return " ".join(parts)


def choose(
    count: int, reference: Sequence[str], systems: Mapping[str, Sequence[str]], seed: int
) -> Choice:
    """``count`` sentences (all, if there are fewer): changed most, worst, and drawn at random.

    Changed most: sentence chrF differs most between a later system and the first one. Worst:
    the lowest mean of the later systems' sentence chrF. Each kind gets its third; with one
    system nothing has changed. No sentence is chosen twice.
    """
    metric = CHRF()
    chrf = {
        name: [metric.sentence_score(h, [r]).score for h, r in zip(hypotheses, reference)]
        for name, hypotheses in systems.items()
    }
    first, *later = chrf.values()
    changes = [max((abs(s[i] - first[i]) for s in later), default=0.0) for i in range(len(first))]
    quality = [sum(s[i] for s in later or [first]) for i in range(len(first))]
    count = min(count, len(reference))
    kinds = [CHANGED, WORST, RANDOM] if later else [WORST, RANDOM]
    wanted: Dict[str, int] = {
        kind: (count + len(kinds) - 1 - i) // len(kinds) for i, kind in enumerate(kinds)
    }
    drawn = list(range(len(first)))
    random.Random(seed).shuffle(drawn)
    orders = {
        CHANGED: sorted(filter(changes.__getitem__, drawn), key=lambda i: (-changes[i], i)),
        WORST: sorted(range(len(first)), key=lambda i: quality[i]),
        RANDOM: drawn,
    }
    taken: Dict[str, List[int]] = {}
    used: set = set()
    for kind in kinds:
        most = count - len(used) if kind == RANDOM else wanted[kind]
        taken[kind] = [i for i in orders[kind] if i not in used][:most]
        used.update(taken[kind])
    taken[RANDOM].sort()
    return Choice({kind: numbers for kind, numbers in taken.items() if numbers}, chrf)


def pick(count: int, total: int, seed: int) -> List[int]:
    """``count`` different sentence numbers below ``total`` (all, if it is fewer), sorted.

    The same seed picks the same sentences, whatever the systems.
    """
    return sorted(random.Random(seed).sample(range(total), min(count, total)))


def format_examples(
    source: Sequence[str],
    reference: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    numbers: Sequence[int],
) -> str:
    """Plain text: a block for each sentence number (from 0), a line for each text.

    Raises:
        ValueError: texts of unequal line counts.

    >>> print(format_examples(["ein mann"], ["a man"], {"CE": ["a a"]}, [0]))
    sentence 0
      source     ein mann
      reference  a man
      CE         a [a]
                   missing: man
    """
    for name, texts in [("reference", reference), *systems.items()]:
        if len(texts) != len(source):
            raise ValueError(f"{len(texts)} sentences of {name} for {len(source)} of the source")
    width = max(map(len, ["reference", *systems])) + 2
    blocks = []
    for i in numbers:
        lines = [f"sentence {i}"]
        lines.append("  " + "source".ljust(width) + source[i])
        lines.append("  " + "reference".ljust(width) + mark_repetitions(reference[i]))
        for name, hypotheses in systems.items():
            shown = mark_repetitions(hypotheses[i]) or "(empty)"
            missing = missing_words(hypotheses[i], reference[i])
            lines.append("  " + name.ljust(width) + shown)
            lines.append(" " * (width + 4) + "missing: " + (" ".join(missing) or "-"))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
