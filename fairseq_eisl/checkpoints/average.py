"""The average of the model weights of several checkpoints, one in memory at a time."""

import copy
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor

from .files import read_checkpoint, updates_of

Model = Mapping[str, Tensor]
_SHOWN = 3  # names of parameters in an error


def average_checkpoints(paths: Sequence[str]) -> Dict[str, Any]:
    """A fairseq checkpoint whose model is the unweighted mean of those of ``paths``.

    Floating tensors: summed in float64 (8 bytes a parameter; the mean of equal
    checkpoints is then exactly that checkpoint), returned in their own dtype. A single
    integer or boolean is a counter and comes from the last checkpoint; larger ones are
    tables, of which there is no mean: all must be equal. Names that share one tensor
    in every checkpoint (tied embeddings) share one in the result.

    All else comes from the last checkpoint, except: the optimiser's state and the moving
    average of the weights (EMA) are left out, the validation loss is None, and
    ``["extra_state"]["averaged_from"]`` is new: a list of ``{"file": ..., "num_updates":
    ...}`` (optimiser steps). fairseq generates from the result, and trains on from it
    with a new optimiser.

    Raises:
        OSError: a file cannot be read.
        ValueError: no paths, one given twice, a file that is no fairseq checkpoint, or
            models that differ in names, shapes, dtypes or tables.
    """
    if isinstance(paths, (str, os.PathLike)):
        raise ValueError("a list of checkpoints is needed, not one")
    names = [os.fspath(path) for path in paths]
    if not names:
        raise ValueError("no checkpoints to average")
    for i, name in enumerate(names):
        if os.path.realpath(name) in map(os.path.realpath, names[:i]):
            raise ValueError(f"{name}: it would count twice")
    total = _Total()
    origin: List[Dict[str, Any]] = []
    state: Dict[str, Any] = {}
    for name in names:
        state.clear()  # before the next one is read
        state = read_checkpoint(name)
        total.add(name, state["model"])
        origin.append({"file": name, "num_updates": updates_of(state)})
    model = copy.copy(state["model"])  # keeps the versions of the modules that torch notes in it
    model.update(total.mean(state["model"]))
    extra = dict(state.get("extra_state") or {})
    for key in ("ema", "ema_fp32_params"):  # of one checkpoint alone
        extra.pop(key, None)
    extra.update(averaged_from=origin, val_loss=None)
    state.update(model=model, extra_state=extra)
    state.pop("last_optimizer_state", None)
    return state


class _Total:
    """Sums over checkpoints. ``leaders``: names that share a tensor have the same leader."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self.kinds: Dict[str, Tuple[tuple, torch.dtype]] = {}
        self.leaders: Dict[str, str] = {}
        self.sums: Dict[str, Tensor] = {}
        self.tables: Dict[str, Tensor] = {}

    @torch.no_grad()
    def add(self, path: str, model: Model) -> None:
        """Raises ValueError: a model unlike the first."""
        if self.count == 0:
            self.first = path
            self.kinds = {name: (tuple(t.shape), t.dtype) for name, t in model.items()}
            self.tables = {name: t.clone() for name, t in model.items() if _is_table(t)}
        self._check(path, model)
        before, self.leaders = self.leaders, self._refined(model)
        for name in dict.fromkeys(self.leaders.values()):
            if model[name].is_floating_point() and name not in self.sums:
                if self.count:  # no longer tied: what was summed so far, on its own
                    self.sums[name] = self.sums[before[name]].clone()
                else:
                    self.sums[name] = torch.zeros(model[name].shape, dtype=torch.float64)
        for name, total in self.sums.items():
            total += model[name]
        self.count += 1

    def mean(self, last: Model) -> Iterator[Tuple[str, Tensor]]:
        """Names and tensors; counters and tables are those of ``last``. Uses the sums up."""
        done: Dict[str, Tensor] = {}
        for name, leader in self.leaders.items():
            if leader not in done:
                total = self.sums.pop(leader, None)
                value = last[leader].detach().clone() if total is None else total.div_(self.count)
                done[leader] = value.to(last[leader].dtype)
            yield name, done[leader]

    def _refined(self, model: Model) -> Dict[str, str]:
        """Leaders of the names that share a tensor in this model and in all before."""
        seen: Dict[Tuple[Optional[str], tuple], str] = {}
        return {
            name: seen.setdefault((self.leaders.get(name), _place(model[name])), name)
            for name in self.kinds
        }

    def _check(self, path: str, model: Model) -> None:
        first = self.first
        missing = [name for name in self.kinds if name not in model]
        if missing:
            raise ValueError(f"{path}: no parameter {_some(missing)}, {first} has it")
        extra = [name for name in model if name not in self.kinds]
        if extra:
            raise ValueError(f"{path}: parameter {_some(extra)} is not in {first}")
        for name, (shape, dtype) in self.kinds.items():
            tensor = model[name]
            if tuple(tensor.shape) != shape:
                raise ValueError(
                    f"{path}: {name} has shape {tuple(tensor.shape)}, {shape} in {first}"
                )
            if tensor.dtype != dtype:
                raise ValueError(f"{path}: {name} is {tensor.dtype}, {dtype} in {first}")
            if name in self.tables and not torch.equal(tensor, self.tables[name]):
                raise ValueError(
                    f"{path}: {name} ({dtype}) has other values than in {first}, "
                    "and there is no mean of such"
                )


def _is_table(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.numel() != 1


def _place(tensor: Tensor) -> tuple:
    """Equal for tensors that are the same memory read in the same way."""
    start = tensor.untyped_storage().data_ptr()
    return start, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
