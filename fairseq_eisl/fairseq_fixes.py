"""The few mends that fairseq 0.12 needs under today's torch and numpy.

Each is as narrow as it can be; ``tests/test_fairseq_fixes.py`` fails when one is no
longer needed.
"""

import argparse
import contextlib
import functools
import os
import sys
import types

import numpy as np
import torch

from .common.unreadable import why_unreadable


def apply():
    """Apply every mend; safe to call twice. Runs when fairseq loads the plugin."""
    allow_checkpoint_classes()
    mend_crf_float()
    mend_crf_precision()
    mend_token_blocks()
    mend_bart_beams()
    quieten_libnat()
    explain_unreadable_checkpoints()
    keep_state_of_trainings()
    tell_of_dummy_batches()
    join_launched_workers()
    trust_other_workers()


def checkpoint_classes() -> list:
    """The harmless classes that fairseq's own checkpoints hold, or pairs (class, its other name).

    Namespace: the arguments of models without a dataclass. The numpy entries:
    counts and scores that validation with BLEU leaves in the saved meters.
    """
    multiarray = (np._core if hasattr(np, "_core") else np.core).multiarray
    names = [
        (entry, f"numpy.{core}.multiarray.{entry.__name__}")
        for entry in (multiarray._reconstruct, multiarray.scalar)
        for core in ("_core", "core")  # numpy 2 and numpy 1, whichever wrote the checkpoint
    ]
    return [
        argparse.Namespace,
        np.dtype,
        np.ndarray,
        type(np.dtype(np.float64)),
        type(np.dtype(np.float32)),
        type(np.dtype(np.int64)),
        *names,
    ]


def allow_checkpoint_classes():
    """Let ``torch.load`` read fairseq's checkpoints with its safe loader.

    Since torch 2.6 the default is ``weights_only=True`` and fairseq says nothing
    else, so that generation, resuming and fine-tuning refuse fairseq's own
    checkpoints. Naming the classes keeps the loader safe: a checkpoint with any
    other class is still refused, and the default of ``torch.load`` is unchanged.
    """
    major, minor = torch.__version__.split(".")[:2]
    if (int(major), int(minor)) >= (2, 6):  # before, everything is loaded
        torch.serialization.add_safe_globals(checkpoint_classes())


def mend_crf_float():
    """``np.float`` is gone since numpy 1.24; NAT-CRF's layer still asks for it.

    Only that module sees the mend, numpy itself stays as it is.
    """
    from fairseq.modules import dynamic_crf_layer

    if not hasattr(np, "float"):
        dynamic_crf_layer.np = types.SimpleNamespace(float=float)


def mend_crf_precision():
    """NAT-CRF's scores of whole sentences are sums over all their tokens, which half precision
    (``--fp16``, ``--amp``) would hold to a quarter of a nat; they are in float32 here.

    The scores of words that decoding gives back have the dtype of the model again.
    """
    from fairseq.modules.dynamic_crf_layer import DynamicCRF

    if hasattr(DynamicCRF.forward, "__wrapped__"):
        return
    forward, decode = DynamicCRF.forward, DynamicCRF.forward_decoder

    @functools.wraps(forward)
    def precise_forward(self, emissions, *args, **kwargs):
        return forward(self, emissions.float(), *args, **kwargs)

    @functools.wraps(decode)
    def precise_decoder(self, emissions, *args, **kwargs):
        scores, tokens = decode(self, emissions.float(), *args, **kwargs)
        return scores.type_as(emissions), tokens

    DynamicCRF.forward, DynamicCRF.forward_decoder = precise_forward, precise_decoder


def mend_token_blocks():
    """``np.compat`` is gone since numpy 2; text in blocks of one sentence still asks for it.

    That is ``--sample-break-mode eos`` of the stock tasks denoising and language_modeling. Only
    that module sees the mend.
    """
    from fairseq.data import token_block_dataset

    if not hasattr(np, "compat"):
        mended = types.ModuleType("numpy")
        mended.__dict__.update(vars(np), compat=types.SimpleNamespace(long=int))
        token_block_dataset.np = mended


