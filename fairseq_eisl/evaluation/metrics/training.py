"""What the system's training has cost, beside its scores."""

from typing import Dict

from ..readers.training_log import training_effort
from .registry import SENTENCES, Column, Flag, Job, Metric, register

_LOG = Flag(
    "--training-log",
    "FILE",
    "the system's log of fairseq-train: adds training_seconds and updates",
    in_run=("training", "log"),
)


def _compute(job: Job) -> Dict[str, str]:
    return training_effort(_LOG.value(job.options) or "")


register(
    Metric(
        "training",
        (
            Column("training_seconds", "training, seconds", after=SENTENCES, in_table=False),
            Column("updates", in_table=False, in_report=False),
            Column("threads", in_table=False, in_report=False),
        ),
        _compute,
        said="",
        flags=(_LOG,),
        place=40,
    )
)
