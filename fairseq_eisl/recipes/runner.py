"""Running the stages of a recipe: what is done is skipped, what was killed goes on."""

import contextlib
import json
import os
import subprocess
import sys
import time
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional, Sequence

from omegaconf import DictConfig, OmegaConf

from ..common.checkout import PACKAGE, ROOT, git_commit
from .gpus import of_this_job
from .placeholders import PLACES, filled
from .placeholders import folder as folder_of
from .processes import captured, supervised
from .progress import Progress, duration, say
from .run_folder import RECIPE, is_result, link_to, write_whole
from .schema import RecipeError
from .side_by_side import Crew
from .stage import Stage, shell
from .stage_cache import StageCache, mend_last_checkpoint

_POLL = 0.5  # seconds between two looks at what others are at
_TAIL = 15  # lines of a failed stage's log to show


class _Shown(NamedTuple):
    """What is said about a command: the lasting name of its log, and its number."""

    log: str
    step: str


class Runner:
    """The stages of one recipe, with their results below ``runs``."""

    def __init__(self, stages: Sequence[Stage], runs: str):
        self.stages, self.cache = stages, StageCache(runs)
        self.keys = self.cache.keys(stages)
        self.crew = Crew()

    def path(self, name: str) -> str:
        return self.cache.path(name, self.keys[name])

    def folders(self, stage: Optional[Stage] = None) -> Dict[str, str]:
        """What the placeholders of the commands stand for; ``stage`` is still at work."""
        found = {each.name: self.path(each.name) for each in self.stages}
        found.update(PLACES)
        if stage is not None:
            found["out"] = self.path(stage.name) + ".part"
        return found

    def plan(self) -> List[str]:
        """Every command, ready to be copied into a shell."""
        # The digits of a training depend on the number of threads.
        lines = [f"export OMP_NUM_THREADS={threads()}", ""]
        for stage in self.stages:
            done = " (done)" if self._is_done(stage) else ""
            lines.append(f"# {stage.name}{done}")
            folders = {**self.folders(), "out": self.path(stage.name)}
            lines.append(f"mkdir -p {shell([folders['out']])}")
            for name, _ in stage.files:
                lines.append(f"# {name}: written by run")
            commands = [shell(line) for line in stage.lines(folders)]
            if stage.stdout:
                commands[-1] += f" > {shell([os.path.join(folders['out'], stage.stdout)])}"
            if stage.resumes:  # a training, whose log is drawn
                commands[-1] += f" 2>&1 | tee -a {shell([os.path.join(folders['out'], 'log')])}"
            if stage.gpus is not None:
                gpus = shell([of_this_job(stage.gpus, stage.one_gpu)])
                commands = [f"CUDA_VISIBLE_DEVICES={gpus} {c}" for c in commands]
            lines += [*commands, ""]
        return lines

    def run(self, folder: str, recipe: DictConfig, jobs: int = 1):
        """Run what is not done; then ``folder`` has a link to each stage, and the rows.

        ``jobs``: stages at a time. Raises RecipeError where a stage fails; it names its log.
        """
        self.run_stages(folder, jobs)
        self._gather(folder)
        # Last: it says which settings the rows are of.
        write_whole(os.path.join(folder, RECIPE), as_text(recipe))

    def run_stages(self, folder: str, jobs: int = 1):
        """Run what is not done; then ``folder`` has a link to each stage."""
        os.makedirs(folder, exist_ok=True)
        done = [stage for stage in self.stages if self._is_done(stage)]
        names = [stage.name + (" (done)" if stage in done else "") for stage in self.stages]
        say(f"{len(names)} stages, {len(done)} done: {', '.join(names)}; {threads()} thread(s)")
        several = max((stage.workers for stage in self.stages), default=1)
        if several > 1:
            say(
                f"trainings use {several} GPUs each, and batches are as many times as large as on "
                "one (flags.distributed-world-size=1 for one, flags.update-freq for batches)"
            )
        self.crew.work_together(lambda: self._work(folder, done), jobs)

    def _work(self, folder: str, before: Sequence[Stage]):
        """Run what is not done and nobody else is at, until all is done.

        ``before``: what was done when the run began.
        """
        left, waited = list(self.stages), []  # type: ignore[var-annotated]
        while left:
            self.crew.check()
            for stage in [each for each in left if self._is_done(each)]:
                left.remove(stage)
                if self.crew.leads:  # else another process of this run has said so
                    link_to(self.path(stage.name), os.path.join(folder, stage.name))
                    if stage in before or stage in waited:
                        say(f"{self._count(stage)}: done before")
            ready = [each for each in left if all(map(self._is_done, self._needs(each)))]
            for stage in ready:
                if self._run(stage, os.path.join(folder, stage.name)):
                    left.remove(stage)
                    break
            else:
                waited += self._wait([stage for stage in ready if stage not in waited])

    def _wait(self, held: Sequence[Stage]) -> List[Stage]:
        """For other processes; those of these stages that are none of this run's."""
        time.sleep(_POLL)  # by now who took one has written its name into it
        found = []
        for stage in held if self.crew.leads else ():
            if self._is_done(stage):
                continue
            holder = self.cache.holder(self.path(stage.name))
            if holder.pid not in self.crew.members():
                place = self.path(stage.name)
                say(f"{self._count(stage)}: {holder.shown} is at it ({place}), waiting")
                found.append(stage)
        return found

    def _is_done(self, stage: Stage) -> bool:
        return self.cache.is_done(self.path(stage.name))

    def _needs(self, stage: Stage) -> List[Stage]:
        return [each for each in self.stages if each.name in stage.needs]

    def _count(self, stage: Stage) -> str:
        """A stage's number among all, and its name."""
        return f"[{self.stages.index(stage) + 1}/{len(self.stages)}] {stage.name}"

    def _gather(self, folder: str):
        """The rows and pictures of the last stage, copied into the run's own folder."""
        last = self.path(self.stages[-1].name)
        for name in sorted(os.listdir(last)):
            if is_result(name):
                with open(os.path.join(last, name), "rb") as f:
                    content = f.read()
                write_whole(os.path.join(folder, name), content)

    def _run(self, stage: Stage, link: str) -> bool:
        """Run a stage, unless somebody else is at it or has just ended it."""
        try:
            return self._run_unless_held(stage, link)
        except OSError as err:
            place = f"{err.filename}: " if err.filename else ""
            raise RecipeError(f"{stage.name}: {place}{err.strerror or err}") from None

    def _run_unless_held(self, stage: Stage, link: str) -> bool:
        path, count = self.path(stage.name), self._count(stage)
        with self.cache.held(path) as lock:
            if lock is None or self.cache.is_done(path):
                return False
            resumed = self.cache.begin(path, stage.resumes)
            # The link leads to the log now and when the stage is done.
            link_to(f"{path}.part", link)
            log = os.path.join(link, "log")
            say(f"{count}{': going on' if resumed else ''} (log: {log})")
            started = time.time()
            self._write_files(stage, f"{path}.part")
            over = resumed and self._has_ended(stage, f"{path}.part")
            lines = stage.lines(self.folders(stage))
            for number, line in enumerate([] if over else lines, 1):
                stdout = stage.stdout if number == len(lines) else None
                shown = _Shown(log, f"{number} of {len(lines)}" if len(lines) > 1 else "")
                try:
                    self._execute(stage, line, f"{path}.part", stdout, lock, shown)
                except BaseException:
                    if stage.resumes:
                        mend_last_checkpoint(f"{path}.part")
                    raise
            self._check_checkpoint(stage, f"{path}.part", log)
            # Of the last start; a stage that was killed has worked for longer.
            seconds = round(time.time() - started, 1)
            self.cache.end(path, self._stamp(stage, lines, seconds, resumed))
            link_to(path, link)
            say(f"{count}: done in {duration(seconds)}")
        return True

    def _stamp(
        self, stage: Stage, lines: List[List[str]], seconds: float, resumed: bool
    ) -> Dict[str, Any]:
        """What stage.json says of a stage that has ended."""
        return {
            "stage": stage.name,
            "key": self.keys[stage.name],
            "commit": git_commit(PACKAGE),
            "commands": [shell(line) for line in lines],
            "seconds": seconds,
            "threads": threads(),
            "resumed": resumed,
        }

    def _check_checkpoint(self, stage: Stage, out: str, log: str):
        """Whether a training left the checkpoints that later stages read.

        fairseq-train ends well without one where it has nothing to do.
        """
        if not stage.resumes:
            return
        words = {w for each in self.stages for line in each.commands for w in line}
        for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
            wanted = folder_of(stage.name) / name in words
            if wanted and not os.path.exists(os.path.join(out, name)):
                raise RecipeError(f"{stage.name}: the training ended without {name}: "
                                  "it did no update, or saved or validated nothing; see its "
                                  f"max-update, max-epoch and save flags (log: {log})")  # fmt: skip

    def _has_ended(self, stage: Stage, out: str) -> bool:
        """Whether a training was killed after its last update.

        fairseq looks at --max-update after an update only, and would train for one more.
        """
        if stage.max_update is None:
            return False
        command = [sys.executable, "-m", "fairseq_eisl.checkpoints", "updates"]
        last = os.path.join(out, "checkpoint_last.pt")
        done = captured([*command, last], env=_environment(stage))
        return done.returncode == 0 and int(done.stdout) >= stage.max_update

    def _write_files(self, stage: Stage, out: str):
        for name, content in stage.files:
            content = filled(content, {**self.folders(), "out": self.path(stage.name)})
            if not isinstance(content, str):
                content = json.dumps(content, indent=1, ensure_ascii=False)
            write_whole(os.path.join(out, name), content)

    def _execute(
        self, stage: Stage, line: List[str], out: str, stdout: Optional[str], lock, shown: _Shown
    ):
        """Run one command in the folder ``out``; it prints to the file ``stdout``, or the log."""
        log = os.path.join(out, "log")
        # The command writes its log itself, not through this process: it may outlive this one,
        # and what it saves must not be newer than what its log says.
        with contextlib.ExitStack() as files:
            target = files.enter_context(open(log, "ab"))
            follow = files.enter_context(open(log, "rb"))
            target.write(f"$ OMP_NUM_THREADS={threads()} {shell(line)}\n".encode())
            target.flush()
            follow.seek(0, os.SEEK_END)
            name = os.path.join(out, stdout) if stdout else None
            result = files.enter_context(open(name, "wb")) if name else None

            def start() -> subprocess.Popen:
                try:
                    return subprocess.Popen(
                        line,
                        stdin=subprocess.DEVNULL,
                        stdout=result or target,
                        stderr=target,
                        env=_environment(stage),
                        pass_fds=(lock.fileno(),),
                        start_new_session=True,  # a group of its own, to be ended as a whole
                    )
                except OSError as err:
                    raise RecipeError(f"{stage.name}: {line[0]}: {err.strerror or err}") from None

            def watch(process: subprocess.Popen):
                with contextlib.closing(Progress(stage.name, line, shown.step, name)) as progress:
                    _show(follow, process, progress)

            code = supervised(start, watch)
        if code:
            with open(log, encoding="utf-8", errors="replace") as f:
                for text in f.read().splitlines()[-_TAIL:]:
                    print(text[:400], file=sys.stderr)
            raise RecipeError(f"{stage.name}: {line[0]} ended with {code} (log: {shown.log})")


