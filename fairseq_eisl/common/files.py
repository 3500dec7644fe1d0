"""Text files read whole, and files written whole or not at all."""

import contextlib
import os
import secrets
import stat
from typing import Iterator, List

from .text_lines import lines_of


def read_lines(path: str) -> List[str]:
    """The lines of a UTF-8 text without their ends; an empty line is an empty string.

    What ends a line is said in ``text_lines``.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is empty, or no UTF-8 text.
    """
    try:
        with open(path, "rb") as f:
            lines = list(lines_of(f))
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from None
    if not lines:
        raise ValueError(f"{path}: the file is empty")
    return lines


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[str]:
    """Yield a temporary name that takes the place of ``path`` once the block ends well.

    A reader sees the old file or the new one, never a part; when the block fails,
    the old file stays. Missing folders are made, a symbolic link is followed.

    Raises:
        ValueError: ``path`` exists and is no regular file.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    mode = None
    if os.path.exists(target):
        mode = os.stat(target).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError(f"{path}: not a regular file, it will not be replaced")
    os.makedirs(folder, exist_ok=True)
    # The extension stays last: matplotlib goes by it.
    temporary = os.path.join(folder, f".part-{secrets.token_hex(6)}-{name}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


_KINDS = {
    ".png": ("a PNG picture", (b"\x89PNG",)),
    ".svg": ("an SVG picture", (b"<svg", b"<?xml")),
    ".pdf": ("a PDF", (b"%PDF",)),
    ".html": ("a page", (b"<!doctype html", b"<html")),
}
_KINDS[".htm"] = _KINDS[".html"]


def check_kind(path: str) -> None:
    """Before ``path`` is replaced: what is there, if anything, is of the kind that its name says.

    So that a mistyped name does not cost somebody's file.

    Raises:
        ValueError: it is something else.
    """
    kind, beginnings = _KINDS.get(os.path.splitext(path)[1].lower(), ("", ()))
    if not kind or not os.path.isfile(path) or not os.path.getsize(path):
        return
    with open(path, "rb") as f:
        head = f.read(512).removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not head.startswith(tuple(each.lower() for each in beginnings)):
        raise ValueError(f"{path}: what is there is not {kind}, it will not be replaced")
