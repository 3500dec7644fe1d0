"""A number that the workers of a data loader read from the process that sets it."""

import torch


class SharedNumber:
    """An integer in shared memory.

    A worker holds a copy of the dataset, made when it started, and fairseq keeps its workers
    from one epoch to the next. What changes between epochs must therefore lie in memory that
    both see, whether the worker was forked or spawned.

    >>> epoch = SharedNumber(1)
    >>> epoch.value = 2
    >>> epoch.value
    2
    """

    def __init__(self, value: int):
        self._cell = torch.tensor([value], dtype=torch.int64).share_memory_()

    def __setstate__(self, state):
        # A copy (``copy.deepcopy``, ``pickle``) shares with its own workers; a worker that was
        # spawned has received memory that is shared already.
        self._cell = state["_cell"].share_memory_()

    @property
    def value(self) -> int:
        return int(self._cell[0])

    @value.setter
    def value(self, value: int):
        self._cell[0] = value
