"""What goes wrong with what a user has given is one line, after the flag as it was given."""

import contextlib
from typing import Iterator


class Refused(Exception):
    """One line for the user."""


@contextlib.contextmanager
def naming(given: str, path: str = "") -> Iterator[None]:
    """Turn what goes wrong in the block into one line after the flag as it was given."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has gone: nothing that a flag names
        raise
    except OSError as err:
        where = "" if err.filename in (None, path) else f"{err.filename}: "
        raise Refused(f"{given}: {where}{err.strerror or err}") from err
    except ValueError as err:
        reason, own = str(err), f"{path}: "
        reason = reason[len(own) :] if path and reason.startswith(own) else reason
        raise Refused(f"{given}: {reason}") from err
