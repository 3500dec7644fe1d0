"""Standard output that may end early: ``| head``, a full disk, a closed stream."""

import os
import sys
from typing import Callable


def run_command(main: Callable[[], int], name: str) -> int:
    """The exit status of a command that prints.

    A reader that has gone (``| head -1``) ends it quietly with 141, as it ends ``cat``. Output
    that cannot be written is one line after ``name``, and 1.
    """
    if sys.stdout is None:  # closed by the shell: nobody wants to read
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    try:
        code = main()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _nothing_more()
        return 141
    except OSError as err:
        _nothing_more()
        where = "standard output" if err.filename is None else err.filename
        print(f"{name}: error: {where}: {err.strerror or err}", file=sys.stderr)
        return 1


def _nothing_more():
    """What is still in the buffer goes nowhere when Python flushes it at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stream without a file
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
