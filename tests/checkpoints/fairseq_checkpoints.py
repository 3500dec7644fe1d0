"""Checkpoints as fairseq saves them, for the tests of this folder."""

from collections import OrderedDict

import numpy as np
import torch


def checkpoint(model, updates=10, **changes):
    """What fairseq saves, as far as it matters."""
    state = {
        "args": None,
        "cfg": {
            "checkpoint": {
                "best_checkpoint_metric": "bleu",
                "maximize_best_checkpoint_metric": True,
            }
        },
        "model": model if isinstance(model, OrderedDict) else OrderedDict(model),
        "criterion": None,
        "optimizer_history": [{"criterion_name": "EISL", "num_updates": updates}],
        "task_state": {},
        "extra_state": {
            "train_iterator": {"epoch": 2},
            "val_loss": np.float64(1.5),
            "best": 1.5,
            "ema": {"w": torch.ones(2)},
        },
        "last_optimizer_state": {"state": {0: {"exp_avg": torch.zeros(1000)}}},
    }
    return {**state, **changes}


def save(name, model, updates=10, **changes):
    torch.save(checkpoint(model, updates, **changes), name)
    return name


def place(tensor):
    """Where its memory begins: the same for tied tensors."""
    return tensor.untyped_storage().data_ptr()
