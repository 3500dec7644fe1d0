"""Loss truncation as a trace of lists."""

import math
from typing import List, Sequence


def quantile(values: Sequence[float], q: float) -> float:
    """With linear interpolation between the sorted values.

    >>> quantile([1, 2, 3, 4, 5], 0.6)
    3.4
    """
    ranked = sorted(values)
    place = q * (len(ranked) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (place - low) * (ranked[high] - ranked[low])


def kept_sentences(
    batches: Sequence[Sequence[float]], fraction: float, size: int, warmup: int, interval: int
) -> List[List[bool]]:
    """Which sentences of each batch of losses are kept, in the order in which batches come.

    >>> kept_sentences([[1, 2, 3], [4, 5]], 0.4, 4, 4, 4)
    [[True, True, True], [False, False]]
    """
    ring: List[float] = []
    seen = since = 0
    threshold = math.inf
    found = []
    for losses in batches:
        for loss in losses:
            if len(ring) < size:
                ring.append(loss)
            else:
                ring[seen % size] = loss
            seen += 1
            since += 1
        if seen >= warmup and since > interval:
            threshold, since = quantile(ring, 1 - fraction), 0
        found.append([fraction == 0 or loss < threshold for loss in losses])
    return found
