"""Reading a recipe: its file, the files below it, and what the command line changes."""

import difflib
import hashlib
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ..common.checkout import ROOT
from ..common.run_files import ROW_COLUMNS
from .checks import check
from .errors import RecipeError
from .layers import lay
from .recipe import (
    Corpus,
    Device,
    Pieces,
    Recipe,
    flag_groups,
    noise_of,
    trainings,
    words,
)
from .typed import as_override, kind_at, nested, override_value, plain, typed
from .yaml_text import is_null, read_yaml

__all__ = [
    "ROOT", "Corpus", "Device", "Pieces", "Recipe", "RecipeError", "as_override", "flag_groups",
    "load", "noise_of", "parse", "run_name", "trainings", "words",
]  # fmt: skip

# A run's folder is named after these already, or they change no result.
_QUIET = ("name", "seed", "title", "device", "gpus", "overrides")
_PLACES = ("data.folder", "data.gpt2")
_LONGEST = 100  # characters of the overrides in a folder's name, which may have 255 bytes
_TITLE = 80  # characters of them in a title


class Override(NamedTuple):
    """``adds``: it began with a +. ``value``: what the key becomes, as in a file."""

    text: str
    adds: bool
    path: List[str]
    value: Any

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def shown(self) -> str:
        """``key=value`` without the quotes that YAML needs."""
        value = self.value if isinstance(self.value, str) else self.text.split("=", 1)[1].strip()
        return f"{self.key}={value}"


def load(path: str, overrides: Sequence[str] = ()) -> DictConfig:
    """The recipe at ``path``, its bases below it and ``key=value`` overrides above.

    ``+key=value`` may name a training or a column that the file does not have. The recipe's
    ``overrides`` are those that changed something about the results. Raises RecipeError, one line
    that names the file or override, the key and the choices.
    """
    recipe = OmegaConf.structured(Recipe)
    for where, layer in _with_bases(path, []):
        parse(where, lambda: lay(recipe, layer))  # noqa: B023
    changed = {}
    content = OmegaConf.to_container(recipe)
    for text in overrides:
        override = _override(text)
        _put(recipe, override)
        before, content = content, OmegaConf.to_container(recipe)
        if content != before and not _is_quiet(override):
            changed[override.key] = override
    template = str(OmegaConf.to_container(recipe, resolve=False)["title"])  # type: ignore
    parse(path, lambda: OmegaConf.resolve(recipe))
    missing = sorted(OmegaConf.missing_keys(recipe))
    if missing:
        raise RecipeError(f"{path}: {', '.join(missing)} must be given")
    check(path, recipe)
    if changed:
        recipe.overrides = [_described(each) for each in changed.values()]
        recipe.title = _title(recipe.title, template, list(changed.values()))
    return recipe


def run_name(recipe: DictConfig, overrides: Sequence[str] = ()) -> str:
    """The name of the folder in which a run of ``recipe`` under ``overrides`` ends.

    NAME-seedN, and what the command line changed about the results: the same command finds the
    same folder, another one does not. A digest stands for what has no place in a name.
    """
    found = {}
    for text in overrides:
        override = _override(text)
        if not _is_quiet(override) and _described(override) in recipe.overrides:
            found[override.key] = override
    name = f"{recipe.name}-seed{recipe.seed}"
    if not found:
        return name
    parts = sorted(override.shown for override in found.values())
    told = ",".join(re.sub(r"[^\w.=+-]+", "_", part, flags=re.ASCII) for part in parts)
    if told != ",".join(parts) or len(told) > _LONGEST or any("," in part for part in parts):
        digest = hashlib.sha256("\n".join(parts).encode("utf-8")).hexdigest()[:8]
        told = f"{told[:_LONGEST]}-{digest}"
    return f"{name},{told}"


def _is_quiet(override: Override) -> bool:
    return override.path[0] in _QUIET


def _is_place(override: Override) -> bool:
    """Whether the value is a file or folder of this machine."""
    return override.key in _PLACES or override.path[-1].endswith(("weights", "teacher"))


def _described(override: Override) -> str:
    """An override for rows: of a place, its last part."""
    key, _, value = override.shown.partition("=")
    if _is_place(override):
        value = os.path.basename(value.rstrip("/"))
    return f"{key}={value}"


def _title(title: str, template: str, changed: List[Override]) -> str:
    """The title with what the command line changed, unless it says so itself."""
    told = [
        override.shown
        for override in changed
        if f"${{{override.key}}}" not in template and not _is_place(override)
    ]
    text = ", ".join(told)
    text = text if len(text) <= _TITLE else text[: _TITLE - 3] + "..."
    return f"{title} ({text})" if text else title


