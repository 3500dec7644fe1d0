"""A grid of recipes and its cells (``sweep_jobs`` runs them, ``sweep_results`` gathers).

A sweep is a YAML file:

    recipe: ../multi30k/repeat50.yaml     # relative to the sweep's file
    name: multi30k_noise
    axes:                                 # every combination is a cell
      noise: [repeat:0.3, repeat:0.5]
      seed: [1, 2]
    overrides: [device=cpu]               # of every cell

An axis is a key of the recipe and its values, or a name and settings that belong together:

      loss:
        eisl: []
        eisl_sharp: [train.eisl.flags.gumbel-temperature=0.3]
"""

import itertools
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from omegaconf import MISSING, DictConfig, OmegaConf

from ..common.run_files import UNTUNED
from .cell_names import cell_names
from .commands import build
from .layers import lay
from .run_folder import RECIPE
from .runner import as_text
from .schema import ROOT, RecipeError, as_override, load, parse
from .stage_cache import StageCache
from .typed import plain, typed
from .yaml_text import Plain, read_yaml


@dataclass
class Sweep:
    name: str = MISSING
    """Of its folder."""
    recipe: str = MISSING
    """The recipe's file, relative to the sweep's."""
    axes: Dict[str, Any] = field(default_factory=dict)
    """A list of values by key, or overrides by name; every combination is a cell."""
    overrides: List[str] = field(default_factory=list)
    """Of every cell."""
    tune: bool = False
    """Whether each cell chooses among the settings that the recipe lists (see ``tune``)."""
    trial_seed: Optional[int] = None
    """Of the cells' trials; with one, all seeds of a cell have the same settings."""
    trials: Optional[str] = None
    """Rows of trials that were run before and are not run again, relative to the sweep's file."""
    published: Optional[str] = None
    """A CSV file (noise, system, bleu) of the paper's numbers, relative to the sweep's file."""
    column: Optional[str] = None
    """A column of the rows to draw BLEU against, e.g. pairs."""


class Cell(NamedTuple):
    """name: the values of its axes; overrides: what they mean."""

    name: str
    overrides: List[str]


def load_sweep(
    path: str,
    axes: Sequence[str] = (),
    overrides: Sequence[str] = (),
    trials: Optional[str] = None,
) -> DictConfig:
    """A checked sweep; ``recipe`` becomes a path. Raises RecipeError, one line.

    ``axes`` (KEY=VALUE,...) come instead of or beside the file's. With them the file may also be
    a recipe, whose sweep is called NAME_sweep. ``overrides``: of every cell, beside the file's.
    ``trials``: a file instead of the sweep's, relative to the current folder.
    """
    if not os.path.isfile(path):
        raise RecipeError(f"{path}: there is no such file")
    given = {
        key: _named(f"{path}: axes.{key}", [(piece, f"{key}={piece}") for piece in pieces])
        for key, pieces in map(_axis, axes)
    }
    if axes and not _is_sweep(path):
        recipe = os.path.abspath(path)
        content: Any = {"name": f"{load(path, overrides).name}_sweep", "recipe": recipe}
        merged = OmegaConf.merge(OmegaConf.structured(Sweep), content)
        assert isinstance(merged, DictConfig)
        sweep = merged
    else:
        sweep = OmegaConf.structured(Sweep)
        layer = typed(_read(path), Sweep, path)
        parse(path, lambda: lay(sweep, layer))
    sweep.overrides += list(overrides)
    for key, values in given.items():
        sweep.axes.pop(key, None)
        sweep.axes[key] = values
    if trials is not None:
        sweep.trials = os.path.abspath(trials)
    _check(path, sweep)
    for key in ("recipe", "published", "trials"):
        if sweep[key] is not None:
            sweep[key] = os.path.join(os.path.dirname(path), sweep[key])
            if not os.path.isfile(sweep[key]):
                raise RecipeError(f"{path}: {key}: {sweep[key]}: there is no such file")
    return sweep


def _read(path: str) -> Any:
    """The content of a sweep's file, with each list of values as the overrides that they mean."""
    content = read_yaml(path)
    if isinstance(content, dict) and isinstance(content.get("axes"), dict):
        axes = content["axes"]
        for axis, values in axes.items():
            if isinstance(values, list) and values:
                pairs = [(str(plain(value)), _setting(axis, value)) for value in values]
                axes[axis] = _named(f"{path}: axes.{axis}", pairs)
    return content


def _setting(axis: str, value: Any) -> str:
    """A value of an axis as an override. In quotes it is text, whatever it looks like."""
    if isinstance(value, str) and not isinstance(value, Plain):
        return as_override(axis, value)
    return f"{axis}={plain(value)}"


def _named(where: str, pairs: List[Tuple[str, str]]) -> Dict[str, List[str]]:
    """The override of each value, by the value's text."""
    texts = [text for text, _ in pairs]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    if twice:
        raise RecipeError(f"{where}: {twice[0]} is given twice")
    return {text: [setting] for text, setting in pairs}


