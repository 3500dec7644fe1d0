"""What trainers log beside the loss: means of everything since the last time."""

from typing import Any, Dict, Iterable, Tuple

import torch
from torch import Tensor

Pair = Tuple[Any, Any]
"""A sum, and of how many it is."""


class RunningMeans:
    """Sums of several processes, and their means under fixed names.

    >>> means = RunningMeans(["eisl", "nll"])
    >>> means.add({"eisl": (6.0, 2)})
    >>> means.add({"eisl": (1.0, 2)})
    >>> means.taken(lambda sums: sums)
    {'eisl': 1.75}
    >>> means.taken(lambda sums: sums)
    {}
    """

    def __init__(self, names: Iterable[str]):
        self.names = tuple(names)
        self.sums: Dict[str, Any] = {}

    def add(self, pairs: Dict[str, Pair]):
        """Add sums on the device where they are."""
        for name, (total, count) in pairs.items():
            before = self.sums.get(name, (0.0, 0.0))
            self.sums[name] = (before[0] + total, before[1] + count)

    def forget(self):
        self.sums.clear()

    def taken(self, over_processes: Any, device: Any = "cpu") -> Dict[str, float]:
        """The means of what was counted anywhere, and begin anew.

        Args:
            over_processes: adds up a tensor over all processes, which all must call this.
        """
        pairs = [self.sums.get(name, (0.0, 0.0)) for name in self.names]
        rows = [[torch.as_tensor(x, dtype=torch.float64, device=device) for x in p] for p in pairs]
        sums: Tensor = over_processes(torch.stack([torch.stack(row) for row in rows]))
        self.forget()
        totals = sums.tolist()
        return {n: total / count for n, (total, count) in zip(self.names, totals) if count}
