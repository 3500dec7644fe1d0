"""What the types of a recipe alone do not say."""

import os
import re
from typing import Any, Dict, Set

from omegaconf import DictConfig, OmegaConf

from ..common.run_files import MOST_SYSTEMS, ROW_COLUMNS
from ..evaluation.metrics.registry import registered
from .data_checks import check_clean_text, check_data
from .errors import RecipeError
from .recipe import (
    LM_PATH,
    NOISY_TASKS,
    REFINING_TASKS,
    SHARING_TASK,
    Checkpoint,
    Corpus,
    Parameters,
    files_of,
    flag_groups,
    generation_flags,
    language_models,
    named_training,
    noise_flags,
    task_of,
    training_flags,
    trainings,
)
from .score_checks import check_score
from .worker_checks import check_workers

_DECODING = {
    "beam": ("beam", 5),
    "lenpen": ("lenpen", 1),
    "iterations": ("iter-decode-max-iter", 10),
    "length_candidates": ("iter-decode-with-beam", 1),
}
# What scoring says besides the columns of metrics.
_KNOWN = {
    "sentences", "log", "reference", "version", "commit", "python", "cpu", "gpu", "cores",
    "threads", "date", "torch", "numpy", "fairseq", "sacrebleu", "fairseq_eisl",
}  # fmt: skip
# What a recipe gives these commands itself; another value would break what comes later.
_TRAINING = "save-dir user-dir finetune-from-model restore-file continue-once checkpoint-suffix"
_GENERATION = (
    "path user-dir results-path gen-subset quiet num-shards shard-id distributed-world-size "
    "distributed-rank save-dir"
)
_PREPROCESSING = (
    "source-lang target-lang trainpref validpref testpref destdir srcdict tgtdict "
    "joined-dictionary only-source user-dir align-suffix"
)
_INSTEAD = {
    "finetune-from-model": "use start or weights of the training",
    "restore-file": "use start or weights of the training",
    "source-lang": "use data.source",
    "target-lang": "use data.target",
}
_SYSTEM = r"[^\s=-]([^\r\n\t=]*[^\s=])?"


def computed_columns() -> Set[str]:
    """The columns that scoring computes."""
    return _KNOWN | {column.name for metric in registered() for column in metric.columns}


def decoding_columns(
    task: str, flags: Dict[str, Any], language_model: bool = False
) -> Dict[str, Any]:
    """How fairseq-generate decodes under these flags, as columns of a row.

    ``language_model``: whether some system of the recipe decodes beside one; then all say so.

    >>> decoding_columns("noisy_translation", {"beam": 4})
    {'beam': 4, 'lenpen': 1}
    """
    found = {}
    for column, (flag, default) in _DECODING.items():
        # Beams are for one model, refinement steps for the other.
        refines = column in ("iterations", "length_candidates")
        if refines == (task in REFINING_TASKS):
            value = flags.get(flag)
            found[column] = default if value is None else value
    if language_model:
        weight = flags.get("lm-weight")
        found["lm_weight"] = 0 if flags.get(LM_PATH) is None or weight is None else weight
    return found


def check(path: str, recipe: DictConfig):
    """Raise RecipeError, one line with file, key, value and choices, for a recipe that would
    fail, or whose rows would say what is not so."""
    for part in _PARTS:
        for key, what in part(recipe):
            raise RecipeError(f"{path}: {key}: {what}")


def _check_numbers(recipe: DictConfig):
    if recipe.data.vocabulary is not None and recipe.data.vocabulary < 4:
        what = "4 or more are needed (three are symbols), or null for as many as fit the text, not"
        yield "data.vocabulary", f"{what} {recipe.data.vocabulary}"
    if recipe.average is not None and recipe.average < 1:
        yield "average", f"1 or more checkpoints are needed, not {recipe.average}"
    for key in ("seed", "noise_seed"):
        if recipe[key] is not None and not 0 <= recipe[key] < 2**32:
            yield key, f"0 to {2**32 - 1} is needed, not {recipe[key]}"
    for system, bleu in recipe.published.items():
        number = isinstance(bleu, (int, float)) and not isinstance(bleu, bool)
        if bleu is not None and not (number and 0 <= bleu <= 100):
            yield f"published.{system}", f"a BLEU of 0 to 100 is needed, not {bleu!r}"


