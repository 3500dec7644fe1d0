"""How well a validation batch was transferred: BLEU to the sources and accuracy, as sums."""

import math
from collections import Counter
from typing import Any, Dict, List

import torch
from fairseq.logging import metrics
from torch import Tensor

from .averages import Sums

ORDERS = 4
_COUNTS, _GOAL = "bleu_counts", "accuracy_goal"


@torch.no_grad()
def transfer_counts(
    tokens: Tensor, mask: Tensor, sources: Tensor, source_mask: Tensor
) -> Dict[str, Tensor]:
    """Counts for the BLEU of a corpus: matches and n-grams of each order, and the two lengths.

    Args:
        tokens: (B, T) ids of the output.
        mask: (B, T) bool, its words: neither end symbol nor padding.
        sources: (B, S) ids.
        source_mask: (B, S) bool, their words.
    """
    counts = torch.zeros(2 * ORDERS + 2, dtype=torch.int64)
    for ours, real, theirs, kept in zip(*(x.cpu() for x in (tokens, mask, sources, source_mask))):
        output, source = ours[real].tolist(), theirs[kept].tolist()
        for n in range(1, ORDERS + 1):
            found, known = _grams(output, n), _grams(source, n)
            counts[n - 1] += sum((found & known).values())
            counts[ORDERS + n - 1] += sum(found.values())
        counts[-2] += len(output)
        counts[-1] += len(source)
    return {f"{_COUNTS}_{i}": count for i, count in enumerate(counts)}


def corpus_bleu(counts: Any) -> float:
    """0 to 100, of the sums of :func:`transfer_counts`; 0 where an order has no match.

    >>> round(corpus_bleu([4, 3, 2, 1, 4, 3, 2, 1, 4, 4]), 1)
    100.0
    """
    matches, totals = counts[:ORDERS], counts[ORDERS : 2 * ORDERS]
    ours, theirs = counts[-2:]
    if min(matches) == 0:
        return 0.0
    logs = sum(math.log(match / total) for match, total in zip(matches, totals)) / ORDERS
    return 100.0 * math.exp(logs + min(0.0, 1 - theirs / ours))


def transfer_score(bleu: float, accuracy: float, goal: float) -> float:
    """What the best checkpoint is chosen by: content, once there is style enough.

    The BLEU to the sources where the accuracy reaches the goal, and otherwise how many points it
    lacks, below 0.

    >>> transfer_score(60.0, 91.0, 90.0), transfer_score(95.0, 12.0, 90.0)
    (60.0, -78.0)
    """
    return bleu if accuracy >= goal else accuracy - goal


def log_transfer_scores(sums: Sums) -> None:
    """Show ``bleu``, ``accuracy`` (%) and ``transfer_score`` of what was validated."""
    transferred = sums.total("transferred")
    if not transferred:
        return
    sums.average("accuracy", 100.0 * sums.total("transferred_right"), transferred, round=2)
    counts = [float(sums.total(f"{_COUNTS}_{i}")) for i in range(2 * ORDERS + 2)]
    metrics.log_scalar(f"_{_COUNTS}", torch.tensor(counts, dtype=torch.float64))
    metrics.log_scalar(f"_{_GOAL}", float(sums.total(_GOAL)) / transferred)
    metrics.log_derived("bleu", lambda meters: round(_bleu_of(meters), 2))
    metrics.log_derived(
        "transfer_score",
        lambda meters: round(
            transfer_score(
                _bleu_of(meters), float(meters["accuracy"].avg), float(meters[f"_{_GOAL}"].avg)
            ),
            2,
        ),
    )


def _bleu_of(meters) -> float:
    return corpus_bleu(meters[f"_{_COUNTS}"].sum.tolist())


def _grams(words: List[int], n: int) -> Counter:
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
