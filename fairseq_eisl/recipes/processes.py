"""Commands that end when the recipe is ended: no training is left behind by a signal."""

import contextlib
import os
import signal
import subprocess
import threading
from typing import Callable, Iterator, List, Optional

_PATIENCE = 20.0  # seconds until a command that does not heed SIGTERM is killed


class Stopped(BaseException):
    """A signal ended this process's work; ``number`` is the signal's."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number
        self.name = signal.Signals(number).name


class _Stopping:
    """What the signal handler of ``stopping`` knows."""

    handled: List[int] = []  # signals whose handler it is
    waits = False  # whether a signal waits until a command is known that is being started
    came: Optional[int] = None  # the signal that waits


def _stop(number: int):
    for each in _Stopping.handled:  # a second signal must not cut the ending short
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(number)


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Within the block SIGTERM, SIGHUP and SIGINT raise Stopped; ignored ones stay ignored."""

    def handle(number, _):
        if _Stopping.waits:  # ignored from now on, it would be by the command, too
            _Stopping.came = _Stopping.came or number
        else:
            _stop(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                before[number] = signal.signal(number, handle)
        _Stopping.handled, _Stopping.came = list(before), None
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def signals_wait() -> Iterator[None]:
    """A signal that arrives within the block is heeded at its end, when what was started there
    is known and can be ended."""
    _Stopping.waits = True
    try:
        yield
    finally:
        _Stopping.waits = False
        came, _Stopping.came = _Stopping.came, None
        if came is not None:
            _stop(came)


def supervised(
    start: Callable[[], subprocess.Popen], watch: Callable[[subprocess.Popen], None]
) -> int:
    """Start a command that leads a process group, and watch it; its exit status.

    If a signal or an error ends that before the command has ended, it is ended, too.
    """
    process = None
    try:
        with signals_wait():
            process = start()
        watch(process)
        return process.wait()
    except BaseException:
        if process is not None:
            end(process)
        raise


def captured(command: List[str], input: Optional[str] = None, **options):
    """A command's exit status and output, as a CompletedProcess of text; standard error where
    ``stderr`` is given."""
    found: list = []

    def start() -> subprocess.Popen:
        given = {"stdout": subprocess.PIPE, "text": True, **options}
        if input is not None:
            given["stdin"] = subprocess.PIPE
        return subprocess.Popen(command, start_new_session=True, **given)

    def watch(process: subprocess.Popen):
        found.extend(process.communicate(input))

    code = supervised(start, watch)
    return subprocess.CompletedProcess(command, code, *found)


def end(process: subprocess.Popen):
    """End a command that leads a process group, and all that it has started; wait for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
