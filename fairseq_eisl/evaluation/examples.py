"""Outputs of several systems side by side, with their repetitions and gaps marked."""

import random
from typing import List, Mapping, Sequence

from .marks import missing_words, words_of


def mark_repetitions(text: str) -> str:
    """Put every word that equals the word before it in brackets.

    >>> mark_repetitions("a a man . .")
    'a [a] man . [.]'
    """
    return " ".join(f"[{word.text}]" if word.repeated else word.text for word in words_of(text))


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

    :raises ValueError: texts of unequal line counts.

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
