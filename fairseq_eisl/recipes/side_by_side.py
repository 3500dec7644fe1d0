"""Several processes at the stages of one recipe: each takes one that is ready and not held. And at
tasks that do not need each other."""

import multiprocessing
import os
import sys
from typing import Any, Callable, List, Optional, Sequence

from .errors import RecipeError
from .gpus import JOB
from .processes import Stopped
from .progress import be_plain, say


def each_once(tasks: Sequence[Callable[[], None]], jobs: int):
    """Call every task once, up to ``jobs`` of them at a time in processes of their own, which begin
    them in their order. What fails ends it as in :meth:`Crew.work_together`."""
    crew, turn = Crew(), multiprocessing.get_context("fork").Value("l", 0)

    def work():
        while True:
            crew.check()
            with turn.get_lock():
                number, turn.value = turn.value, turn.value + 1
            if number >= len(tasks):
                return
            tasks[number]()

    crew.work_together(work, max(1, min(jobs, len(tasks))), all_needed=True)


class Crew:
    """The processes that work together; this one alone until ``work_together``."""

    def __init__(self):
        self.leads = True
        self._pids: Any = [os.getpid()]  # or an array that the processes share
        self._failed: Any = None
        self._reasons: Any = None

    def members(self) -> List[int]:
        """Their process numbers."""
        return list(self._pids)

    def check(self):
        """Raises RecipeError once a stage has failed in another process, or the first is gone."""
        if not self.leads and os.getppid() != self._pids[0]:
            raise RecipeError("the process that has started this one was killed")
        if self._failed is not None and self._failed.is_set():
            raise RecipeError(self._reasons.get())

    def work_together(self, work: Callable[[], None], jobs: int, all_needed: bool = False):
        """Call ``work`` in this process and in ``jobs`` - 1 others; until all have ended.

        It must call ``check`` before it begins something. What fails in one ends the others when
        they are through with what they are at, and is raised here; a signal ends all at once.
        ``all_needed``: nobody takes over what a process was at that is killed.
        """
        if jobs == 1:
            work()
            return
        be_plain()  # one bar for each would be drawn over the others
        context = multiprocessing.get_context("fork")
        self._failed, self._reasons = context.Event(), context.SimpleQueue()
        self._pids = context.Array("q", jobs, lock=False)
        self._pids[0] = os.getpid()
        helpers = [context.Process(target=self._help, args=(work, n)) for n in range(1, jobs)]
        failure = None
        try:
            for number, helper in enumerate(helpers, 1):
                helper.start()
                self._pids[number] = helper.pid
            try:
                self._guarded(work)
            except RecipeError as err:
                failure = err
            for helper in helpers:
                helper.join()
            failure = failure or self._failure(helpers if all_needed else ())
        except BaseException:  # a signal, also while the others are awaited
            started = [helper for helper in helpers if helper.pid is not None]
            for helper in started:
                helper.terminate()
            for helper in started:
                helper.join()
            raise
        if failure is not None:
            raise failure

    def _help(self, work: Callable[[], None], number: int):
        """What another process does."""
        self.leads = False
        os.environ[JOB] = str(number)
        try:
            self._guarded(work)
        except Stopped as err:
            sys.exit(128 + err.number)
        except (RecipeError, OSError):
            pass  # the first process says it

    def _failure(self, needed: Sequence[Any]) -> Optional[RecipeError]:
        """What has failed in another process when this one had nothing more to begin."""
        if self._failed.is_set():
            return RecipeError(self._reasons.get())
        for helper in needed:
            if helper.exitcode:
                what = f"process {helper.pid} of this run ended with {helper.exitcode}"
                return RecipeError(f"{what}; run it again to go on")
        return None

    def _guarded(self, work: Callable[[], None]):
        try:
            work()
        except (RecipeError, OSError) as err:
            if not self._failed.is_set():
                self._failed.set()
                for _ in range(len(self._pids)):
                    self._reasons.put(str(err))
                say("a stage has failed; what else is at work is finished first (Ctrl-C ends it)")
            raise
