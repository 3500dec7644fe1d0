"""The stages of a recipe, in their order."""

from typing import List

from omegaconf import DictConfig

from ..errors import RecipeError
from ..gpus import to_generate
from ..placeholders import PLACES
from ..recipe import Corpus, Device, judges, language_models, named_training, trainings
from ..stage import Stage
from . import data, generate, train
from .score import Translated, scores


def build(recipe: DictConfig, gpus: int = 0) -> List[Stage]:
    """The stages of a recipe in their order. ``gpus``: how many this machine has."""
    device = ["--cpu"]
    if gpus and recipe.device != Device.cpu:
        device = ["--fp16"] if recipe.half_precision else []
    stages = data.stages(recipe)
    if language_models(recipe):
        stages.append(generate.with_dictionary(recipe))
    for name in trainings(recipe):
        training = recipe.train[name]
        if training.corpus == Corpus.distilled and data.DISTILLED not in [s.name for s in stages]:
            parts = generate.distillation(recipe, device)
            stages += [*parts, data.distilled(recipe, [stage.name for stage in parts])]
        stages.append(train.training_stage(recipe, name, device, gpus))
    logs = []
    for name in trainings(recipe):
        if recipe.train[name].system:
            logs += _translations(recipe, name, device, stages)
    stages.append(scores(recipe, logs, stages))
    _check_names(recipe, stages)
    there = 0 if device == ["--cpu"] else gpus
    return [s._replace(gpus=to_generate(s.gpus, there)) if s.one_gpu else s for s in stages]


def _translations(
    recipe: DictConfig, name: str, device: List[str], stages: List[Stage]
) -> List[Translated]:
    """Append the stages that translate with the model of a training, once for each variant."""
    model = name
    if recipe.average:
        stages.append(train.average(name, recipe.average))
        model = stages[-1].name
    found = []
    for number, variant in enumerate(recipe.variants or [DictConfig({"columns": {}, "flags": {}})]):
        stages.append(generate.translation(recipe, name, model, number, variant, device))
        system = recipe.train[name].system
        found.append(Translated(name, system, stages[-1].name, variant))
    return found


def _check_names(recipe: DictConfig, stages: List[Stage]):
    """Refuse a training with the name of something else, and one that nothing uses."""
    distils = any(part.corpus == Corpus.distilled for part in recipe.train.values())
    # These and "out" are folders of every command.
    names = [*PLACES, "out", *(stage.name for stage in stages)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecipeError(
            f"train: {', '.join(twice)} is a name that recipes use; choose another one"
        )
    used = {recipe.teacher if distils else None, *(part.start for part in recipe.train.values())}
    used.update(judges(recipe), map(named_training, language_models(recipe)))
    for name, training in recipe.train.items():
        if training.system is None and name not in used:
            raise RecipeError(f"train.{name}: nothing uses it: it has no system to score, no other "
                              "training starts or learns from it, and it scores none")  # fmt: skip
