"""What a recipe holds, and what follows from it alone."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Mapping, Optional

from omegaconf import MISSING, DictConfig, OmegaConf

NOISY_TASKS = ("noisy_translation", "noisy_translation_lev")
"""The tasks that noise their training targets."""
NOISE_FLAGS = ("target-noise", "target-noise-seed", "target-noise-blank")
FILE_FLAGS = {
    "init-weights": ("",),
    "hint-teacher": ("",),
    "clean-text": (".bin", ".idx"),
    "encoder-embed-path": ("",),
    "decoder-embed-path": ("",),
}
"""The flags of a training that name files, on whose content its results depend, and how the files'
names go on behind what the flag says."""
CHECKPOINT, TEXT = "checkpoint:", "text:"
LM_PATH = "lm-path"
"""What values of ``score`` begin with that name a training's checkpoint, or a prepared file."""
SHARING_TASK = "noisy_translation_lev"
"""The task whose models can begin with what another model has learnt."""
REFINING_TASKS = ("noisy_translation_lev", "translation_lev")
"""The tasks whose models translate by refinement."""


def _flags() -> Any:
    """A field for flags: each a number, a word, true (the bare flag), false or null (none)."""
    return field(default_factory=dict, metadata={"values": "flags"})


def _texts() -> Any:
    """A field for columns of rows: text, or null for no such column."""
    return field(default_factory=dict, metadata={"values": "texts"})


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


class Checkpoint(Enum):
    """Of another training: the best by its validation, or the one that it ended with."""

    best = 0
    last = 1


class Parameters(Enum):
    """Of a checkpoint: all, as the same model has them, or those that another model has, too."""

    all = 0
    shared = 1


class CleanText(Enum):
    """What targets are weighed by: the monolingual text, or the targets of the validation set."""

    monolingual = 0
    validation = 1


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
    files: List[str] = field(default_factory=list)
    """For prepare: text, in place of the folder: the six files, of source and target in turns, of
    the training, validation and test set."""
    source: str = MISSING
    """The language that is translated, the end of its files' names."""
    target: str = MISSING
    """The language of the translations."""
    pieces: Pieces = Pieces.none
    """How words are split: none (they are, or stay whole), sentencepiece, gpt2."""
    vocabulary: Optional[int] = 4000
    """Number of sentencepiece pieces, joint; null: as many as the training text is enough for."""
    blank: Optional[str] = None
    """A symbol that the dictionary gets for blanked words."""
    gpt2: Optional[str] = None
    """A folder with GPT-2's encoder.json and vocab.bpe, and dict.txt, the model's dictionary."""
    monolingual: bool = False
    """Prepare mono.{train,valid}.TARGET as well, text for denoising pretraining."""
    test_set: str = MISSING
    """What the scores are on, for the rows: corpus, part, language pair, treatment of the text."""
    test_source: Optional[str] = None
    """The file of the prepared text that has the sources of the test set; test.SOURCE, if null."""
    test_reference: Optional[str] = None
    """And that which outputs are scored against; test.TARGET, if null."""
    shown_reference: Optional[str] = None
    """And that which examples are shown beside, where it is another one than test_reference."""


@dataclass
class Training:
    """A run of fairseq-train."""

    system: Optional[str] = None
    """Its name in rows and pictures; without one it is not scored."""
    start: Optional[str] = None
    """Another training whose checkpoint this one begins with (a fresh optimiser)."""
    start_checkpoint: Checkpoint = Checkpoint.best
    """Which of them: best by validation, or last."""
    start_parameters: Parameters = Parameters.all
    """What is taken from it: all of the same model, or what another model shares with it by name
    (--init-weights of noisy_translation_lev)."""
    corpus: Corpus = Corpus.parallel
    """What it reads: parallel, monolingual, or distilled (a teacher's translations as targets)."""
    weights: Optional[str] = None
    """A checkpoint file to begin with, such as BART's (a fresh optimiser)."""
    clean_text: Optional[CleanText] = None
    """What tells noise from language, for --clean-text: monolingual (the text of
    data.monolingual), or validation (its targets)."""
    noise: Optional[str] = None
    """Of its targets, where it is another one than the recipe's."""
    flags: Dict[str, Any] = _flags()
    """Flags of fairseq-train, above the recipe's."""
    generate: Dict[str, Any] = _flags()
    """Flags of fairseq-generate for this system, above the recipe's and below those of a
    variant."""
    columns: Dict[str, Any] = _texts()
    """Further columns of the rows of this system."""


