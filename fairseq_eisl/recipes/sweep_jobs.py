"""The cells of a sweep as submitit jobs, on this machine or under SLURM."""

import itertools
import os
import re
import signal
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .errors import RecipeError
from .gpus import JOB
from .processes import signals_wait
from .progress import duration, say
from .slurm_states import EndedJobs
from .sweep import Cell, command_of, environment, folder_of
from .sweep_results import gather

_PATIENCE = 30.0  # seconds until a sweep that is stopped does not wait for its cells any more
_STARTING = 15.0  # seconds in which the process of a cell on this machine must be known


class Options(NamedTuple):
    """How cells run: submitit's cluster and parameters, jobs at once, further attempts."""

    cluster: str
    jobs: int
    retries: int
    parameters: Dict[str, Any]


def run_cells(sweep: DictConfig, todo: List[Cell], runs: str, options: Options) -> Dict[str, str]:
    """Run cells as jobs; the reason for each that failed in the end, by name."""
    jobs = _Jobs(sweep, runs, options)
    attempts: Dict[str, int] = {}
    failed: Dict[str, str] = {}
    waiting, done, started = list(todo), 0, time.time()
    try:
        while waiting or jobs.active:
            while waiting and len(jobs.active) < options.jobs:
                cell = waiting.pop(0)
                attempts[cell.name] = attempts.get(cell.name, 0) + 1
                jobs.start(cell)
            for cell, reason in jobs.ended():
                if reason is not None and attempts[cell.name] <= options.retries:
                    say(f"{cell.name}: failed ({reason}), once more")
                    waiting.append(cell)
                    continue
                done += 1
                if reason is not None:
                    failed[cell.name] = reason
                outcome = "done" if reason is None else f"FAILED: {reason}"
                left = (time.time() - started) / done * (len(todo) - done)
                row = {r["cell"]: r for r in gather(sweep, runs)}.get(cell.name, {})
                bleu = [f"{key} {value}" for key, value in row.items() if key != "cell"]
                parts = [outcome, *bleu, *([f"about {duration(left)} left"] if left else [])]
                say(f"[{done}/{len(todo)}] {cell.name}: {', '.join(parts)}")
            time.sleep(0.5)
    except BaseException:  # Ctrl-C: what runs is stopped, and goes on the next time
        jobs.stop()
        raise
    return failed