def mend_bart_beams():
    """A BART model must not remember the beam of a generator that was built for it.

    fairseq's ``SequenceGenerator`` tells BART's attention the beam size when it is built, and
    attention then takes each b-th source for those of all b rows, wherever the model is used
    from then on: with ``--eval-bleu`` and a beam, in training and in the validation loss, too.
    Unlike every other model, BART thereby saves copies of the source's keys and values in beam
    search; the translations are the same without.
    """
    from fairseq.models.bart import BARTModel

    BARTModel.set_beam_size = keep_no_beam_size


def keep_no_beam_size(model, beam):
    """In place of ``BARTModel.set_beam_size``."""


def join_launched_workers():
    """Let workers that ``torchrun`` starts find each other where there is no GPU, or one.

    fairseq takes the number of GPUs for the number of workers unless ``--distributed-world-size``
    says another: without it each worker would train for itself, all of them into one folder. With
    it, and without a GPU, it divides by their number.

    And let a training within a job of SLURM, started once, use the GPUs of its machine, as it
    does elsewhere: fairseq looks at the job's tasks first, even where no ``--distributed-port``
    asks for several machines, and ends or waits for tasks that are none of this training; it
    takes the port from the job's number, so that two trainings in one job would meet. What
    ``srun`` starts as several tasks goes fairseq's way.
    """
    from fairseq.distributed import utils

    infer = utils.infer_init_method
    if getattr(infer, "joins_launched_workers", False):
        return

    @functools.wraps(infer)
    def infer_init_method(cfg, force_distributed=False):
        known = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
        launched = all(name in os.environ for name in known)
        if launched and cfg.distributed_init_method is None:
            cfg.distributed_world_size = int(os.environ["WORLD_SIZE"])
            if cfg.distributed_world_size > 1 and not torch.cuda.device_count():
                cfg.distributed_init_method = "env://"
                cfg.distributed_rank = int(os.environ["RANK"])
                cfg.distributed_no_spawn = True
                cfg.device_id = 0
                return
        alone = int(os.environ.get("SLURM_STEP_NUM_TASKS") or 1) == 1
        with _without_slurm(alone and not launched and cfg.distributed_port <= 0):
            infer(cfg, force_distributed)

    infer_init_method.joins_launched_workers = True  # type: ignore[attr-defined]
    utils.infer_init_method = infer_init_method


