"""How much tokens and pairs count beside a clean text, counted one by one."""

from typing import List, Sequence, Tuple


def clean_text_weights(
    clean: Sequence[Sequence[int]],
    noisy: Sequence[Sequence[int]],
    target: Sequence[int],
    vocabulary: int,
    smoothing: float,
    cap: float,
) -> Tuple[List[float], List[float]]:
    """The weights of a target's S tokens and S - 1 pairs: how much more likely each is in the
    clean text than in the noisy one, in which it is counted once at the least; 1 for what is no
    token of the vocabulary.

    >>> clean_text_weights([[0, 1]], [[0, 0]], [0, 1], 2, 1.0, 5.0)
    ([0.6666666666666666, 1.0], [1.0])
    """

    def sizes(text: Sequence[Sequence[int]]) -> int:
        return sum(0 <= token < vocabulary for sentence in text for token in sentence)

    def ratio(gram: Sequence[int]) -> float:
        in_clean, in_noisy = often(clean, gram), often(noisy, gram)
        if not all(0 <= token < vocabulary for token in gram):
            return 1.0
        scale = sizes(noisy) / max(1, sizes(clean))
        added = smoothing * max(1, scale)
        return min(cap, (in_clean * scale + added) / (max(1, in_noisy) + added))

    def often(text: Sequence[Sequence[int]], gram: Sequence[int]) -> int:
        if not all(0 <= token < vocabulary for token in gram):
            return 0
        n = len(gram)
        starts = [(s, i) for s in text for i in range(len(s) - n + 1)]
        return sum(list(s[i : i + n]) == list(gram) for s, i in starts)

    tokens = [ratio([token]) for token in target]
    return tokens, [ratio(pair) for pair in zip(target, target[1:])]
