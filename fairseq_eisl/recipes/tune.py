"""Choosing the flags of trainings by short trials on the clean validation set.

A recipe says which settings of a training are tried, and for how long:

    tune:
      eisl:
        updates: 100                      # of a trial; without it, as many as the training has
        settings:                         # flags of the training, as on a command line
          as_long: [candidate-after-eos=true]
          cut: [candidate-after-eos=null]
        decoding:                         # flags of its decoding, tried on the whole training
          plain: []
          long: [lenpen=2]

The rule: trials of one training begin at the same checkpoint, with the same seed and noise, and do
as many updates; the one whose best validation has the highest score is chosen, the first of
equals. With ``finalists: 3`` the best three are trained whole and decoded, and the BLEU of the
validation set, decoded as the test set is, decides. Trainings are tuned one after the other, each
from what was chosen for those before it, and then their decoding, by the BLEU of the validation set
as the test set is decoded. Nothing but the validation set is looked at.
"""

import json
import math
import os
from functools import partial
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from omegaconf import DictConfig

from ..common.files import read_lines
from ..evaluation.metrics.bleu import bleu
from ..evaluation.readers.generation_log import read_generation_log
from ..evaluation.readers.training_log import read_curve, training_effort
from .commands import build, train
from .errors import RecipeError
from .opening import open_recipes
from .progress import say
from .recipe import noise_of, training_flags, trainings
from .runner import Runner
from .schema import load
from .side_by_side import each_once
from .stage import Stage
from .stage_cache import STAMP
from .trial_key import trial_key
from .trial_rows import KEY, TrialRows

TRIALS = "trials"
"""The folder of a tuned run that has a link to each trial."""


class Trial(NamedTuple):
    """Flags of a training, or of its decoding, that are tried under a name, as overrides of the
    recipe. final: flags of a training once more, with the whole of it, decoded."""

    training: str
    setting: str
    flags: List[str]
    decodes: bool = False
    final: bool = False

    @property
    def whole(self) -> bool:
        """Whether the whole training is decoded, and that scored."""
        return self.decodes or self.final

    @property
    def shown(self) -> str:
        """What is tried, for people."""
        kind = ", decoding" if self.decodes else ", finalists" if self.final else ""
        return self.training + kind

    def place(self) -> str:
        """Where the recipe says it."""
        kind = "decoding" if self.decodes else "settings"
        return f"tune.{self.training}.{kind}.{self.setting}"

    def chosen(self) -> List[str]:
        """What the recipe becomes where they are chosen."""
        part = "generate" if self.decodes else "flags"
        return [f"train.{self.training}.{part}.{flag}" for flag in self.flags]

    def overrides(self, recipe: DictConfig) -> List[str]:
        """What makes the trial's own recipe."""
        updates = _updates(recipe, self)
        if updates is None:
            return self.chosen()
        # A short training need not save as many checkpoints as are averaged of a whole one.
        return [*self.chosen(), f"train.{self.training}.flags.max-update={updates}", "average=null"]


def _updates(recipe: DictConfig, trial: Trial) -> Optional[int]:
    """Of a trial, where they are not those of the whole training."""
    return None if trial.whole else recipe.tune[trial.training].updates


def trials(recipe: DictConfig) -> List[List[Trial]]:
    """The trials of which one is chosen each time, in their order."""
    found = []
    for name in trainings(recipe):
        parts = recipe.tune.get(name)
        for decodes, settings in ((False, parts.settings), (True, parts.decoding)) if parts else ():
            group = [
                Trial(name, str(setting), [str(flag) for flag in flags], decodes)
                for setting, flags in settings.items()
            ]
            found += [group] if group else []
    return found


def variations(config: str, overrides: Sequence[str]) -> List[List[str]]:
    """The overrides of each trial's own recipe. Raises RecipeError where there is none."""
    recipe = load(config, overrides)
    every = [trial for group in trials(recipe) for trial in group]
    if not every:
        raise RecipeError(
            f"{config}: tune: nothing to try; it needs the settings of a training, e.g. "
            "tune: {%s: {settings: {a: [lr=1e-4], b: [lr=3e-4]}}}" % next(iter(recipe.train))
        )
    return [[*overrides, *trial.overrides(recipe)] for trial in every]


def check_trials(config: str, overrides: Sequence[str]) -> int:
    """Every flag of every trial is known and fits. Raises RecipeError, before anything runs.

    The GPUs that a training spreads over here, 1 also where there is none.
    """
    opened = open_recipes(config, variations(config, overrides))
    return max(stage.workers for _, stages in opened for stage in stages)


class Chosen(NamedTuple):
    """overrides: the flags that were chosen. rows: what was tried, a row a trial."""

    overrides: List[str]
    rows: List[Dict[str, str]]