def _check_teacher(recipe: DictConfig):
    if recipe.teacher is not None and recipe.teacher not in recipe.train:
        choices = ", ".join(recipe.train)
        yield "teacher", f"{recipe.teacher!r} is no training (choose from {choices})"
    if recipe.teacher_parts < 1:
        yield "teacher_parts", f"1 or more is needed, not {recipe.teacher_parts}"


def _check_shared(recipe: DictConfig, name: str):
    key, flags = f"train.{name}.start_parameters", training_flags(recipe, name)
    if recipe.train[name].start is None:
        yield key, "shared needs start, the name of another training"
    if flags.get("init-weights") is not None:
        yield key, "shared: the flag init-weights says already what the training begins with"
    if task_of(recipe, name) != SHARING_TASK:
        yield key, f"shared needs the task {SHARING_TASK}, not {task_of(recipe, name)}"


def _check_trainings(recipe: DictConfig):
    if not recipe.train:
        yield "train", "at least one training is needed"
    scored = [name for name, training in recipe.train.items() if training.system is not None]
    if len(scored) > MOST_SYSTEMS:
        yield "train", f"{len(scored)} systems, at most {MOST_SYSTEMS} have a colour in pictures"
    for name, training in recipe.train.items():
        key = f"train.{name}"
        if not re.fullmatch(r"[A-Za-z]\w*", str(name), re.ASCII):
            yield key, "a training's name is a word"
        others = [other for other in recipe.train if other != name]
        if training.start is not None and training.start not in others:
            choices = ", ".join(others) or "none"
            yield (
                f"{key}.start",
                f"{training.start!r} is no other training (choose from {choices})",
            )
        if training.start_checkpoint == Checkpoint.last:
            if training.start is None:
                yield f"{key}.start_checkpoint", "last needs start, the name of another training"
            elif training_flags(recipe, training.start).get("no-last-checkpoints"):
                what = f"{training.start} keeps none (flag no-last-checkpoints)"
                yield f"{key}.start_checkpoint", f"last: {what}"
        if training.start_parameters == Parameters.shared:
            yield from _check_shared(recipe, name)
        if training.corpus == Corpus.monolingual and not recipe.data.monolingual:
            yield f"{key}.corpus", "monolingual needs data.monolingual: true"
        if training.clean_text is not None:
            yield from check_clean_text(recipe, name)
        if training.corpus == Corpus.distilled and recipe.teacher in (None, name):
            yield f"{key}.corpus", "distilled needs teacher, the name of another training"
        if training.start is not None and training.weights is not None:
            yield key, "start and weights exclude each other"
        if training.weights is not None and not os.path.isfile(training.weights):
            yield f"{key}.weights", f"there is no file {training.weights}"
        yield from _check_files(recipe, name)
        if training.generate and training.system is None:
            yield f"{key}.generate", "nothing decodes this training: it has no system"
    yield from _check_teacher(recipe)
    order = trainings(recipe)
    if len(order) < len(recipe.train):
        circle = ", ".join(name for name in recipe.train if name not in order)
        yield "train", f"{circle}: each needs another one, and none comes first"
    systems = [part.system for part in recipe.train.values() if part.system is not None]
    for name, part in recipe.train.items():
        # Rows, pictures and NAME=FILE words of the commands have them.
        if part.system is not None and not re.fullmatch(
            r"[^\s=-]([^\r\n\t=]*[^\s=])?", part.system
        ):
            what = "a name without = that begins and ends with a letter or sign is needed"
            yield f"train.{name}.system", f"{what}, not {part.system!r}"
        if part.system is not None and systems.count(part.system) > 1:
            what = f"{part.system!r} is the system of several trainings; rows need a name each"
            yield "train", what
    if not systems:
        yield "train", "no training has a system, so there is nothing to score"
    yield from check_workers(recipe)


def _check_files(recipe: DictConfig, name: str):
    """What a training's flags name is there."""
    for flag, files in files_of(training_flags(recipe, name)).items():
        for file in files:
            if not os.path.isfile(file):
                own = flag in recipe.train[name].flags
                place = f"train.{name}.flags" if own else "flags"
                yield f"{place}.{flag}", f"there is no file {file}"