def _with_bases(path: str, below: List[str], found: Optional[Dict[str, tuple]] = None) -> list:
    """(file, content) of a file and of what it is based on, the deepest base first.

    ``base`` may be a list, whose later files lie above the earlier ones. A file that is reached
    twice lies where it was first met, so that it takes nothing back.
    """
    found = {} if found is None else found
    named = f"{below[-1]}: base: " if below else ""
    real = os.path.realpath(path)
    if any(real == os.path.realpath(other) for other in below):
        circle = " -> ".join([*below, path])
        raise RecipeError(f"{named}{path}: the files are each other's base: {circle}")
    if real in found:
        return list(found.values())
    try:
        content = read_yaml(path)
    except RecipeError as err:
        raise RecipeError(f"{named}{err}") from None
    if not isinstance(content, dict):
        raise RecipeError(f"{path}: a recipe is a mapping of keys to values")
    for base in _bases(path, content.pop("base", None)):
        _with_bases(os.path.join(os.path.dirname(path), base), [*below, path], found)
    found[real] = path, typed(content, Recipe, path)
    return list(found.values())


def _bases(path: str, given: Any) -> List[str]:
    """The files that ``base`` of a file names."""
    if given is None or is_null(given):
        return []
    bases = given if isinstance(given, list) else [given]
    for base in bases:
        if not isinstance(base, str) or is_null(base):
            shown = plain(base) if isinstance(base, (dict, list)) else str(base)
            raise RecipeError(f"{path}: base: a file or a list of files is needed, not {shown!r}")
    return bases


def _override(text: str) -> Override:
    """``[+]key=value`` taken apart."""
    match = re.fullmatch(r"(\+?)([^=\s+][^=\s]*)=(.*)", text, re.DOTALL)
    if not match:
        raise RecipeError(f"{text}: key=value is needed")
    path = re.sub(r"\[(\d+)\]", r".\1", match[2]).split(".")
    # "base" is of files alone: what lies below a file is read before the command line.
    if path == ["base"]:
        raise RecipeError(f"{text}: base is a key of files; name another CONFIG instead")
    kind, _ = kind_at(Recipe, path) or (None, "")
    return Override(text, bool(match[1]), path, override_value(match[3], kind, text))


def _put(recipe: DictConfig, override: Override):
    """Change the recipe itself: a copy for each override is what took longest."""
    text, path, value = override.text, override.path, override.value
    _check_names(recipe, override)
    if path[0] == "variants" and len(path) > 1:
        number = int(path[1])
        if len(path) == 2:
            tree = {"variants": [{} for _ in range(number)] + [value]}
        else:
            tree = {"variants": [{} for _ in range(number)] + [nested(path[2:], value)]}
        layer = typed(tree, Recipe, text)["variants"][number]
        both = list(recipe.variants)
        parse(text, lambda: lay(both[number], layer))
        recipe.merge_with({"variants": both})
        return
    parse(text, lambda: lay(recipe, typed(nested(path, value), Recipe, text)))


def _check_names(recipe: DictConfig, override: Override):
    """Refuse a name that the recipe does not have where any name would do."""
    text, path, value = override.text, override.path, override.value
    if path[0] == "train":
        names = path[1:2] or (list(value) if isinstance(value, dict) else [])
        for name in names:
            if name not in recipe.train and not override.adds:
                raise RecipeError(_unknown(text, "training", name, list(recipe.train)))
    if path[0] == "variants" and len(path) > 1:
        numbers = [str(number) for number in range(len(recipe.variants))]
        if path[1] not in numbers:
            there = f"choose from {', '.join(numbers)}" if numbers else "the recipe has none"
            raise RecipeError(f"{text}: there is no variant {path[1]} ({there})")
    columns: Optional[DictConfig] = None
    if path[0] in ("columns", "published"):
        columns, below = recipe[path[0]], path[1:]
    elif path[0] == "variants" and path[2:3] == ["columns"]:
        columns, below = recipe.variants[int(path[1])].columns, path[3:]
    if columns is not None and not override.adds:
        names = below[:1] or (list(value) if isinstance(value, dict) else [])
        known = [str(name) for name in columns]
        if path[0] != "published":
            known += ROW_COLUMNS
        for name in names:
            if name not in known and difflib.get_close_matches(name, known, 1, 0.8):
                what = "system" if path[0] == "published" else "column"
                raise RecipeError(_unknown(text, what, name, known))


def _unknown(text: str, what: str, name: str, choices: List[str]) -> str:
    near = difflib.get_close_matches(name, choices, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    there = f"choose from {', '.join(choices)}" if choices else "there is none"
    return f"{text}: there is no {what} {name}; {hint}({there}; +{text} adds one)"


def parse(where: str, action):
    """Its result; what OmegaConf refuses becomes one line."""
    try:
        return action()
    except OmegaConfBaseException as err:
        raise RecipeError(f"{where}: {_reason(err)}") from None
    except OSError as err:
        raise RecipeError(f"{where}: {err.strerror or err}") from None


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