def _check(path: str, sweep: DictConfig):
    """Raise RecipeError for what is missing in a sweep, and for an axis that is none."""
    missing = sorted(OmegaConf.missing_keys(sweep))
    if missing:
        raise RecipeError(f"{path}: {', '.join(missing)} must be given")
    if not sweep.axes:
        raise RecipeError(f"{path}: axes: at least one is needed, e.g. noise: [repeat:0.3]")
    for name, values in sweep.axes.items():
        if not OmegaConf.is_dict(values) or not len(values):  # a list has become a mapping
            raise RecipeError(f"{path}: axes.{name}: a list of values is needed, or a mapping of "
                              "names to overrides")  # fmt: skip
    for key in ("trial_seed", "trials"):
        if sweep[key] is not None and not sweep.tune:
            raise RecipeError(
                f"{path}: {key}: {sweep[key]}, but nothing is tried without tune: true"
            )


def cells(sweep: DictConfig) -> List[Cell]:
    """Every combination of the axes' values, the last axis fastest."""
    axes = []
    for axis, values in sweep.axes.items():
        axes.append([(f"{axis}={name}", list(settings)) for name, settings in values.items()])
    combinations = list(itertools.product(*axes))
    names = cell_names([[part for part, _ in combination] for combination in combinations])
    found = []
    for name, combination in zip(names, combinations):
        settings = [setting for _, settings in combination for setting in settings]
        found.append(Cell(name, [*sweep.overrides, *settings]))
    return found


def of_trials(sweep: DictConfig, found: Sequence[Cell]) -> List[List[str]]:
    """The overrides of the cells' trials, each once: cells that differ in the seed alone share
    theirs where the sweep has a seed of its own for them."""
    if not sweep.tune:
        return []
    seed = [] if sweep.trial_seed is None else [f"seed={sweep.trial_seed}"]
    every = [
        (*(text for text in cell.overrides if not seed or not text.startswith("seed=")), *seed)
        for cell in found
    ]
    return [list(overrides) for overrides in dict.fromkeys(every)]


def _axis(text: str) -> Tuple[str, List[str]]:
    """--axis: a key and its values; a comma within brackets, braces or quotes parts nothing."""
    key, _, rest = text.partition("=")
    pieces = re.findall(r"""(?:\[[^\]]*\]|\{[^}]*\}|"[^"]*"|'[^']*'|[^,])+""", rest)
    if not key or not pieces or len(pieces) != len([p for p in pieces if p.strip()]):
        raise RecipeError(
            f"--axis {text}: KEY=VALUE,... is needed, e.g. noise=repeat:0.3,repeat:0.5"
        )
    return key, [piece.strip() for piece in pieces]


def _is_sweep(path: str) -> bool:
    """Whether a file has the keys of a sweep, not of a recipe."""
    content = read_yaml(path)
    return isinstance(content, dict) and ("axes" in content or "recipe" in content)


def command_of(sweep: DictConfig, cell: Cell, runs: str) -> List[str]:
    """The command that runs a cell."""
    action = "tune" if sweep.tune else "run"
    command = [sys.executable, "-m", "fairseq_eisl.recipes", action, sweep.recipe]
    command += [*cell.overrides, "--runs", os.path.abspath(runs)]
    if sweep.tune and sweep.trial_seed is not None:
        command += ["--trial-seed", str(sweep.trial_seed)]
    if sweep.tune and sweep.trials is not None:
        command += ["--trials", os.path.abspath(sweep.trials)]
    return [*command, "--out", os.path.join(folder_of(sweep, runs), cell.name)]


def environment() -> Dict[str, str]:
    """This process's, in which the package is found."""
    path = ROOT + os.pathsep + os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def folder_of(sweep: DictConfig, runs: str) -> str:
    return os.path.join(os.path.abspath(runs), sweep.name)


def is_done(sweep: DictConfig, cell: Cell, runs: str) -> bool:
    """Whether a cell has rows, and of its present settings and text."""
    folder = os.path.join(folder_of(sweep, runs), cell.name)
    try:
        name = UNTUNED if sweep.tune else RECIPE
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            made_by = f.read()
    except FileNotFoundError:
        return False
    recipe = load(sweep.recipe, cell.overrides)
    return made_by == as_text(recipe, sweep.trial_seed) and _has_present_text(folder, recipe, runs)


def _has_present_text(folder: str, recipe: DictConfig, runs: str) -> bool:
    """Whether a cell's first stage read what is in the files of the text now.

    Its link says so, even where the stage itself was deleted to save space.
    """
    first = build(recipe)[0]
    link = os.path.join(folder, first.name)
    if not os.path.islink(link):
        return True
    cache = StageCache(runs)
    present = cache.path(first.name, cache.keys([first])[first.name])
    return os.path.basename(os.readlink(link)) == os.path.basename(present)