@contextlib.contextmanager
def _without_slurm(hide: bool):
    """Without the variables of a job of SLURM, where they are to be hidden."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if hide and "SLURM_" in name}
    try:
        yield
    finally:
        os.environ.update(hidden)


def trust_other_workers():
    """Let workers read what the first one has loaded for all: resuming, fine-tuning with several.

    fairseq sends them the checkpoint with its settings as OmegaConf's objects, which the safe
    loader of torch since 2.6 refuses (``allow_checkpoint_classes``). It comes from the training
    itself, so there everything is loaded; that module alone sees the mend.
    """
    from fairseq.distributed import utils

    if utils.torch is torch:
        mended = types.ModuleType("torch")
        load = functools.partial(torch.load, weights_only=False)
        mended.__dict__.update(vars(torch), load=load)
        utils.torch = mended


def quieten_libnat():
    """Levenshtein models look for the CUDA library anew in every step, and print that it is
    missing each time; once is enough."""
    from fairseq.models.nat import levenshtein_utils

    if not hasattr(levenshtein_utils.load_libnat, "cache_info"):
        levenshtein_utils.load_libnat = functools.lru_cache(None)(levenshtein_utils.load_libnat)


def explain_unreadable_checkpoints():
    """Resuming and generating from a file that is no checkpoint, or holds a class that the safe
    loader refuses, ends in one line of ours instead of torch's page or a KeyError of fairseq's."""
    from fairseq import checkpoint_utils

    load = checkpoint_utils.load_checkpoint_to_cpu
    if hasattr(load, "__wrapped__"):
        return

    @functools.wraps(load)
    def load_checkpoint_to_cpu(path, *args, **kwargs):
        try:
            state = load(path, *args, **kwargs)
        except Exception as err:  # damage comes out as anything, from KeyError to UnicodeError
            if os.path.isfile(path) and not isinstance(err, (OSError, MemoryError)):
                _explain(path, err)
            raise
        _check_contents(path, state)
        return state

    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu


def _explain(path: str, error: Exception):
    """Raise ValueError if the file is why ``error`` came of loading it."""
    try:
        state = torch.load(path, map_location="cpu")
    except Exception as err:
        raise ValueError(f"{path}: {why_unreadable(path, err)}") from error
    _check_contents(path, state)


def _check_contents(path: str, state):
    if not (isinstance(state, dict) and "model" in state):
        raise ValueError(
            f"{path}: it holds a {type(state).__name__} without the entry 'model', so it is no "
            "checkpoint that fairseq-train saved"
        )
    if not (state.get("cfg") or state.get("args") or "optimizer_history" in state):
        raise ValueError(
            f"{path}: it holds a model without its settings ('cfg' or 'args') and counts, so it is "
            "no checkpoint that fairseq-train saved"
        )


def keep_state_of_trainings():
    """What fairseq's checkpoints lack for a training that is resumed to go on as it would have.

    The ``kept_state()`` of a criterion that has one; it gets it back by ``load_kept_state``.
    fairseq saves a criterion only where it has parameters, then wraps it like a model, and cannot
    start it from a checkpoint of another criterion; what it saves of a task it never loads.

    And what ``--patience`` counts, which fairseq keeps in its function: a training that was killed
    would have as much patience again.
    """
    from fairseq.trainer import Trainer

    if hasattr(Trainer.load_checkpoint, "__wrapped__"):
        return
    state_of, load = Trainer.state_dict, Trainer.load_checkpoint

    @functools.wraps(state_of)
    def state_dict(self):
        state = state_of(self)
        criterion = self.get_criterion()
        if hasattr(criterion, "kept_state"):
            state["extra_state"]["criterion_state"] = criterion.kept_state()
        counted = vars(_stopping()) if self.cfg.checkpoint.patience > 0 else {}
        if "best" in counted:
            state["extra_state"]["patience_state"] = {name: counted[name] for name in _COUNTED}
        return state

    @functools.wraps(load)
    def load_checkpoint(
        self,
        filename,
        reset_optimizer=False,
        reset_lr_scheduler=False,
        optimizer_overrides=None,
        reset_meters=False,
    ):
        flags = (reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters)
        extra = load(self, filename, *flags)
        criterion, kept = self.get_criterion(), (extra or {}).get("criterion_state")
        # Another training that begins with these weights begins anew.
        if kept is not None and not reset_optimizer and hasattr(criterion, "load_kept_state"):
            criterion.load_kept_state(kept)
        counted = (extra or {}).get("patience_state")
        if counted and not reset_optimizer and not reset_meters:  # as the best score of all
            vars(_stopping()).update(counted)
        return extra

    Trainer.state_dict, Trainer.load_checkpoint = state_dict, load_checkpoint


def tell_of_dummy_batches():
    """``criterion.is_dummy`` says whether a batch only fills up for a worker that has none left:
    its loss counts nothing, and nor may what criterions remember of it.

    fairseq's own sign of that reaches the task alone.
    """
    from fairseq.trainer import Trainer

    if hasattr(Trainer._prepare_sample, "__wrapped__"):
        return
    prepare = Trainer._prepare_sample

    @functools.wraps(prepare)
    def prepare_sample(self, sample, is_dummy=False):
        made, dummy = prepare(self, sample, is_dummy)
        self.get_criterion().is_dummy = dummy or is_dummy
        return made, dummy

    Trainer._prepare_sample = prepare_sample


_COUNTED = ("best", "num_runs")


def _stopping():
    """The function of fairseq-train that counts what ``--patience`` waits for, in its own
    attributes; another one where no fairseq-train is at work."""
    for name in ("__main__", "fairseq_cli.train"):
        found = getattr(sys.modules.get(name), "should_stop_early", None)
        if found is not None:
            return found
    return lambda cfg, valid_loss: False
