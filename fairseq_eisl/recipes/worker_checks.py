"""Where a recipe's trainings run: one process or several workers, on CPUs or GPUs."""

import re
from typing import Any, Mapping, Optional, Sequence

from omegaconf import DictConfig

from .gpus import parts
from .recipe import Device, flag_groups, training_flags

# What fairseq has by default is for GPUs.
_ON_CPUS = {"distributed-backend": "gloo", "ddp-backend": "legacy_ddp"}
_STARTERS = re.compile(
    r"torchrun|torch\.distributed\.(run|launch)|mpirun|mpiexec|horovodrun|accelerate|deepspeed"
)


def workers(launcher: Sequence[str], flags: Mapping[str, Any]) -> Optional[str]:
    """What of a training's words is for several workers on GPUs; None if nothing is.

    Workers that torchrun starts find each other on CPUs, too (``join_launched_workers``).
    """
    started = next((word for word in launcher if _STARTERS.search(word)), None)
    if started and not re.search(r"torchrun|torch\.distributed\.run", started):
        return f"launcher: {started} starts workers, which fairseq joins on GPUs only"
    for flag, value in _ON_CPUS.items():
        if started and str(flags.get(flag)) != value:
            needed = " ".join(f"--{flag} {value}" for flag, value in _ON_CPUS.items())
            return f"launcher: the workers of {started} need {needed} on CPUs"
    for flag in ("distributed-world-size", "nprocs-per-node", "distributed-num-procs"):
        if flag in flags and str(flags[flag]) not in ("1", "None", "False"):
            return f"--{flag} {flags[flag]}: fairseq has several workers on GPUs only"
    for flag in ("distributed-init-method", "distributed-port", "distributed-rank"):
        if flags.get(flag) not in (None, False):
            return f"--{flag} {flags[flag]}: fairseq has several workers on GPUs only"
    return None


def check_workers(recipe: DictConfig):
    """A training on a CPU is one process: of several workers that do not find each other each
    would train for itself, in one folder."""
    for key, flags in flag_groups(recipe):
        for flag in ("distributed-init-method", "distributed-rank"):
            if flags.get(flag) not in (None, False) and not recipe.launcher:
                what = "a recipe starts one command, which would wait for others"
                yield f"{key}.{flag}", f"{what}; launcher starts several, or leave it away"
    every = parts(recipe.gpus or "")
    if len(every) > 1 and "" in every:
        yield "gpus", f"{recipe.gpus}: a part is empty; e.g. 0;1 for two jobs at once"
    elif len({part.count(",") for part in every}) > 1:
        what = "parts of several sizes, and batches grow with the GPUs; give each as many"
        yield "gpus", f"{recipe.gpus}: {what}"
    if recipe.device != Device.cpu:
        return
    for name in recipe.train:
        found = workers(recipe.launcher, training_flags(recipe, name))
        if found:
            key, _, what = found.partition(": ")
            key = key if key == "launcher" else f"train.{name}: {key}"
            yield key, f"{what}; with device: cpu change it (OMP_NUM_THREADS sets the threads)"
    if recipe.gpus:
        yield "gpus", f"{recipe.gpus}: with device: cpu there are none; leave one of them away"
