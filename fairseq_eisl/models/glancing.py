"""Glancing (Qian et al., ACL 2021, arXiv 2008.07905): a decoder is shown as many target tokens as
its first pass is wrong, times a ratio that falls while it learns."""

import math
import re
from typing import NamedTuple

import torch
from torch import Tensor

_RATIO = re.compile(r"([\d.]+)(?::([\d.]+)@(\d+))?")


class Ratio(NamedTuple):
    """A ratio that goes from one value to another in a number of updates."""

    first: float
    last: float
    updates: int

    def at(self, update: int) -> float:
        """Its value there.

        >>> [round(Ratio(0.5, 0.1, 100).at(update), 9) for update in (0, 50, 200)]
        [0.5, 0.3, 0.1]
        """
        done = min(1.0, update / self.updates) if self.updates else 1.0
        return self.first + (self.last - self.first) * done


def parsed_ratio(text: str) -> Ratio:
    """``0.5`` or ``0.5:0.1@200000``.

    Raises:
        ValueError: something else.

    >>> parsed_ratio("0.5:0.1@200000")
    Ratio(first=0.5, last=0.1, updates=200000)
    """
    found = _RATIO.fullmatch(str(text))
    try:
        assert found is not None
        first, last, updates = found.groups()
        values = [float(first), float(last or first)]
    except (AssertionError, ValueError):
        values = [math.nan]
    if not all(0 <= value <= 1 for value in values):
        raise ValueError(
            f"--glancing-ratio must be a number in [0, 1], or FROM:TO@UPDATES such as "
            f"0.5:0.1@200000, not {text!r}"
        )
    return Ratio(values[0], values[1], int(updates or 0))


def glance(
    shown: Tensor, expected: Tensor, words: Tensor, wrong: Tensor, ratio: float, draws: Tensor
) -> Tensor:
    """The decoder's input with some words in their slots.

    Args:
        shown: (B, L) int64, the input so far.
        expected: (B, L) int64, what the best alignment has each slot say.
        words: (B, L) bool, the slots that it has say a word.
        wrong: (B, L) bool, the slots that say something else in the first pass.
        ratio: of the number of mistakes among those slots, rounded, halves up.
        draws: (B, L) random numbers; the slots with the smallest ones are shown.

    >>> shown, words = torch.zeros(1, 4).long(), torch.tensor([[True, True, True, False]])
    >>> expected, wrong = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[False, True, True, True]])
    >>> glance(shown, expected, words, wrong, 0.5, torch.tensor([[0.3, 0.1, 0.2, 0.0]])).tolist()
    [[0, 6, 0, 0]]
    """
    mistakes = (words & wrong).sum(1, keepdim=True)
    count = (mistakes * ratio + 0.5).floor()
    rank = draws.masked_fill(~words, 2.0).argsort(1).argsort(1)
    return torch.where(words & (rank < count), expected, shown)
