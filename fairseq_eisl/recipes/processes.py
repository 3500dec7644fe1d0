"""Commands that end when the recipe is ended: no training is left behind by a signal."""

import contextlib
import os
import signal
import subprocess
import threading
from typing import Iterator

_PATIENCE = 20.0  # seconds until a command that does not heed SIGTERM is killed


class Stopped(BaseException):
    """A signal ended this process's work; ``number`` is the signal's."""

    def __init__(self, number: int):
        super().__init__(number)
        self.number = number
        self.name = signal.Signals(number).name


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Within the block SIGTERM, SIGHUP and SIGINT raise Stopped; ignored ones stay ignored."""

    def stop(number, _):
        for each in before:  # a second signal must not cut the ending short
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end(process: subprocess.Popen):
    """End a command that leads a process group, and all that it has started; wait for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
