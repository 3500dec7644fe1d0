"""Loss truncation (Kang and Hashimoto, ACL 2020, arXiv 2004.14589): sentences of the highest losses
are left out.

What is high is read off the losses of the last sentences: those at or above their (1 - fraction)
quantile are taken for noise.
"""

import math
from collections import deque
from typing import Any, Deque, Dict

import torch
from torch import Tensor


class LossWindow:
    """The losses of the last sentences, and the threshold that they give.

    The counting is that of the authors' dropper: nothing is left out before ``warmup`` sentences,
    and after that the threshold is computed whenever more than ``interval`` sentences have come
    since the last time, the batch at hand included.

    Args:
        fraction: of the sentences that is left out, in [0, 1).
        size: sentences whose losses are kept.
        warmup: sentences before anything is left out.
        interval: sentences between two thresholds.

    Raises:
        ValueError: a number out of range.

    >>> window = LossWindow(0.4, size=4, warmup=4, interval=4)
    >>> window.keep(torch.tensor([1.0, 2.0, 3.0])).tolist()
    [True, True, True]
    >>> window.keep(torch.tensor([4.0, 5.0])).tolist(), round(window.threshold, 4)
    ([False, False], 3.8)
    """

    def __init__(
        self, fraction: float = 0.4, size: int = 10000, warmup: int = 10000, interval: int = 10000
    ):
        if not 0 <= fraction < 1:
            raise ValueError(f"fraction must be in [0, 1), not {fraction}")
        for name, value, least in (("size", size, 1), ("warmup", warmup, 0),
                                   ("interval", interval, 0)):  # fmt: skip
            if value < least:
                raise ValueError(f"{name} must be {least} or more, not {value}")
        self.fraction, self.warmup, self.interval = fraction, warmup, interval
        self.values: Deque[float] = deque(maxlen=size)
        self.seen = self.since = 0
        self.threshold = math.inf

    def keep(self, losses: Tensor) -> Tensor:
        """Take note of (B,) losses, and say which sentences of their batch are kept.

        Returns:
            (B,) bool: losses strictly below the threshold, and NaN, which is not hidden.
        """
        self.note(losses)
        return self.below(losses)

    def note(self, losses: Tensor):
        """Take note of (N,) losses; what is no number says nothing of others."""
        found = losses.detach().double().cpu()
        said = found[found.isfinite()].tolist()
        self.values.extend(said)
        self.seen += len(said)
        self.since += len(said)
        if self.seen >= self.warmup and self.since > self.interval:
            held = torch.tensor(self.values, dtype=torch.float64)
            self.threshold = torch.quantile(held, 1 - self.fraction).item()
            self.since = 0

    def below(self, losses: Tensor) -> Tensor:
        """(B,) bool, which losses are kept."""
        if self.fraction == 0:
            return torch.ones_like(losses, dtype=torch.bool)
        return ~losses.detach().double().ge(self.threshold)

    def state_dict(self) -> Dict[str, Any]:
        """What a checkpoint keeps; the losses from the oldest to the newest."""
        return {
            "values": torch.tensor(self.values, dtype=torch.float64),
            "seen": self.seen,
            "since": self.since,
            "threshold": self.threshold,
        }

    def load_state_dict(self, state: Dict[str, Any]):
        """Go on from :meth:`state_dict`; a smaller window takes the last losses, a larger one all.

        The threshold is the saved one until the next is due.
        """
        self.values.clear()
        self.values.extend(state["values"].tolist())
        self.seen, self.since = int(state["seen"]), int(state["since"])
        self.threshold = float(state["threshold"])
