"""Standard output that may end early: ``| head``, a full disk, a closed stream."""

import os
import sys
from typing import Callable

CONSOLE = "fairseq-eisl"
"""The command that an installation puts on PATH."""


def program(module: str, command: str) -> str:
    """What a command calls itself in its help and errors: as it was started.

    >>> program("fairseq_eisl.noise", "noise")
    'python -m fairseq_eisl.noise'
    """
    started = os.path.basename(sys.argv[0]) if sys.argv else ""
    return f"{CONSOLE} {command}" if started == CONSOLE else f"python -m {module}"


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
        drop_output()
        return 141
    except OSError as err:
        drop_output()
        where = "standard output" if err.filename is None else err.filename
        print(f"{name}: error: {where}: {err.strerror or err}", file=sys.stderr)
        return 1


def drop_output():
    """Python flushes its streams at its end; one that takes nothing must not complain then."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        try:
            stream.flush()
        except OSError:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            except (OSError, ValueError):  # a stream without a file
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        except (AttributeError, ValueError):  # none, or closed
            pass