def _environment(stage: Stage) -> Dict[str, str]:
    # The commands of this interpreter's environment come first.
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    python_path = ROOT + os.pathsep + os.environ.get("PYTHONPATH", "")
    found = {**os.environ, "PATH": path, "PYTHONPATH": python_path.rstrip(os.pathsep)}
    found["OMP_NUM_THREADS"] = threads()
    # An allocator that keeps its memory saves a fifth of a training step on Linux CPUs.
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        found.setdefault(name, "4294967296")
    found.setdefault("MALLOC_TOP_PAD_", "67108864")
    if stage.gpus is not None:
        found["CUDA_VISIBLE_DEVICES"] = of_this_job(stage.gpus, stage.one_gpu)
    return found


def threads() -> str:
    """OMP_NUM_THREADS of the commands: the user's, else 1, whose digits can be had again."""
    return os.environ.get("OMP_NUM_THREADS") or "1"


def _show(log: BinaryIO, process: subprocess.Popen, progress: Progress):
    """Show how far a process is, out of the log that it writes, until it ends."""
    while True:
        ended = process.poll() is not None  # before reading: then nothing comes after it
        progress.read(log.read())
        if ended:
            return
        time.sleep(0.1)


def as_text(recipe: DictConfig, trial_seed: Optional[int] = None) -> str:
    """A recipe with all its settings spelt out, as YAML, and the seed of trials that are to choose
    among them, where they have one of their own."""
    own = "" if trial_seed is None else f"# seed of the trials: {trial_seed}\n"
    return own + OmegaConf.to_yaml(recipe, resolve=True)
