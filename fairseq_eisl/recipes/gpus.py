"""Which GPUs of one machine each of several jobs has: ``gpus: "0;1"``, a part for each job; and of
its part one alone for what uses no more, generation."""

import os
from typing import Iterable, List, Optional

from omegaconf import DictConfig

from .errors import RecipeError

JOB = "FAIRSEQ_EISL_JOB"
"""The environment's number of a job among those at work at once on a machine, from 0 on; what
it starts inherits it."""


def parts(gpus: str) -> List[str]:
    """Of each job, as CUDA_VISIBLE_DEVICES has them.

    >>> parts("0,1; 2,3")
    ['0,1', '2,3']
    """
    return [part.strip() for part in gpus.split(";")]


def of_this_job(gpus: str, one: bool = False) -> str:
    """CUDA_VISIBLE_DEVICES of the commands that this process starts.

    ``one``: of a command that uses one GPU; jobs that share a part have different ones of it.
    """
    every, job = parts(gpus), int(os.environ.get(JOB, 0))
    part = every[job % len(every)]
    if not one:
        return part
    within = part.split(",")
    return within[job // len(every) % len(within)].strip()


def to_generate(gpus: Optional[str], there: int) -> Optional[str]:
    """What ``gpus`` is for generation, which would take the first GPU that it sees, in every job.

    ``there``: how many this machine has. None where there is no choice.
    """
    if gpus is not None or there < 2:
        return gpus
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[:there]
    return ",".join(seen if len(seen) == there else map(str, range(there)))


def check_gpus(recipes: Iterable[DictConfig], jobs: int, slurm: bool = False):
    """Raise RecipeError where jobs at once would have to share a part, or SLURM gives them their
    own GPUs. One part alone is shared, as it says."""
    for recipe in recipes:
        every = parts(recipe.gpus or "")
        if len(every) == 1:
            continue
        if slurm:
            raise RecipeError(
                f"gpus: {recipe.gpus}: parts are for jobs of one machine; SLURM gives each job its "
                "own GPUs (--parameters gpus_per_node=1), leave gpus away"
            )
        if jobs > len(every):
            raise RecipeError(
                f"--jobs {jobs}: gpus: {recipe.gpus} has {len(every)} parts; "
                f"--jobs {len(every)}, or a part for each job"
            )