@dataclass
class Trials:
    """Settings of a training, of which a short trial on the validation set chooses one."""

    updates: Optional[int] = None
    """Of a trial; as many as the training has where there is none."""
    finalists: int = 1
    """So many of the best settings are trained whole and decoded, and the BLEU of the validation
    set chooses one; with 1, the trial's score does."""
    settings: Dict[str, List[str]] = field(default_factory=dict)
    """flag=value for the training, by a name for them."""
    decoding: Dict[str, List[str]] = field(default_factory=dict)
    """flag=value for the decoding of what was trained, by a name for them."""


@dataclass
class Variant:
    """A way to decode; each system is translated and scored once with every variant."""

    columns: Dict[str, Any] = _texts()
    """Of the rows, to tell the ways apart."""
    flags: Dict[str, Any] = _flags()
    """Flags of fairseq-generate, above all others."""


@dataclass
class Recipe:
    name: str = MISSING
    """Of the run's folder and of the rows."""
    title: str = "${name}"
    """Of the page and the pictures; ${KEY} stands for the value of a key."""
    seed: int = 1
    """Of the trainings."""
    noise: str = "none"
    """Of the targets of all trainings whose task noises them, e.g. repeat:0.5: --target-noise."""
    noise_seed: Optional[int] = None
    """Of the noise, where it is another one than the recipe's."""
    model_name: str = MISSING
    """What the model is called in the rows."""
    device: Device = Device.auto
    """auto: a GPU where torch finds one."""
    half_precision: bool = True
    """--fp16, on a GPU only."""
    gpus: Optional[str] = None
    """CUDA_VISIBLE_DEVICES of the trainings and of generation, e.g. "0,1"; "0;1" gives each of two
    --jobs at once its own."""
    launcher: List[str] = field(default_factory=list)
    """Words before fairseq-train, e.g. [torchrun, --nproc_per_node, "4", --no-python]; on CPUs with
    flags distributed-backend: gloo and ddp-backend: legacy_ddp."""
    data: Data = field(default_factory=Data)
    """The corpus, and how it becomes what trainings read."""
    preprocess: Dict[str, Any] = _flags()
    """Flags of fairseq-preprocess, beyond languages, files and dictionary."""
    flags: Dict[str, Any] = _flags()
    """Flags of all trainings: task, model, batches."""
    train: Dict[str, Training] = field(default_factory=dict)
    """Trainings by name; each runs after the one that it starts from."""
    tune: Dict[str, Trials] = field(default_factory=dict)
    """What ``recipes tune`` tries, by training."""
    teacher: Optional[str] = None
    """The training whose translations are the targets of trainings with corpus: distilled."""
    teacher_generate: Dict[str, Any] = field(
        default_factory=lambda: {"beam": 5}, metadata={"values": "flags"}
    )
    """Flags of fairseq-generate for these translations."""
    teacher_parts: int = 1
    """In how many parts it translates: one that was killed begins again alone, and ``--jobs`` are
    at several, each on a GPU of its own."""
    average: Optional[int] = None
    """Average so many last checkpoints, saved by updates, of a system before it is translated."""
    generate: Dict[str, Any] = _flags()
    """Flags of fairseq-generate."""
    variants: List[Variant] = field(default_factory=list)
    """Ways to decode."""
    score: Dict[str, Any] = _flags()
    """Flags of the scores beyond those that a recipe gives itself. A value checkpoint:NAME is the
    best checkpoint of that training, text:FILE a file of the prepared text."""
    columns: Dict[str, Any] = _texts()
    """Further columns of the rows."""
    published: Dict[str, Any] = _flags()
    """BLEU in the paper, by system, shown beside ours and never computed with."""
    published_for: Optional[str] = None
    """The noise that they are for; with another one they are not shown."""
    published_source: str = "Liu et al., NAACL 2022"
    """Where they stand."""
    overrides: List[str] = field(default_factory=list)
    """What the command line changed, for rows and titles; written by the recipe."""
    tried: List[Dict[str, str]] = field(default_factory=list)
    """Rows of the trials that chose some of it; written by ``recipes tune``."""


def trainings(recipe: DictConfig) -> List[str]:
    """The names of the trainings, each after the ones that it starts or learns from."""
    order: List[str] = []
    for _ in recipe.train:
        for name, training in recipe.train.items():
            needed = [training.start]
            if training.corpus == Corpus.distilled:
                needed += [recipe.teacher, named_training(recipe.teacher_generate.get(LM_PATH))]
            if name not in order and all(other in (None, *order) for other in needed):
                order.append(str(name))
                break
    return order