def _check_labels(recipe: DictConfig):
    """What rows say, and what the commands do."""
    for key, noise in [("noise", recipe.noise)] + [
        (f"train.{name}.noise", part.noise) for name, part in recipe.train.items()
    ]:
        if noise is not None and (not noise.strip() or noise != noise.strip()):
            yield key, f"none or a noise such as repeat:0.5 is needed, not {noise!r}"
    for name, training in recipe.train.items():
        task, noise = task_of(recipe, name), training.noise or recipe.noise
        told = training.noise is not None or training.system is not None
        if task not in NOISY_TASKS and noise != "none" and told:
            key = "noise" if training.noise is None else f"train.{name}.noise"
            what = f"{noise}, but task {task} of train.{name} noises nothing; its task can be"
            yield key, f"{what} {' or '.join(NOISY_TASKS)}, or train.{name}.noise none"
        yield from _check_noise_flags(recipe, name)
    groups = [("columns", recipe.columns)]
    groups += [(f"variants.{i}.columns", part.columns) for i, part in enumerate(recipe.variants)]
    groups += [(f"train.{name}.columns", part.columns) for name, part in recipe.train.items()]
    for key, columns in groups:
        for column, value in columns.items():
            yield from _check_column(f"{key}.{column}", str(column), value)
    yield from _check_decoding(recipe)


def _check_noise_flags(recipe: DictConfig, name: str):
    """``noise``, ``noise_seed``, ``seed`` and ``data.blank`` are what a training gets."""
    own, right = recipe.train[name].flags, noise_flags(recipe, name)
    keys = {
        "target-noise": f"noise or train.{name}.noise",
        "target-noise-seed": "noise_seed",
        "target-noise-blank": "data.blank",
    }
    if recipe.train[name].system is not None:
        keys["seed"], right["seed"] = "seed", recipe.seed
    for flag, key in keys.items():
        where = f"train.{name}.flags" if flag in own else "flags"
        if flag not in (own if flag in own else recipe.flags):
            continue
        given, expected = {**recipe.flags, **own}[flag], right.get(flag)
        nothing = expected is None or expected == "none"
        free = flag == "target-noise-blank" and expected is None
        if not (given is None and nothing or str(given) == str(expected) or free):
            if task_of(recipe, name) in NOISY_TASKS or flag == "seed":
                yield f"{where}.{flag}", f"{given}, but rows say {expected}: use {key} instead"


def _check_column(key: str, name: str, value: Any):
    if not re.fullmatch(r"[^\s=-][^=\r\n\t]*", name) or name != name.strip():
        yield key, "a column's name has no = and begins with a letter"
    elif name in ROW_COLUMNS:
        instead = {"system": "train.NAME.system", "test_set": "data.test_set"}
        instead.update(model="model_name", recipe="name")
        yield key, f"the rows have this column already, from {instead.get(name, name)}"
    elif name in computed_columns() or name.endswith("_signature"):
        yield key, "a computed column; use another name"
    elif isinstance(value, (DictConfig, dict)) or OmegaConf.is_list(value):
        yield key, "a column's value is one text or number"
    elif value is not None and not str(value).strip():
        yield key, "a column's value is empty; null leaves the column away"


def _check_decoding(recipe: DictConfig):
    """Columns that say how was decoded say what the flags do."""
    scored = [name for name, part in recipe.train.items() if part.system is not None]
    ways = [(f"variants.{i}.columns", part) for i, part in enumerate(recipe.variants)]
    beside = bool(language_models(recipe))
    for place, variant in ways or [("columns", None)]:
        columns = {column: ("columns", value) for column, value in recipe.columns.items()}
        if variant:
            columns.update({column: (place, value) for column, value in variant.columns.items()})
        for name in scored:
            flags = generation_flags(recipe, name, variant.flags if variant else {})
            for column, used in decoding_columns(task_of(recipe, name), flags, beside).items():
                key, told = columns.get(column, ("", None))
                if told is not None and not _same(told, used):
                    flag = _DECODING.get(column, ("lm-weight",))[0]
                    what = f"{told}, but --{flag} is {used}"
                    yield f"{key}.{column}", f"{what}: change the flag, or leave the column away"


