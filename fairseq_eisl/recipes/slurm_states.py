"""Which SLURM jobs are over, from squeue: submitit asks sacct, which answers only where the cluster
keeps accounts. Without it a killed job, which leaves no result, would be waited for for ever."""

import subprocess
import time
from typing import Dict, Sequence, Tuple

BETWEEN = 5.0
"""Seconds between two looks."""
GRACE = 15.0
"""Seconds that the result of a job that is over may take to appear on a slow disk."""
_FINAL = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "REVOKED", "TIMEOUT"),
}
_FORGOTTEN = "Invalid job id"  # of squeue, some minutes after the end


def final_states(ids: Sequence[str]) -> Dict[str, str]:
    """The state of each job that is over; nothing where squeue does not answer."""
    if not ids:
        return {}
    command = ["squeue", "--noheader", "--states=all", "--format=%A %T", f"--jobs={','.join(ids)}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    if done.returncode and _FORGOTTEN not in done.stderr:
        return {}
    found = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line)
    states = {job: found.get(job, "forgotten").strip() for job in ids}
    return {job: state for job, state in states.items() if state in {*_FINAL, "forgotten"}}


class EndedJobs:
    """The jobs that are over, looked at now and then."""

    def __init__(self):
        self._ended: Dict[str, Tuple[str, float]] = {}
        self._looked = -float("inf")

    def states(self, ids: Sequence[str]) -> Dict[str, str]:
        """The state of each job that is over since ``GRACE`` seconds."""
        now = time.monotonic()
        if now - self._looked >= BETWEEN:
            self._looked = now
            for job, state in final_states(ids).items():
                self._ended.setdefault(job, (state, now))
        known = {job: self._ended[job] for job in ids if job in self._ended}
        return {job: state for job, (state, since) in known.items() if now - since >= GRACE}
