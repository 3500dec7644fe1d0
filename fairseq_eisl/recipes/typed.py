"""What was read from YAML as what a dataclass says it is; OmegaConf makes numbers of the text."""

import re
from dataclasses import fields, is_dataclass
from typing import Any, Dict, List, Sequence, Union, get_type_hints

from .errors import RecipeError
from .yaml_text import Plain, flag_value, is_null, parse_yaml


class _Taken:
    """See :data:`TAKEN`."""

    def __repr__(self) -> str:
        return "null"


TAKEN = _Taken()
"""What ``null`` becomes where a mapping, or a part of one, is to be no longer there."""


def typed(tree: Any, kind: Any, where: str, key: str = "", values: str = "") -> Any:
    """``tree`` with text as text, and with numbers and switches where ``kind`` has flags.

    ``values``: what the mapping that ``kind`` is holds, "flags", "texts" or anything. ``null`` is
    ``TAKEN`` for a mapping, and for a part of one that holds other things than flags or texts.
    Raises RecipeError, one line of ``where`` and key, where another shape is needed.
    """
    kind, optional = _without_none(kind)
    origin = getattr(kind, "__origin__", None)
    inner: Any = getattr(kind, "__args__", ())
    if is_dataclass(kind):
        _need(tree, dict, where, key, "a mapping of keys to values is needed")
        known = get_type_hints(kind)
        held = {each.name: each.metadata.get("values", "") for each in fields(kind)}
        return {
            name: typed(value, known[name], where, _below(key, name), held[name])
            if name in known
            else plain(value)  # OmegaConf refuses the key
            for name, value in tree.items()
        }
    if origin is dict:
        if is_null(tree):
            return TAKEN if tree else {}
        _need(tree, dict, where, key, "a mapping of names to values is needed")
        if inner[1] is not Any:
            return {
                k: TAKEN if v and is_null(v) else typed(v, inner[1], where, _below(key, k))
                for k, v in tree.items()
            }
        return {name: _value(value, values) for name, value in tree.items()}
    if origin is list:
        if is_null(tree):
            return []
        _need(tree, list, where, key, "a list is needed, e.g. [a, b]")
        return [typed(v, inner[0], where, _below(key, str(i))) for i, v in enumerate(tree)]
    if isinstance(tree, (dict, list)):
        raise RecipeError(f"{where}: {key}: one word is needed, not {_shown(tree)}")
    if optional and is_null(tree):
        return None
    return str(tree)


def kind_at(kind: Any, path: Sequence[str]) -> Any:
    """(type, what a mapping there holds) of the key ``path`` below ``kind``; None if unknown."""
    values = ""
    for part in path:
        kind, _ = _without_none(kind)
        origin = getattr(kind, "__origin__", None)
        inner: Any = getattr(kind, "__args__", ())
        if is_dataclass(kind):
            held = {each.name: each.metadata.get("values", "") for each in fields(kind)}
            if part not in held:
                return None
            kind, values = get_type_hints(kind)[part], held[part]
        elif origin in (dict, list):
            kind = inner[-1]
        else:
            return None
    return kind, values


def override_value(text: str, kind: Any, where: str) -> Any:
    """The value of ``key=text`` on a command line as a tree, for a key of type ``kind``.

    Where one word is needed, text that is none in YAML is meant as it stands: ``a: b``, ``#1``.
    """
    kind, _ = _without_none(kind)
    scalar = kind is Any or getattr(kind, "__origin__", None) is None and not is_dataclass(kind)
    try:
        tree = parse_yaml(text, where) if text.strip() else Plain("")
    except RecipeError:
        if not scalar:
            raise
        return text
    listed = kind is Any and isinstance(tree, list)  # refused later, with the key
    if scalar and not listed and (isinstance(tree, (dict, list)) or tree != _unquoted(text)):
        return text
    return tree


def as_override(key: str, value: str) -> str:
    """``key=value`` that is read as just this text, with quotes where it needs them.

    >>> as_override("title", "no: way"), as_override("x", "null")
    ('title=no: way', "x='null'")
    """
    if override_value(value, str, key) == value and not is_null(override_value(value, str, key)):
        return f"{key}={value}"
    return "{}='{}'".format(key, value.replace("'", "''"))


def plain(tree: Any) -> Any:
    """The same tree of dictionaries, lists and str alone."""
    if isinstance(tree, dict):
        return {str(k): plain(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [plain(v) for v in tree]
    return str(tree)


def _unquoted(text: str) -> str:
    """A scalar's text without the quotes around it and without outer space."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        tree = parse_yaml(text, "")
        return tree if isinstance(tree, str) else text
    return text


def _value(value: Any, values: str) -> Any:
    if isinstance(value, (dict, list)):
        return plain(value)
    if values == "flags":
        return flag_value(value)
    if isinstance(value, Plain) and value in ("", "null", "Null", "NULL"):
        return None
    return str(value)


def _without_none(kind: Any) -> tuple:
    """(type, whether nothing may stand there) of Optional types and others."""
    if getattr(kind, "__origin__", None) is Union:
        return next(k for k in kind.__args__ if k is not type(None)), True
    return kind, False


def _need(tree: Any, shape: type, where: str, key: str, what: str):
    if not isinstance(tree, shape):
        raise RecipeError(f"{where}: {key + ': ' if key else ''}{what}, not {_shown(tree)}")


def _shown(tree: Any) -> str:
    text = repr(str(tree)) if isinstance(tree, str) else str(plain(tree))
    return re.sub(r"\s+", " ", text)[:80]


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else str(name)


def nested(path: List[str], value: Any) -> Dict[str, Any]:
    """{a: {b: value}} for the path a, b."""
    for part in reversed(path):
        value = {part: value}
    return value