def choose(
    config: str,
    overrides: Sequence[str],
    runs: str,
    folder: str,
    before: Optional[TrialRows] = None,
    jobs: int = 1,
) -> Chosen:
    """Run the trials that are not done yet, and choose.

    ``before``: rows of trials that were run elsewhere, and are not run again. ``jobs``: trials of
    one training at a time.
    """
    gpus = check_trials(config, overrides)
    recipe = load(config, overrides)
    prepared = _prepared(recipe, runs, folder)
    rounds = _Rounds(config, runs, folder, prepared, gpus, before or TrialRows(), jobs)
    found = Chosen([], [])
    for group in trials(recipe):
        count = 1 if group[0].decodes else recipe.tune[group[0].training].finalists
        best, rows = rounds.best(group, [*overrides, *found.overrides], count)
        found = Chosen([*found.overrides, *best.chosen()], [*found.rows, *rows])
    return found


class _Rounds(NamedTuple):
    """What trials of several rounds have in common; see ``choose``."""

    config: str
    runs: str
    folder: str
    prepared: str
    gpus: int
    before: TrialRows
    jobs: int

    def best(
        self, group: Sequence[Trial], given: Sequence[str], count: int
    ) -> Tuple[Trial, List[Dict[str, str]]]:
        """The best trial of a group, and a row for each that was tried.

        ``given``: overrides of all. ``count``: of those that go into another round, if several.
        """
        rows = self._tried(group, given)
        best = [group[i] for i in ranking(rows, group[0].place().rpartition(".")[0])[:count]]
        for trial, row in zip(group, rows):
            row["chosen"] = ("yes" if len(best) == 1 else "finalist") if trial in best else ""
        shown = ", ".join(f"{row['setting']} {row['score']}" for row in rows)
        names = ", ".join(trial.setting for trial in best)
        verb = "is chosen" if len(best) == 1 else "are finalists, which train whole"
        say(f"tune: {group[0].shown}: {names} {verb} ({rows[0]['metric']}: {shown})")
        if len(best) == 1:
            return best[0], rows
        final, more = self.best([trial._replace(final=True) for trial in best], given, 1)
        return final, [*rows, *more]

    def _tried(self, group: Sequence[Trial], given: Sequence[str]) -> List[Dict[str, str]]:
        """Run what was not run before; a row a trial."""
        wanted = [_Wanted(trial, self.config, given, self.prepared, self.gpus) for trial in group]
        said = {
            each: f"tune: {group[0].shown}, setting {number} of {len(group)}: {each.trial.setting}"
            for number, each in enumerate(wanted, 1)
        }
        known = {each: row for each in wanted if (row := self.before.find(each.key))}
        for each, row in known.items():
            say(f"{said[each]}: {row['score']}, tried before (commit {row['commit']})")
        todo = [each for each in wanted if each not in known]
        opened = open_recipes(self.config, [each.overrides for each in todo]) if todo else []
        attempts = {
            each: _Attempt(said[each], each, *one, self.runs) for each, one in zip(todo, opened)
        }
        each_once([partial(attempt.run, self.folder) for attempt in attempts.values()], self.jobs)
        return [
            {**known[each], **each.known} if each in known else attempts[each].row()
            for each in wanted
        ]


def ranking(rows: Sequence[Dict[str, str]], place: str) -> List[int]:
    """Indices of the scores that are numbers, best first, the first of equals first.

    Raises RecipeError, which names the place in the recipe, where no score is a number.
    """
    signs = [-1 if row["better"] == "lower" else 1 for row in rows]
    scores = [sign * float(row["score"]) for sign, row in zip(signs, rows)]
    numbers = [index for index, score in enumerate(scores) if math.isfinite(score)]
    if not numbers:
        raise RecipeError(f"{place}: nothing to choose: no trial has a score that is a number")
    return sorted(numbers, key=lambda index: -scores[index])


class _Wanted:
    """A trial behind what was chosen before it. key: see ``trial_key``. overrides: of its own
    recipe. known: what its row has before it is run. ``gpus``: how many this machine uses."""

    def __init__(self, trial: Trial, config: str, given: Sequence[str], prepared: str, gpus: int):
        self.trial = trial
        self.overrides = [*given, *trial.overrides(load(config, given))]
        recipe = load(config, self.overrides)
        workers = {stage.name: stage.workers for stage in build(recipe, gpus)}
        self.key = trial_key(_stages_of(build(recipe), trial), prepared, workers)
        self.known = {**_known(recipe, trial), KEY: self.key}


