"""What ``score`` of a recipe names: flags of metrics, trainings, files."""

import os
from typing import Dict, Tuple

from omegaconf import DictConfig

from ..evaluation.metrics.registry import idle_flags, registered
from .recipe import CHECKPOINT, TEXT, judges

_PATHS = {
    "FILE": (os.path.isfile, "file"),
    "CHECKPOINT": (os.path.exists, "file"),
    "CHECKPOINT_DIR": (os.path.isdir, "folder"),
}
"""What metrics call a value that is a file or a folder, how to tell, and a word for it."""


def check_score(recipe: DictConfig):
    """(key, what is wrong): flags are those of metrics, and their values name what there is."""
    known = {flag.name[2:]: flag for metric in registered() for flag in metric.flags}
    for name in recipe.score:
        key = f"score.{name}"
        if name not in known:
            yield key, f"no metric has this flag (choose from {', '.join(sorted(known))})"
        elif known[name].in_run is not None:
            yield key, "the recipe gives this flag itself; leave it away"
    # The scores come last: what they would refuse must not cost the trainings before them.
    for flag, needed in idle_flags(lambda flag: flag.in_run or recipe.score.get(flag.name[2:])):
        yield f"score.{flag.name[2:]}", f"needs score.{needed.name[2:]}"
    for name, path in _paths(recipe).items():
        is_there, kind = _PATHS[known[name].metavar]
        if not is_there(path):
            what = "checkpoint:NAME is one of a training, text:FILE of the prepared text"
            yield f"score.{name}", f"there is no {kind} {path} ({what})"
    for name in judges(recipe):
        if name not in recipe.train:
            yield "score", f"{name!r} is no training (choose from {', '.join(recipe.train)})"


def score_files(recipe: DictConfig) -> Tuple[str, ...]:
    """The files from outside that scores depend on: named, or anywhere in a folder that is."""
    found = []
    for path in _paths(recipe).values():
        found += [path] if os.path.isfile(path) else []
        for folder, inner, names in os.walk(path):
            inner.sort()
            found += [os.path.join(folder, name) for name in sorted(names)]
    return tuple(found)


def _paths(recipe: DictConfig) -> Dict[str, str]:
    """The files and folders from outside, by the flag that names each."""
    flags = [flag for metric in registered() for flag in metric.flags]
    names = [flag.name[2:] for flag in flags if flag.metavar in _PATHS]
    given = {name: recipe.score[name] for name in names if name in recipe.score}
    return {
        name: str(value)
        for name, value in given.items()
        if value not in (None, False) and not str(value).startswith((CHECKPOINT, TEXT))
    }
