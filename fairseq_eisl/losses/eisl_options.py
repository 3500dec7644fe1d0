"""The options of the Edit-Invariant Sequence Loss, and what becomes of its sentences."""

import math
from dataclasses import dataclass
from typing import Iterable, Optional, Sequence, Tuple

from torch import Tensor

from .position_selection import CHOICES, SELECTION_ON

REDUCTIONS = ("mean", "sum", "none")


def _finite(value) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def check_reduction(reduction: str):
    """Raise ValueError unless it is one of ``REDUCTIONS``."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction={reduction!r} is unknown; choose from {', '.join(REDUCTIONS)}")


def reduce_sentences(losses: Tensor, reduction: str) -> Tensor:
    """(B,) losses to their ``mean``, ``sum`` or ``none`` (themselves)."""
    if reduction == "none":
        return losses
    total = losses.sum()
    return total / max(1, losses.numel()) if reduction == "mean" else total


@dataclass(frozen=True)
class EISLOptions:
    """The options of :func:`eisl_loss`, checked once."""

    ngrams: Sequence[int] = (2, 3, 4)
    weights: Optional[Sequence[float]] = None
    selection: str = "gumbel"
    temperature: float = 1.0
    selection_on: str = "log_prob"
    floor: float = -20.0
    normalize: bool = True

    def __post_init__(self):
        ngrams = tuple(self.ngrams) if isinstance(self.ngrams, Iterable) else ()
        if not ngrams or not all(type(n) is int for n in ngrams):
            raise ValueError(f"ngrams must be one or more integers, not {self.ngrams!r}")
        weights = (1.0 / len(ngrams),) * len(ngrams) if self.weights is None else self.weights
        weights = tuple(weights) if isinstance(weights, Iterable) else (weights,)
        if len(weights) != len(ngrams):
            raise ValueError(
                f"weights must have one number for each of the {len(ngrams)} ngrams {ngrams}, "
                f"not {len(weights)}: {weights}"
            )
        if not all(_finite(w) and w >= 0 for w in weights) or not sum(weights) > 0:
            raise ValueError(
                f"weights must be finite numbers, not negative and not all 0: {weights}"
            )
        for name, value, choices in (
            ("selection", self.selection, CHOICES),
            ("selection_on", self.selection_on, SELECTION_ON),
        ):
            if value not in choices:
                raise ValueError(f"{name}={value!r} is unknown; choose from {', '.join(choices)}")
        if not (_finite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be a number above 0, not {self.temperature!r}")
        if not (_finite(self.floor) and self.floor < 0):
            raise ValueError(f"floor must be a finite log-probability below 0, not {self.floor!r}")
        object.__setattr__(self, "ngrams", ngrams)
        object.__setattr__(self, "weights", weights)

    @property
    def order_weights(self) -> Tuple[float, ...]:
        """One weight for each order, equal ones where none were given."""
        return tuple(self.weights or ())

    def without_noise(self) -> "EISLOptions":
        """The same with ``softmax`` in place of ``gumbel``: a repeatable value."""
        if self.selection != "gumbel":
            return self
        return EISLOptions(**{**self.__dict__, "selection": "softmax"})

    def possible_orders(self, room: int) -> Sequence[int]:
        """The orders that some sentence of at most ``room`` tokens may use."""
        used = {n for n, weight in zip(self.ngrams, self.order_weights) if weight > 0}
        if min(used) < 1:  # relative to the length: any order
            return range(1, room + 1)
        fallbacks = set(range(1, min(used)))
        return sorted(n for n in fallbacks | used if n <= room)


DEFAULTS = EISLOptions()