class _Attempt:
    """A trial with its own recipe and stages; ``said`` when it begins."""

    def __init__(
        self, said: str, wanted: _Wanted, recipe: DictConfig, stages: Sequence[Stage], runs: str
    ):
        self.said, self.recipe, self.wanted = said, recipe, wanted
        self.trial = wanted.trial
        self.runner = Runner(_stages_of(stages, self.trial), runs)
        self.last = self.runner.stages[-1].name

    def run(self, folder: str):
        """Run what is not done."""
        say(self.said)
        kind = "finalists" if self.trial.final else ""
        place = os.path.join(folder, TRIALS, self.last, kind, self.trial.setting)
        self.runner.run_stages(place)

    def row(self) -> Dict[str, str]:
        """What it has brought."""
        place = self.runner.path(self.last)
        if self.trial.whole:
            prepared = self.runner.path("prepare")
            reference = os.path.join(prepared, f"valid.{self.recipe.data.target}")
            found = _decoding_row(self.trial, place, reference)
        else:
            found = _training_row(self.recipe, self.trial, place)
        with open(os.path.join(place, STAMP), encoding="utf-8") as f:
            commit = str(json.load(f).get("commit", ""))
        # Nothing that a second run of the same trial would change.
        return {**self.wanted.known, **found, "commit": commit}


def _prepared(recipe: DictConfig, runs: str, folder: str) -> str:
    """The folder of the prepared text, whose content is part of what a trial is."""
    runner = Runner(_until(build(recipe), "prepare"), runs)
    runner.run_stages(folder)
    return runner.path("prepare")


def _stages_of(stages: Sequence[Stage], trial: Trial) -> List[Stage]:
    """Those that a trial needs; the last one is its own."""
    if trial.whole:
        stages = [*stages, _validation(stages, trial.training)]
        return _until(stages, stages[-1].name)
    return _until(stages, trial.training)


def _validation(stages: Sequence[Stage], training: str) -> Stage:
    """The validation set, decoded as the test set is, in the first way."""
    names = (f"generate_{training}", f"generate_{training}_0")
    stage = next(stage for stage in stages if stage.name in names)
    command = (*stage.commands[0], "--gen-subset", "valid")
    return stage._replace(name=f"validate_{training}", commands=(command,), stdout="valid.out")


def _until(stages: Sequence[Stage], last: str) -> List[Stage]:
    """A stage with all that it needs, in their order."""
    needed = {last}
    for stage in reversed(stages):
        if stage.name in needed:
            needed.update(stage.needs)
    return [stage for stage in stages if stage.name in needed]


def _training_row(recipe: DictConfig, trial: Trial, stage: str) -> Dict[str, str]:
    """What a short training in the folder of its stage has brought."""
    metric = _metric(recipe, trial)
    log = os.path.join(stage, "log")
    try:
        curve = read_curve(log, metric.name)
        effort = training_effort(log)
    except ValueError as err:
        raise RecipeError(f"{trial.place()}: {err}") from None
    best = curve.best(lower=not metric.higher)
    return {
        "score": f"{curve.scores[best]:g}",
        "at_update": str(curve.updates[best]),
        "validations": str(len(curve.updates)),
        **effort,
    }


def _decoding_row(trial: Trial, stage: str, reference: str) -> Dict[str, str]:
    """What a decoding of the validation set has brought."""
    try:
        hypotheses = read_generation_log(os.path.join(stage, "valid.out")).hypotheses
        found = bleu(hypotheses, read_lines(reference))
    except ValueError as err:
        raise RecipeError(f"{trial.place()}: {err}") from None
    return {"score": f"{found.score:.2f}", "at_update": "", "updates": ""}


class _Metric(NamedTuple):
    """By what a training keeps its best checkpoint."""

    name: str
    higher: bool


def _metric(recipe: DictConfig, trial: Trial) -> _Metric:
    flags: Dict[str, Any] = {**train.FLAGS, **training_flags(recipe, trial.training)}
    name = str(flags.get("best-checkpoint-metric") or "loss")
    return _Metric(name, bool(flags.get("maximize-best-checkpoint-metric")))


def _known(recipe: DictConfig, trial: Trial) -> Dict[str, str]:
    """What the row of a trial has before it is run."""
    metric, higher = "validation BLEU, decoded", True
    if not trial.whole:
        found = _metric(recipe, trial)
        metric, higher = f"validation {found.name}", found.higher
    return {
        "training": trial.training,
        "setting": trial.setting,
        "flags": " ".join(trial.flags),
        "chosen": "",
        "metric": metric,
        "better": "higher" if higher else "lower",
        "noise": noise_of(recipe, trial.training),
        "seed": str(recipe.seed),
        "recipe": str(recipe.name),
    }
