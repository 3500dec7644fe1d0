"""Word-level corruption operators: ``(words, rng) -> words``.

A *word* is opaque here: a string for the text command, a list of sub-word ids
for the task. The operators only move, copy, drop or replace whole words, so the
same seed gives the same corruption on text and on ids.

Definitions follow Liu et al., NAACL 2022 (arXiv 2106.15078), Section 4.1:
shuffle, repetition, blank and synthetic noise on the target side.

Every random decision is made with ``rng.random()`` alone: it is the one method
of :class:`random.Random` whose sequence Python promises never to change.
"""

import math
from dataclasses import dataclass
from random import Random
from typing import Any, Callable, List, Sequence

Word = Any
Words = List[Word]

ALL = "all"


def example_rng(seed: int, index: int, epoch: int = 0, shard: int = 0) -> Random:
    """The random stream of one example, of one shard of the data where they are several.

    It depends on the arguments only, never on the batch, the worker or the
    order in which examples are read.

    >>> example_rng(1, 7).random() == example_rng(1, 7).random()
    True
    >>> example_rng(1, 7).random() == example_rng(1, 8).random()
    False
    """
    part = f" {shard}" if shard else ""
    return Random(f"fairseq_eisl noise {seed} {index} {epoch}{part}")


def _below(n: int, rng: Random) -> int:
    """A uniform integer in [0, n)."""
    return min(int(rng.random() * n), n - 1)


def _permutation(n: int, rng: Random) -> List[int]:
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = _below(i + 1, rng)
        order[i], order[j] = order[j], order[i]
    return order


def swap(words: Words, rng: Random, count: int) -> Words:
    """Draw a random order ``o`` of the positions, then for ``i < min(count, len-1)``
    exchange the words at ``o[i]`` and ``o[i+1]``.

    >>> swap(["a", "b"], Random(0), 1)
    ['b', 'a']
    """
    count = min(count, len(words) - 1)
    if count < 1:
        return list(words)
    order, out = _permutation(len(words), rng), list(words)
    for i in range(count):
        a, b = order[i], order[i + 1]
        out[a], out[b] = out[b], out[a]
    return out


def permute(words: Words, rng: Random) -> Words:
    """A uniform permutation (``shuffle:all``)."""
    return [words[i] for i in _permutation(len(words), rng)]


def repeat(words: Words, rng: Random, p: float) -> Words:
    """Each word is followed by one copy of itself with probability ``p``."""
    random, out = rng.random, []
    for word in words:
        out.append(word)
        if random() < p:
            out.append(word)
    return out


def blank(words: Words, rng: Random, p: float, symbol: Word) -> Words:
    """Each word becomes ``symbol`` with probability ``p``."""
    random = rng.random
    return [symbol if random() < p else word for word in words]


def drop(words: Words, rng: Random, p: float) -> Words:
    """Each word is dropped with probability ``p``; one random word of a
    non-empty sentence always stays, so that no target becomes empty."""
    if not words:
        return []
    kept = [word for word in words if rng.random() >= p]
    return kept or [words[_below(len(words), rng)]]


def substitute(words: Words, rng: Random, p: float, vocabulary: Sequence[Word]) -> Words:
    """Each word becomes a uniformly drawn word of ``vocabulary`` with probability ``p``."""
    return [
        vocabulary[_below(len(vocabulary), rng)] if rng.random() < p else word for word in words
    ]


def insert(words: Words, rng: Random, p: float, vocabulary: Sequence[Word]) -> Words:
    """Each word is followed by a uniformly drawn word of ``vocabulary`` with probability ``p``."""
    out: Words = []
    for word in words:
        out.append(word)
        if rng.random() < p:
            out.append(vocabulary[_below(len(vocabulary), rng)])
    return out


def synthetic(words: Words, rng: Random, level: float, symbol: Word) -> Words:
    """Blank, then repetition, then swaps, ``5 * level`` percent each.

    The number of swaps is ``ceil(0.05 * level * len)`` of the sentence after
    blanking and repetition; a single swap is skipped, as in the authors' script.
    """
    rate = 0.05 * level
    words = repeat(blank(words, rng, rate, symbol), rng, rate)
    swaps = _ceil_share(rate, len(words))
    return swap(words, rng, swaps) if swaps > 1 else words


def synthetic_released(
    words: Words, rng: Random, level: float, symbol: Word, vocabulary: Sequence[Word]
) -> Words:
    """The variant of the authors' data script (``rsbs``), which also substitutes.

    Each word is hit with probability ``0.1 * level``; a hit repeats it,
    replaces it by a random word, or blanks it, a third each. Then come
    ``ceil(0.05 * level * len)`` swaps, a single one being skipped.
    """
    out: Words = []
    for word in words:
        if rng.random() >= 0.1 * level:
            out.append(word)
            continue
        kind = _below(3, rng)
        if kind == 0:
            out += [word, word]
        elif kind == 1:
            out.append(vocabulary[_below(len(vocabulary), rng)])
        else:
            out.append(symbol)
    swaps = _ceil_share(0.05 * level, len(out))
    return swap(out, rng, swaps) if swaps > 1 else out


def _ceil_share(rate: float, length: int) -> int:
    # 0.05 * 6 * 10 is 3.0000000000000004 in floating point, and must count as 3.
    return math.ceil(round(rate * length, 9))


@dataclass(frozen=True)
class Context:
    """What an operator may need besides the words.

    ``blank``: the word that stands for a blank. ``vocabulary``: the words that
    substitution and insertion draw from.
    """

    blank: Word
    vocabulary: Sequence[Word] = ()


Operator = Callable[[Words, Random, Context], Words]