class _Jobs:
    """The cells that are at work."""

    def __init__(self, sweep: DictConfig, runs: str, options: Options):
        try:
            import submitit
        except ImportError:
            raise RecipeError("sweep needs submitit: pip install 'fairseq-eisl[sweep]'") from None
        self.sweep, self.runs = sweep, runs
        self.local = options.cluster == "local"
        self.folder = os.path.join(folder_of(sweep, runs), "jobs")
        self.function = submitit.helpers.CommandFunction
        self.executor = submitit.AutoExecutor(self.folder, cluster=options.cluster)
        try:
            self.executor.update_parameters(**options.parameters)
        except (NameError, TypeError, ValueError) as err:
            raise RecipeError(f"--parameters: {err}") from None
        self.active: List[Tuple[Cell, Any]] = []
        self.numbers: Dict[str, int] = {}  # of the cells at work, among jobs at once
        self.queue = EndedJobs()

    def start(self, cell: Cell):
        # The job's own environment, which SLURM makes, and where this package lies.
        command = ["env", f"PYTHONPATH={environment()['PYTHONPATH']}"]
        if self.local:
            command.append(f"{JOB}={self._number(cell)}")
        command += command_of(self.sweep, cell, self.runs)
        if self.local:  # submitit ends its own processes only, not what a cell is at
            known = self._process_file(cell)
            if os.path.exists(known):
                os.unlink(known)
            command = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', known, *command]
        with signals_wait():
            # Verbose: what a cell says is in its log while it runs, not when it has ended.
            job = self.executor.submit(self.function(command, verbose=True))
            self.active.append((cell, job))
        say(f"{cell.name}: started (log: {job.paths.stderr})")

    def _number(self, cell: Cell) -> int:
        """A cell's, the least that no cell at work has."""
        taken = {self.numbers[other.name] for other, _ in self.active}
        found = next(n for n in itertools.count() if n not in taken)
        self.numbers[cell.name] = found
        return found

    def ended(self) -> List[Tuple[Cell, Optional[str]]]:
        """The cells that are not at work any more, each with the reason if it failed."""
        found = []
        lost = self._lost(self.active)
        for cell, job in list(self.active):
            if job.done():
                found.append((cell, None if job.exception() is None else _reason(job)))
            elif job.job_id in lost:
                found.append((cell, _last_words(job) or f"SLURM says {lost[job.job_id]}"))
            else:
                continue
            self.active.remove((cell, job))
        return found

    def _lost(self, jobs: List[Tuple[Cell, Any]]) -> Dict[str, str]:
        """SLURM's state of the jobs that are over and have left no result, by job id."""
        return {} if self.local else self.queue.states([job.job_id for _, job in jobs])

    def stop(self):
        """Stop the cells, and wait until they have ended."""
        if not self.active:
            return
        names = ", ".join(cell.name for cell, _ in self.active)
        say(f"stopping {names}; waiting for at most {duration(_PATIENCE)}")
        left, asked, started = list(self.active), set(), time.monotonic()
        while True:
            waited = time.monotonic() - started
            for cell, job in left:
                if cell.name not in asked and self._ask(cell, job, waited):
                    asked.add(cell.name)
            lost = self._lost(left)
            left = [p for p in left if p[1].job_id not in lost and not self._is_over(*p)]
            if not left or waited > _PATIENCE:
                break
            time.sleep(0.2 if self.local else 2.0)
        for cell, job in left:
            print(f"recipes: {cell.name}: has not ended, job {job.job_id}", file=sys.stderr)

    def _ask(self, cell: Cell, job: Any, waited: float) -> bool:
        """Tell a cell to end; False if that must be tried again."""
        process = self._process(cell)
        if process is not None:  # its job ends with it
            os.kill(process, signal.SIGTERM)
            return True
        if self.local and waited < _STARTING:
            return False
        job.cancel(check=False)
        return True

    def _is_over(self, cell: Cell, job: Any) -> bool:
        return job.done(force_check=True) and self._process(cell) is None

    def _process_file(self, cell: Cell) -> str:
        return os.path.join(self.folder, f"{cell.name}.pid")

    def _process(self, cell: Cell) -> Optional[int]:
        """The process of a cell on this machine, if it lives."""
        if not self.local:
            return None
        try:
            with open(self._process_file(cell), encoding="ascii") as f:
                number = int(f.read())
            os.kill(number, 0)
        except (OSError, ValueError):
            return None
        try:
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as f:
                ended = f.read().rpartition(")")[2].split()[0] == "Z"  # and nobody waits for it
        except (OSError, IndexError):
            ended = False
        return None if ended else number


def _reason(job) -> str:
    """The recipe's own line of a failed job, else what ended it, else its last line."""
    exception = str(job.exception())
    killed = re.search(r"died with <Signals\.(SIG\w+)", exception)
    if killed is not None:  # the cell alone; its job lived to say so
        last = f"killed by {killed[1]}"
    else:  # after submitit's trace stands where its logs are
        trace = exception.partition("You can check full logs")[0].strip().strip("-").strip()
        last = (trace.splitlines() or ["no message"])[-1][:300]
    return _last_words(job, exception) or last


def _last_words(job, exception: str = "") -> str:
    """The recipe's own last line in what a job has printed; empty if there is none."""
    for text in (job.stderr() or "", job.stdout() or "", exception):
        lines = [line for line in text.splitlines() if line.startswith("recipes: ")]
        if lines:
            return lines[-1][len("recipes: ") :]
    return ""


def executor_parameters(texts: List[str]) -> Dict[str, Any]:
    """``key=value`` words for submitit's executor, numbers as numbers."""
    try:
        given = OmegaConf.to_container(OmegaConf.from_dotlist(texts))
    except OmegaConfBaseException as err:
        raise RecipeError(f"--parameters {' '.join(texts)}: {err}") from None
    return {"timeout_min": 7 * 24 * 60, **given}  # type: ignore[dict-item]
