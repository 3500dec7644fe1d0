"""From a recipe's file to its checked stages."""

import json
import os
import subprocess
import sys
from typing import Dict, List, Sequence, Tuple

from omegaconf import DictConfig

from ..common.get_fairseq import GET_FAIRSEQ
from .commands import build
from .errors import RecipeError
from .flag_places import place
from .placeholders import PLACES
from .processes import captured
from .schema import ROOT, Device, load
from .stage import Stage

Opened = Tuple[DictConfig, List[Stage]]


def open_recipes(
    config: str,
    variations: Sequence[Sequence[str]],
    tried: Sequence[Dict[str, str]] = (),
    here: bool = True,
) -> List[Opened]:
    """A recipe under several lists of overrides, checked, each with its stages.

    ``tried``: rows of the trials that chose some of the overrides (see ``tune``).
    ``here``: whether this machine trains, which then must have the GPU that is asked for.

    Raises RecipeError, before anything has run.
    """
    recipes = [load(config, overrides) for overrides in variations]
    for recipe in recipes:
        recipe.tried = list(tried)
    try:
        answer = check_flags([build(recipe) for recipe in recipes])
    except RecipeError as err:
        raise RecipeError(f"{config}: {err}") from None
    for number, stage, message in answer["errors"]:
        where = place(recipes[number], stage, message)
        raise RecipeError(f"{' '.join([config, *variations[number]])}: {where}: {message}")
    found = []
    for recipe in recipes:
        if here and recipe.device == Device.cuda and not answer["gpus"]:
            raise RecipeError(f"{config}: device: cuda, but torch finds no usable GPU here")
        found.append((recipe, build(recipe, answer["gpus"])))
    return found


def open_recipe(
    config: str, overrides: Sequence[str], tried: Sequence[Dict[str, str]] = ()
) -> Opened:
    """One of them."""
    return open_recipes(config, [overrides], tried)[0]


def check_flags(recipes: List[List[Stage]]) -> dict:
    """What fairseq's parsers say about the commands of several recipes (see ``flag_check``)."""
    commands = []
    for number, stages in enumerate(recipes):
        folders = {**{stage.name: stage.name for stage in stages}, **PLACES, "out": "out"}
        for stage in stages:
            commands += [[number, stage.name, line] for line in stage.lines(folders)]
    path = ROOT + os.pathsep + os.environ.get("PYTHONPATH", "")
    done = captured(
        [sys.executable, "-m", "fairseq_eisl.recipes.flag_check"],
        json.dumps(commands),
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        if last.endswith("No module named 'fairseq'"):
            raise RecipeError(f"recipes train with fairseq, which is not installed: {GET_FAIRSEQ}")
        raise RecipeError(f"checking the flags failed: {last}")
    return json.loads(done.stdout.splitlines()[-1])
