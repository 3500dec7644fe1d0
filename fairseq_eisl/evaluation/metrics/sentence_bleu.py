"""BLEU of single sentences, for rewards: smoothed, so that one without a 4-gram is told apart."""

import math
from collections import Counter
from typing import Hashable, Sequence

SMOOTHINGS = ("all", "higher")
_ORDERS = 4


def sentence_bleu(
    hypothesis: Sequence[Hashable], reference: Sequence[Hashable], smoothing: str = "all"
) -> float:
    """Between 0 and 1; words are whatever can be compared.

    smoothing: ``all`` adds one to matches and counts of every order, the first included (that of
    the authors of EISL); ``higher`` those from the second on (Lin and Och, 2004; sacrebleu's
    ``add-k``).

    Raises:
        ValueError: an unknown smoothing.

    >>> words = "the cat sat down".split(), "the cat sat on".split()
    >>> [round(100 * sentence_bleu(*words, smoothing), 4) for smoothing in SMOOTHINGS]
    [66.874, 65.8037]
    """
    if smoothing not in SMOOTHINGS:
        raise ValueError(f"smoothing={smoothing!r} is unknown; choose from {', '.join(SMOOTHINGS)}")
    if not hypothesis:
        return 0.0
    logs = 0.0
    for n in range(1, _ORDERS + 1):
        ours, theirs = _grams(hypothesis, n), _grams(reference, n)
        matches = sum((ours & theirs).values())
        added = int(smoothing == "all" or n > 1)
        if matches + added == 0:
            return 0.0
        logs += math.log((matches + added) / (sum(ours.values()) + added))
    brevity = min(0.0, 1 - len(reference) / len(hypothesis))
    return math.exp(brevity + logs / _ORDERS)


def _grams(words: Sequence[Hashable], n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
