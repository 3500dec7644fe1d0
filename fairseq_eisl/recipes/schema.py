"""What a recipe's YAML file may say, and reading one."""

import difflib
import os
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Optional, Sequence

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The checkout: recipes name scripts and configs of it."""


class RecipeError(Exception):
    """One line for the user: a wrong recipe, or a stage that failed."""


class Pieces(Enum):
    """How the text is split before fairseq-preprocess."""

    none = 0
    sentencepiece = 1
    gpt2 = 2


class Corpus(Enum):
    """What a training reads: sentence pairs, text of the target language alone, or sentence pairs
    with a teacher's translations as training targets (knowledge distillation)."""

    parallel = 0
    monolingual = 1
    distilled = 2


class Device(Enum):
    auto = 0
    cpu = 1
    cuda = 2


@dataclass
class Data:
    prepare: str = MISSING
    """scripts/prepare/NAME.sh, which writes {train,valid,test}.{source,target}."""
    options: List[str] = field(default_factory=list)
    """Further words for that script."""
    folder: Optional[str] = None
    """A local folder that it takes the files from, instead of the network."""
    source: str = MISSING
    target: str = MISSING
    pieces: Pieces = Pieces.none
    vocabulary: int = 4000
    """Number of sentencepiece pieces, joint."""
    blank: Optional[str] = None
    """A symbol that the dictionary gets for blanked words."""
    gpt2: Optional[str] = None
    """A folder with GPT-2's encoder.json and vocab.bpe, and dict.txt, the model's dictionary."""
    monolingual: bool = False
    """Prepare mono.{train,valid}.TARGET as well, text for denoising pretraining."""
    test_set: str = MISSING
    """What the scores are on, for the rows: corpus, part, language pair, treatment of the text."""


@dataclass
class Training:
    """A run of fairseq-train."""

    system: Optional[str] = None
    """Its name in rows and pictures; without one it is not scored."""
    start: Optional[str] = None
    """Another training whose best checkpoint this one begins with (a fresh optimiser)."""
    corpus: Corpus = Corpus.parallel
    weights: Optional[str] = None
    """A checkpoint file to begin with, such as BART's (a fresh optimiser)."""
    flags: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Variant:
    """A way to decode; each system is translated and scored once with every variant."""

    columns: Dict[str, Any] = field(default_factory=dict)
    flags: Dict[str, Any] = field(default_factory=dict)


@dataclass
class Recipe:
    name: str = MISSING
    title: str = "${name}"
    seed: int = 1
    noise: str = "none"
    """Of the training targets, e.g. repeat:0.5."""
    model_name: str = MISSING
    """What the model is called in the rows."""
    device: Device = Device.auto
    half_precision: bool = True
    """--fp16, on a GPU only."""
    gpus: Optional[str] = None
    """CUDA_VISIBLE_DEVICES of the trainings and of generation."""
    launcher: List[str] = field(default_factory=list)
    """Words before fairseq-train, e.g. [torchrun, --nproc_per_node, "4", --no-python]."""
    data: Data = field(default_factory=Data)
    preprocess: Dict[str, Any] = field(default_factory=dict)
    """Flags of fairseq-preprocess, beyond languages, files and dictionary."""
    flags: Dict[str, Any] = field(default_factory=dict)
    """Flags of all trainings: task, model, batches."""
    train: Dict[str, Training] = field(default_factory=dict)
    """Trainings by name; each runs after the one that it starts from."""
    teacher: Optional[str] = None
    """The training whose translations are the targets of trainings with corpus: distilled."""
    teacher_generate: Dict[str, Any] = field(default_factory=lambda: {"beam": 5})
    """Flags of fairseq-generate for these translations."""
    average: Optional[int] = None
    """Average so many last checkpoints, saved by updates, of a system before it is translated."""
    generate: Dict[str, Any] = field(default_factory=dict)
    """Flags of fairseq-generate."""
    variants: List[Variant] = field(default_factory=list)
    columns: Dict[str, Any] = field(default_factory=dict)
    """Further columns of the rows."""
    published: Dict[str, Any] = field(default_factory=dict)
    """BLEU in the paper, by system, shown beside ours and never computed with."""
    published_for: Optional[str] = None
    """The noise that they are for; with another one they are not shown."""
    published_source: str = "Liu et al., NAACL 2022"


