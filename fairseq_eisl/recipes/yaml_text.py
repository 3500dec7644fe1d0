"""YAML whose plain words stay what they are until somebody says what is meant.

YAML 1.1 reads ``no`` as false, ``010`` as 8, ``1:30`` as 90 and ``2024-01-01`` as a date. Here
every scalar is text: a ``Plain`` one was written without quotes, and only where a number, a
switch or nothing may stand does it become one (``flag_value``). A key is always text.
"""

import os
import re
from typing import Any, Dict, List

import yaml

from .errors import RecipeError

NULL = ("", "~", "null", "Null", "NULL")
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


class Plain(str):
    """A scalar that was written without quotes."""


def is_null(value: Any) -> bool:
    """Whether a scalar stands for nothing; one in quotes never does."""
    return isinstance(value, Plain) and value in NULL


def flag_value(value: Any) -> Any:
    """A scalar as a switch, a number or nothing where it is written like one, else as text.

    >>> [flag_value(Plain(word)) for word in ("1e-4", "1e3", "true", "~", "no", "010", "1:30")]
    [0.0001, 1000, True, None, 'no', '010', '1:30']
    >>> flag_value("3")
    '3'
    """
    if not isinstance(value, Plain):
        return value
    if value in NULL:
        return None
    if value in _TRUE + _FALSE:
        return value in _TRUE
    if _INTEGER.fullmatch(value):
        return int(value)
    if not _FLOAT.fullmatch(value):
        return str(value)
    number = float(value)
    whole = "." not in value and number.is_integer()  # 1e3, for flags that count
    return int(number) if whole else number


def read_yaml(path: str) -> Any:
    """The content of a file: dictionaries, lists and text; {} if there is none.

    Raises RecipeError, one line with the file and where in it the fault is: no file, a folder,
    not UTF-8, no YAML, a key that is there twice.
    """
    if os.path.isdir(path):
        raise RecipeError(f"{path}: this is a folder; a YAML file is needed")
    if not os.path.exists(path):
        raise RecipeError(f"{path}: there is no such file")
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError as err:
        raise RecipeError(f"{path}: {err.strerror or err}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise RecipeError(f"{path}: line {line}: not UTF-8 ({err.reason})") from None
    return parse_yaml(text, path)


def parse_yaml(text: str, where: str) -> Any:
    """The same from text; ``where`` begins every error."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as err:
        place = f"line {err.problem_mark.line + 1}: " if err.problem_mark else ""
        reason = " ".join(filter(None, [err.context, err.problem]))
        raise RecipeError(f"{where}: {place}no YAML: {reason}") from None
    except (yaml.YAMLError, RecursionError) as err:
        reason = " ".join(str(err).split())
        raise RecipeError(f"{where}: no YAML: {reason or 'too deep'}") from None
    return {} if node is None else _content(node, where, [])


def _content(node: yaml.Node, where: str, above: List[yaml.Node]) -> Any:
    line = node.start_mark.line + 1
    if any(node is other for other in above):
        raise RecipeError(f"{where}: line {line}: an alias that holds itself")
    if not node.tag.startswith("tag:yaml.org,2002:"):
        raise RecipeError(f"{where}: line {line}: {node.tag} is no tag of recipes")
    if isinstance(node, yaml.ScalarNode):
        # !!str null is text as well, which only its tag says.
        text = node.style is not None or (node.tag.endswith(":str") and node.value in NULL)
        return str(node.value) if text else Plain(node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_content(each, where, [*above, node]) for each in node.value]
    return _mapping(node, where, [*above, node])


def _mapping(node: yaml.Node, where: str, above: List[yaml.Node]) -> Dict[str, Any]:
    merged: Dict[str, Any] = {}
    own: Dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise RecipeError(f"{where}: line {line}: a key is one word")
        found = _content(value, where, above)
        if key.tag == "tag:yaml.org,2002:merge":  # <<: *anchor, or several of them
            for part in reversed(found if isinstance(found, list) else [found]):
                if not isinstance(part, dict):
                    raise RecipeError(f"{where}: line {line}: << needs a mapping")
                merged.update(part)
        elif key.value in own:
            raise RecipeError(f"{where}: line {line}: the key {key.value} is there twice")
        else:
            own[str(key.value)] = found
    return {**merged, **own}
