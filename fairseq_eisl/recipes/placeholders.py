"""Text with folders of stages in it, whose places are known only when a command runs."""

import shlex
from dataclasses import dataclass
from typing import Any, Dict, Tuple, Union

from ..common.checkout import PACKAGE, ROOT


@dataclass(frozen=True)
class Folder:
    """The folder of the stage of that name, or ``OUT``, ``CHECKOUT`` or ``PLUGIN``."""

    name: str


@dataclass(frozen=True)
class Deferred:
    """Text and folders in a row: ``OUT / "rows.csv"``, ``"CE=" + folder("ce") / "log"``.

    >>> ("CE=" + folder("ce") / "log").filled({"ce": "runs/ce"})
    'CE=runs/ce/log'
    """

    parts: Tuple[Union[str, Folder], ...]

    def __truediv__(self, name: str) -> "Deferred":
        return Deferred((*self.parts, f"/{name}"))

    def __radd__(self, text: str) -> "Deferred":
        return Deferred((text, *self.parts))

    def filled(self, folders: Dict[str, str]) -> str:
        """The text, with these places of the folders."""
        return "".join(p if isinstance(p, str) else folders[p.name] for p in self.parts)

    def renamed(self, old: "Deferred", new: "Deferred") -> "Deferred":
        """The same with another folder where ``old`` is."""
        (before,), (after,) = old.parts, new.parts
        return Deferred(tuple(after if part == before else part for part in self.parts))


Word = Union[str, Deferred]
"""A word of a command line."""


def folder(stage: str) -> Deferred:
    """The folder of the stage of that name."""
    return Deferred((Folder(stage),))


OUT = folder("out")
"""The folder of the stage that has the command."""
CHECKOUT = folder("root")
"""What has scripts and configs: the checkout, or in a wheel the folder ``share`` of the package."""
PLUGIN = folder("package")
"""Where this package lies."""
PLACES = {"root": ROOT, "package": PACKAGE}
"""The places of these two."""


def filled(content: Any, folders: Dict[str, str]) -> Any:
    """Content with the places of folders put in, wherever there is such text."""
    if isinstance(content, Deferred):
        return content.filled(folders)
    if isinstance(content, dict):
        return {key: filled(value, folders) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [filled(each, folders) for each in content]
    return content


def shell_of(words: Tuple[Word, ...]) -> Deferred:
    """A command line to copy and paste, whose folders are put in later, between quotes."""
    parts: list = []
    for word in words:
        parts.append(" " if parts else "")
        if isinstance(word, str):
            parts.append(shlex.quote(word))
            continue
        inner = [p.replace("'", "'\"'\"'") if isinstance(p, str) else p for p in word.parts]
        parts += ["'", *inner, "'"]
    return Deferred(tuple(parts))