def load(path: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The recipe at ``path``, its bases below it and ``key=value`` overrides above.

    Raises RecipeError, one line that names the file or override, the key and the choices.
    """
    layers = _with_bases(path, [])
    for text in overrides:
        if not re.match(r"[^=\s]+=", text):
            raise RecipeError(f"{text}: key=value is needed")
        layers.append((text, parse(text, lambda: OmegaConf.from_dotlist([text]))))  # noqa: B023
    recipe = OmegaConf.structured(Recipe)
    for where, layer in layers:
        recipe = parse(where, lambda: OmegaConf.merge(recipe, layer))  # noqa: B023
    parse(path, lambda: OmegaConf.resolve(recipe))
    missing = sorted(OmegaConf.missing_keys(recipe))
    if missing:
        raise RecipeError(f"{path}: {', '.join(missing)} must be given")
    _check(path, recipe)
    return recipe


def _with_bases(path: str, below: List[str]) -> list:
    """(file, content) of a file and of what it is based on, the deepest base first."""
    real = os.path.realpath(path)
    if real in below:
        raise RecipeError(f"{path}: base: the files are each other's base")
    if not os.path.isfile(path):
        named = f"{below[-1]}: base: " if below else ""
        raise RecipeError(f"{named}{path}: there is no such file")
    content = parse(path, lambda: OmegaConf.load(path))
    if not isinstance(content, DictConfig):
        raise RecipeError(f"{path}: a recipe is a mapping of keys to values")
    base = content.pop("base", None)
    if base is None:
        return [(path, content)]
    if not isinstance(base, str):
        raise RecipeError(f"{path}: base: a file is needed, not {base!r}")
    base = os.path.join(os.path.dirname(path), base)
    return [*_with_bases(base, [*below, real]), (path, content)]


def parse(where: str, action):
    """Its result; what OmegaConf or its YAML reader refuses becomes one line."""
    try:
        return action()
    except OmegaConfBaseException as err:
        raise RecipeError(f"{where}: {_reason(err)}") from None
    except OSError as err:
        raise RecipeError(f"{where}: {err.strerror or err}") from None
    except Exception as err:  # of the YAML reader, which is not ours to import
        if type(err).__module__.split(".")[0] != "yaml":
            raise
        raise RecipeError(f"{where}: no YAML: {' '.join(str(err).split())}") from None


def _reason(err: OmegaConfBaseException) -> str:
    key = str(err.full_key or "")
    first = str(err.msg or err).splitlines()[0]
    unknown = re.match(r"Key '(.*)' (not in|is not in struct)", first)
    if unknown:
        parent = err.parent_node
        choices = sorted(str(k) for k in parent.keys()) if isinstance(parent, DictConfig) else []
        near = difflib.get_close_matches(unknown[1], choices, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        if "base" not in choices and not key.count("."):
            choices = sorted([*choices, "base"])
        return f"there is no key {key}; {hint}(choose from {', '.join(choices)})"
    return f"{key}: {first}" if key else first


def _check(path: str, recipe: DictConfig):
    """What types alone do not say."""

    def wrong(key: str, what: str):
        raise RecipeError(f"{path}: {key}: {what}")

    if not re.fullmatch(r"[\w.+-]+", recipe.name):
        wrong("name", f"letters, digits, and ._+- are needed, not {recipe.name!r}")
    scripts = os.path.join(ROOT, "scripts", "prepare")
    if not os.path.isdir(scripts):
        wrong("data.prepare", f"recipes need a checkout of the repository; {ROOT} is none")
    names = [name[:-3] for name in os.listdir(scripts) if name.endswith(".sh")]
    known = sorted(name for name in names if not name.startswith(("encode_", "bart_")))
    if recipe.data.prepare not in known:
        wrong(
            "data.prepare", f"{recipe.data.prepare!r} is unknown (choose from {', '.join(known)})"
        )
    for key in ("folder", "gpt2"):
        folder = recipe.data[key]
        if folder is not None and not os.path.isdir(folder):
            wrong(f"data.{key}", f"there is no folder {folder}")
    if recipe.data.monolingual and recipe.data.folder is None:
        wrong(
            "data.folder",
            "data.monolingual needs a local folder that has the text; it is not fetched",
        )
    if recipe.data.pieces == Pieces.gpt2 and not recipe.data.gpt2:
        wrong(
            "data.gpt2", "pieces: gpt2 needs the folder with encoder.json, vocab.bpe and dict.txt"
        )
    if recipe.data.vocabulary < 1:
        wrong("data.vocabulary", f"1 or more is needed, not {recipe.data.vocabulary}")
    if recipe.average is not None and recipe.average < 1:
        wrong("average", f"1 or more checkpoints are needed, not {recipe.average}")
    if not recipe.train:
        wrong("train", "at least one training is needed")
    for name, training in recipe.train.items():
        key = f"train.{name}"
        if not re.fullmatch(r"[A-Za-z]\w*", str(name)):
            wrong(key, "a training's name is a word")
        others = [other for other in recipe.train if other != name]
        if training.start is not None and training.start not in others:
            choices = ", ".join(others) or "none"
            wrong(
                f"{key}.start", f"{training.start!r} is no other training (choose from {choices})"
            )
        if training.corpus == Corpus.monolingual and not recipe.data.monolingual:
            wrong(f"{key}.corpus", "monolingual needs data.monolingual: true")
        if training.corpus == Corpus.distilled and recipe.teacher in (None, name):
            wrong(f"{key}.corpus", "distilled needs teacher, the name of another training")
        if training.start is not None and training.weights is not None:
            wrong(key, "start and weights exclude each other")
        if training.weights is not None and not os.path.isfile(training.weights):
            wrong(f"{key}.weights", f"there is no file {training.weights}")
    if recipe.teacher is not None and recipe.teacher not in recipe.train:
        choices = ", ".join(recipe.train)
        wrong("teacher", f"{recipe.teacher!r} is no training (choose from {choices})")
    order = trainings(recipe)
    if len(order) < len(recipe.train):
        circle = ", ".join(name for name in recipe.train if name not in order)
        wrong("train", f"{circle}: each needs another one, and none comes first")
    systems = [training.system for training in recipe.train.values() if training.system]
    for system in systems:
        if systems.count(system) > 1:
            wrong("train", f"{system!r} is the system of several trainings; rows need a name each")
    if not any(training.system for training in recipe.train.values()):
        wrong("train", "no training has a system, so there is nothing to score")
    for key, flags in flag_groups(recipe):
        for flag, value in flags.items():
            if isinstance(value, (DictConfig, dict)) or OmegaConf.is_list(value):
                wrong(f"{key}.{flag}", "a flag's value is one word or number, true, false or null")


def trainings(recipe: DictConfig) -> List[str]:
    """The names of the trainings, each after the ones that it starts or learns from."""
    order: List[str] = []
    for _ in recipe.train:
        for name, training in recipe.train.items():
            needed = [
                training.start,
                recipe.teacher if training.corpus == Corpus.distilled else None,
            ]
            if name not in order and all(other in (None, *order) for other in needed):
                order.append(str(name))
                break
    return order


def flag_groups(recipe: DictConfig) -> list:
    """(key, flags) for each mapping of flags in a recipe."""
    groups = [(key, recipe[key]) for key in ("preprocess", "flags", "generate", "teacher_generate")]
    groups += [(f"train.{name}.flags", part.flags) for name, part in recipe.train.items()]
    groups += [(f"variants.{i}.flags", part.flags) for i, part in enumerate(recipe.variants)]
    return groups


def words(*groups) -> List[str]:
    """Mappings of flags, later ones first in rank, as words of a command line.

    ``true`` is the bare flag, ``false`` and ``null`` leave it out.
    """
    flags: Dict[str, Any] = {}
    for group in groups:
        flags.update(group)
    line: List[str] = []
    for flag, value in flags.items():
        if value is None or value is False:
            continue
        line.append(f"--{flag}")
        if value is not True:
            line.append(str(value))
    return line
