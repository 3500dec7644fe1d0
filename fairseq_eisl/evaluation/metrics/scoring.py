"""Texts to the scores of all metrics that are asked for."""

import contextlib
from typing import Dict, List

from ...common.errors import Refused, naming
from .registry import Job, Metric, idle_flags, registered


def asked(job: Job) -> List[Metric]:
    """The metrics that are computed, in the order of the rows."""
    return [metric for metric in registered() if metric.asked(job.options)]


def scores(job: Job) -> Dict[str, str]:
    """The columns of a row; a signature stands behind the last metric that has it.

    Raises:
        Refused: names the flag of a metric that cannot be computed, or one without effect.
    """
    for flag, needed in idle_flags(lambda flag: flag.value(job.options)):
        value = flag.value(job.options)
        raise Refused(f"{flag.name} {value}: needs {needed.name} {needed.metavar}")
    metrics = asked(job)
    found = {}
    for metric in sorted(metrics, key=lambda one: not one.flags):  # what may be refused is first
        with contextlib.ExitStack() as stack:
            if metric.flags:
                value = metric.flags[0].value(job.options) or ""
                stack.enter_context(naming(f"{metric.flags[0].name} {value}", value))
            found[metric.name] = metric.compute(job)
    row: Dict[str, str] = {}
    for metric in metrics:
        for name, value in found[metric.name].items():
            if metric.signature and name == metric.signature.column:
                row.pop(name, None)
            row[name] = value
    return row


def sentence(job: Job, row: Dict[str, str]) -> str:
    """The scores of a row for people, on one line."""
    told = [metric.sentence(row) for metric in asked(job)]
    return " | ".join(filter(None, told))
