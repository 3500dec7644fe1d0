"""The folder of a run: a link to each stage, rows, pictures, a page, and what they were made by."""

import os
from typing import Iterable

from ..common.files import whole_file
from ..common.run_files import REPORT, UNTUNED
from .errors import RecipeError

RECIPE = "recipe.yaml"
"""The settings that the rows are of; written last."""


def is_result(name: str) -> bool:
    """Whether a run's folder holds a file of the last stage under its name."""
    return name.endswith((".csv", ".png", ".svg", ".html")) or name == REPORT


def check_folder(folder: str, stages: Iterable[str]):
    """Raise RecipeError where a run would replace what no run has written.

    A folder with a link to a stage is a run's. ``stages``: the names of the links.
    """
    if not os.path.isdir(folder):
        return
    names = set(stages)
    inside = sorted(os.listdir(folder))
    links = {name for name in names if os.path.islink(os.path.join(folder, name))}
    found = [name for name in inside if name in names - links]
    if not links:
        found += [name for name in inside if is_result(name) or name in (RECIPE, UNTUNED)]
    if found:
        shown = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
        what = "which no run has written and this one would replace; choose another folder"
        raise RecipeError(f"--out: {folder} holds {shown}, {what}")


def link_to(target: str, name: str):
    """A symbolic link, or the one that is there turned to ``target``."""
    if os.path.lexists(name) and not os.path.islink(name):
        raise RecipeError(f"{name}: it is no link to a stage, and is not replaced by one")
    temporary = f"{name}.{os.getpid()}.part"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(os.path.relpath(target, os.path.dirname(name)), temporary)
    os.replace(temporary, name)


def write_whole(path: str, content):
    """A small file, whole or not at all, whoever else writes it."""
    with whole_file(path) as temporary, open(temporary, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode("utf-8"))
