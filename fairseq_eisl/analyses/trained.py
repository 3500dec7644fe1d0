"""Trained models out of checkpoints of fairseq, with their task."""

import contextlib
import logging
import os
from argparse import Namespace
from typing import Any, Dict, Iterator, NamedTuple, Optional

import torch
from fairseq import checkpoint_utils, utils
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.models.nat import FairseqNATModel


class Trained(NamedTuple):
    """A model of a checkpoint, in evaluation mode."""

    name: str
    task: Any
    model: Any
    updates: int
    """Optimiser steps of its training."""
    cfg: Any


def load_trained(
    path: str, name: str = "", data: Optional[str] = None, user_dir: Optional[str] = None
) -> Trained:
    """The autoregressive encoder-decoder of a checkpoint.

    Args:
        name: how rows and figures call it; the file's name without its end, if empty.
        data: the folder of the preprocessed data, where it is not where the training found it.
        user_dir: of another plugin that the model needs.

    Raises:
        OSError, ValueError: no such checkpoint or data, or a model of another kind.
    """
    if user_dir is not None:
        utils.import_user_module(Namespace(user_dir=user_dir))
    # Noise is put on clean targets here; and what validation would decode with is not needed.
    changed: Dict[str, Any] = {"target_noise": "none", "eval_bleu": False}
    if data is not None:
        changed["data"] = data
    if not os.path.isfile(path):
        raise ValueError("there is no such file")
    state = checkpoint_utils.load_checkpoint_to_cpu(path, changed)
    history = state.get("optimizer_history") or [{}]
    updates = int(history[-1].get("num_updates", 0))
    with _noise_flags_idle():
        try:
            (model,), cfg, task = checkpoint_utils.load_model_ensemble_and_task([path], state=state)
        except RuntimeError as err:
            if "size mismatch" not in str(err):  # torch's words for weights of another shape
                raise
            place = f"--data {data}" if data is not None else state["cfg"]["task"].data
            raise ValueError(
                f"{place}: its dictionary is not the one of the training, the weights do not fit"
            ) from err
    kind = type(model).__name__
    if isinstance(model, FairseqNATModel) or not isinstance(model, FairseqEncoderDecoderModel):
        raise ValueError(f"the analyses are of autoregressive encoder-decoders; {kind} is none")
    return Trained(name or name_of(path), task, model.eval(), updates, cfg)


def name_of(path: str) -> str:
    """What a checkpoint is called that has no other name: its file, without the end."""
    return os.path.splitext(os.path.basename(path))[0]


@contextlib.contextmanager
def _noise_flags_idle() -> Iterator[None]:
    """Flags of the training's noise have no effect here, and need not be warned of."""
    logger = logging.getLogger("fairseq_eisl.tasks.noise_flags")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def untrained(trained: Trained, seed: int) -> Trained:
    """The same model with the weights that a training with this ``--seed`` begins with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = trained.task.build_model(trained.cfg.model)
    return trained._replace(name="untrained", model=model.eval(), updates=0)