def flag_groups(recipe: DictConfig) -> list:
    """(key, flags) for each mapping of flags in a recipe."""
    keys = ("preprocess", "flags", "generate", "teacher_generate", "score")
    groups = [(key, recipe[key]) for key in keys]
    groups += [(f"train.{name}.flags", part.flags) for name, part in recipe.train.items()]
    groups += [(f"train.{name}.generate", part.generate) for name, part in recipe.train.items()]
    groups += [(f"variants.{i}.flags", part.flags) for i, part in enumerate(recipe.variants)]
    return groups


def files_of(flags: Mapping[str, Any]) -> Dict[str, List[str]]:
    """The files that flags of a training name, by flag."""
    given = {flag: flags.get(flag) for flag in FILE_FLAGS}
    return {
        flag: [f"{value}{ending}" for ending in FILE_FLAGS[flag]]
        for flag, value in given.items()
        if value is not None
    }


def training_flags(recipe: DictConfig, name: str) -> Dict[str, Any]:
    """The flags that a recipe gives to one training, its own above the shared ones."""
    return {**_dict(recipe.flags), **_dict(recipe.train[name].flags)}


def _dict(flags: DictConfig) -> Dict[str, Any]:
    """At once: OmegaConf takes longer for a key than a command line for all of them."""
    found = OmegaConf.to_container(flags, resolve=True)
    assert isinstance(found, dict)
    return {str(flag): value for flag, value in found.items()}


def generation_flags(recipe: DictConfig, name: str, variant: Mapping[str, Any]) -> Dict[str, Any]:
    """The flags that a recipe gives to the decoding of a training's model, in the way of a variant
    with these flags."""
    return {**recipe.generate, **recipe.train[name].generate, **variant}


def judges(recipe: DictConfig) -> List[str]:
    """The trainings whose checkpoints score the systems."""
    return [name for name in map(named_training, recipe.score.values()) if name is not None]


def language_models(recipe: DictConfig) -> Dict[str, str]:
    """What speaks beside systems when they decode, or is tried there: each ``lm-path``, which is
    checkpoint:NAME of a training or a file, with a key that says so."""
    groups = flag_groups(recipe)
    for name, trials in recipe.tune.items():
        for setting, texts in trials.decoding.items():
            flags = dict(str(text).partition("=")[::2] for text in texts)
            groups.append((f"tune.{name}.decoding.{setting}", flags))
    paths = [(flags.get(LM_PATH), f"{key}.{LM_PATH}") for key, flags in groups]
    return {str(path): key for path, key in paths[::-1] if path is not None}


def named_training(value: Any) -> Optional[str]:
    """NAME of checkpoint:NAME; None if it is something else."""
    text = str(value)
    return text[len(CHECKPOINT) :] if text.startswith(CHECKPOINT) else None


def task_of(recipe: DictConfig, name: str) -> str:
    """The task of a training; fairseq's own default where none is given."""
    own = recipe.train[name].flags
    return str((own if "task" in own else recipe.flags).get("task") or "translation")


def noise_of(recipe: DictConfig, name: str) -> str:
    """The noise that a training's targets get: ``none`` where its task noises nothing."""
    if task_of(recipe, name) not in NOISY_TASKS:
        return "none"
    own = recipe.train[name].noise
    return str(recipe.noise if own is None else own)


def noise_flags(recipe: DictConfig, name: str) -> Dict[str, Any]:
    """The flags that give a training its noise."""
    if task_of(recipe, name) not in NOISY_TASKS:
        return {}
    seed = recipe.seed if recipe.noise_seed is None else recipe.noise_seed
    found: Dict[str, Any] = {"target-noise": noise_of(recipe, name), "target-noise-seed": seed}
    # Only the dictionary of pieces gets a symbol of its own for blanks.
    if recipe.data.blank is not None and recipe.data.pieces == Pieces.sentencepiece:
        found["target-noise-blank"] = recipe.data.blank
    return found


def words(*groups) -> List[str]:
    """Mappings of flags, later ones first in rank, as words of a command line.

    ``true`` is the bare flag, ``false`` and ``null`` leave it out. A value that looks like a flag
    is joined to its own by ``=``.

    >>> words({"ngram": "-1,2", "fp16": True, "lr": 1e-4}, {"lr": None})
    ['--ngram=-1,2', '--fp16']
    """
    flags: Dict[str, Any] = {}
    for group in groups:
        flags.update(group)
    line: List[str] = []
    for flag, value in flags.items():
        if value is None or value is False:
            continue
        if str(value).startswith("-"):
            line.append(f"--{flag}={value}")
            continue
        line.append(f"--{flag}")
        if value is not True:
            line.append(str(value))
    return line
