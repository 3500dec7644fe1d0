"""fairseq's checkpoints read by torch's safe loader, and written whole or not at all."""

import errno
import inspect
import os
import zipfile
from typing import Any, Dict, Mapping

import torch

from ..common.files import whole_file
from ..common.unreadable import why_unreadable
from ..fairseq_fixes import allow_checkpoint_classes


def read_checkpoint(path: str) -> Dict[str, Any]:
    """The checkpoint on the CPU; ``["model"]`` is its state dict, names to tensors.

    Only classes that :mod:`fairseq_eisl.fairseq_fixes` knows to be harmless are loaded.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no fairseq checkpoint, or holds another class.
    """
    if os.path.isdir(path):
        message = "Is a directory, name a checkpoint in it"
        raise IsADirectoryError(errno.EISDIR, message, path)
    allow_checkpoint_classes()
    # Mapped, the optimiser's state (twice the model) stays on the disk until somebody asks for it.
    # Since torch 2.1, and not for the format from before torch 1.6, which is no zip archive.
    mapped = zipfile.is_zipfile(path) and "mmap" in inspect.signature(torch.load).parameters
    options: Dict[str, Any] = {"mmap": True} if mapped else {}
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, **options)
    except Exception as err:  # whatever an unpickler makes of the bytes of another format
        if isinstance(err, OSError) and err.filename is not None:
            raise  # could not be opened; a seek beyond a cut file's end names no file
        raise ValueError(f"{path}: {why_unreadable(path, err)}") from err
    if not isinstance(state, dict) or "model" not in state:
        keys = ", ".join(map(str, list(state)[:5])) if isinstance(state, dict) else ""
        raise ValueError(
            f"{path}: no fairseq checkpoint, it has no 'model'" + (f" (but {keys})" if keys else "")
        )
    model = state["model"]
    if not isinstance(model, dict) or not model:
        raise ValueError(f"{path}: no fairseq checkpoint, its 'model' is no state dict")
    for name, value in model.items():
        if not isinstance(value, torch.Tensor):
            raise ValueError(f"{path}: {name} is no tensor but a {type(value).__name__}")
    return state


def updates_of(state: Mapping[str, Any]) -> int:
    """Optimiser steps up to a checkpoint; 0 if it does not say, as for fairseq."""
    history = state.get("optimizer_history") or [{}]
    return int(history[-1].get("num_updates", 0))


def write_checkpoint(state: Mapping[str, Any], path: str) -> None:
    """Save under a temporary name, then let it take the place of ``path``.

    Raises:
        OSError: it cannot be written; what was there before is still there.
        ValueError: ``path`` exists and is no regular file.
    """
    with whole_file(path) as temporary:
        try:
            with open(temporary, "wb") as f:
                torch.save(dict(state), f)
                f.flush()
                os.fsync(f.fileno())
        except RuntimeError as err:  # torch's own writer: the disk is full, say
            raise OSError(errno.EIO, str(err).splitlines()[0], path) from err