def _same(a: Any, b: Any) -> bool:
    """Whether two settings agree, 5 and 5.0 among them."""
    try:
        return float(a) == float(b)
    except (TypeError, ValueError):
        return str(a) == str(b)


def _check_flags(recipe: DictConfig):
    for key, flags in flag_groups(recipe):
        own = _GENERATION if "generate" in key.split(".")[-1] or "variants" in key else _TRAINING
        own = _PREPROCESSING if key == "preprocess" else "" if key == "score" else own
        for flag, value in flags.items():
            if isinstance(value, (DictConfig, dict)) or OmegaConf.is_list(value):
                yield (
                    f"{key}.{flag}",
                    "a flag's value is one word or number, true, false or null",
                )
            if value not in (None, False) and flag in own.split():
                instead = _INSTEAD.get(flag, "leave it away")
                yield f"{key}.{flag}", f"the recipe gives this flag itself; {instead}"


def _check_tune(recipe: DictConfig):
    for name, trials in recipe.tune.items():
        key = f"tune.{name}"
        if name not in recipe.train:
            yield key, f"there is no such training (choose from {', '.join(recipe.train)})"
            continue
        if trials.updates is not None and trials.updates < 1:
            yield f"{key}.updates", f"1 or more is needed, not {trials.updates}"
        if trials.finalists < 1:
            yield f"{key}.finalists", f"1 or more is needed, not {trials.finalists}"
        if trials.finalists > 1 and recipe.train[name].system is None:
            yield f"{key}.finalists", f"nothing decodes train.{name}: it has no system"
        if not trials.settings and not trials.decoding:
            yield f"{key}.settings", "settings to try are needed, e.g. {a: [lr=1e-4], b: []}"
        if trials.decoding and recipe.train[name].system is None:
            yield f"{key}.decoding", f"nothing decodes train.{name}: it has no system"
        every = [("settings", *each) for each in trials.settings.items()]
        every += [("decoding", *each) for each in trials.decoding.items()]
        for kind, setting, flags in every:
            where = f"{key}.{kind}.{setting}"
            if not re.fullmatch(r"[\w.+-]+", str(setting)) or str(setting).startswith((".", "-")):
                yield where, "a setting's name has letters, digits and ._+- alone"
            for flag in flags:
                if not re.fullmatch(r"[a-z][a-z0-9-]*=.*", str(flag)):
                    yield where, f"flag=value of the training is needed, not {flag!r}"
                overruled = [
                    f"variants.{i}"
                    for i, variant in enumerate(recipe.variants)
                    if kind == "decoding" and str(flag).partition("=")[0] in variant.flags
                ]
                if overruled:
                    yield where, f"{flag} has no effect: {overruled[0]} gives this flag itself"
                if str(flag).startswith("max-update=") and trials.updates is not None:
                    yield where, f"{flag}: updates of a trial are {key}.updates"


def _check_language_models(recipe: DictConfig):
    """What speaks beside a decoder is a language model, and has a weight."""
    for path, key in language_models(recipe).items():
        name = named_training(path)
        if name is None and not os.path.isfile(path):
            yield key, f"there is no file {path} (checkpoint:NAME is one of a training)"
        elif name is not None and name not in recipe.train:
            yield key, f"{name!r} is no training (choose from {', '.join(recipe.train)})"
        elif name is not None and task_of(recipe, name) != "language_modeling":
            what = f"train.{name} is of task {task_of(recipe, name)}"
            yield key, f"{what}; a language model's is language_modeling"
    decodings = [recipe.teacher_generate]
    for name in (name for name, part in recipe.train.items() if part.system is not None):
        for variant in [part.flags for part in recipe.variants] or [{}]:
            decodings.append(generation_flags(recipe, name, variant))
    for flags in decodings:
        if flags.get(LM_PATH) is not None and not flags.get("lm-weight"):
            what = "without lm-weight, which is 0, the language model says nothing"
            yield language_models(recipe)[str(flags[LM_PATH])], what


_PARTS = (
    check_data, _check_numbers, _check_trainings, _check_tune, _check_labels, _check_flags,
    check_score, _check_language_models,
)  # fmt: skip
