"""Tables of flags, noises and metrics, read off the code."""

import ast
import dataclasses
import importlib
import inspect
import logging
import re
import textwrap
from typing import Any, Dict, Iterable, List

import fairseq_eisl

fairseq_eisl.register()
logging.getLogger("MARKDOWN").setLevel(logging.WARNING)  # fairseq lets every logger speak


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Markdown."""
    rows = [list(header), *map(list, lines)]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _config(name: str) -> Any:
    """The dataclass of a criterion or task by its registered name, or of MODULE:CLASS."""
    if ":" in name:
        module, _, kind = name.partition(":")
        return getattr(importlib.import_module(module), kind)
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY
    from fairseq.dataclass import FairseqDataclass
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    # A criterion without a dataclass has no flags.
    found = {**TASK_DATACLASS_REGISTRY, **CRITERION_DATACLASS_REGISTRY}
    return found.get(name, FairseqDataclass)


def _fields(config: Any) -> Dict[str, dataclasses.Field]:
    return {f.name: f for f in dataclasses.fields(config) if not f.name.startswith("_")}


def _default(field: dataclasses.Field) -> str:
    value = field.default
    if value is dataclasses.MISSING or value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{value}`"


def flags(name: str, without: str = "") -> str:
    """The flags of a criterion or task that those named in ``without`` do not have."""
    others = [_config(other) for other in without.split()]
    known = {field for other in others for field in _fields(other)}
    lines = []
    for field in _fields(_config(name)).values():
        # Those of another part of fairseq's configuration are told there.
        if field.name in known or str(field.default).startswith("${"):
            continue
        text = field.metadata.get("help", "")
        choices = getattr(field.type, "_member_names_", None)
        if choices:
            shown = ", ".join(f"`{member.value}`" for member in field.type)  # type: ignore
            text = f"{text}: {shown}"
        lines.append([f"`--{field.name.replace('_', '-')}`", _default(field), text])
    if not lines:
        return "No flags of its own."
    return table(["flag", "default", "meaning"], lines)


def keys(name: str) -> str:
    """The fields of the dataclass MODULE:CLASS with the texts that stand below them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(_config(name))))
    body = tree.body[0].body  # type: ignore[attr-defined]
    lines = []
    for field, below in zip(body, [*body[1:], None]):
        if not isinstance(field, ast.AnnAssign):
            continue
        text = below.value if isinstance(below, ast.Expr) else None
        kind = ast.unparse(field.annotation)
        default = ast.unparse(field.value) if field.value else "MISSING"
        lines.append([f"`{ast.unparse(field.target)}`", _kind(kind), _initial(default),
                      ast.literal_eval(text) if text else ""])  # fmt: skip
    return table(["key", "what", "default", "meaning"], lines)


def arguments(name: str) -> str:
    """The same of a configuration of Python, whose fields have their names and no dashes."""
    lines = []
    for field in _fields(_config(name)).values():
        value = field.default
        if field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        lines.append([f"`{field.name}`", f"`{value!r}`", field.metadata.get("help", "")])
    return table(["argument", "default", "meaning"], lines)


_KINDS = {
    "str": "text", "int": "number", "bool": "true or false", "List[str]": "list of texts",
    "Dict[str, Any]": "mapping", "Any": "any", "Dict[str, List[str]]": "lists by name",
    "Dict[str, str]": "rows",
}  # fmt: skip


def _kind(annotation: str) -> str:
    plain = re.sub(r"^Optional\[(.*)\]$", r"\1", annotation)
    if plain in _KINDS:
        return _KINDS[plain]
    several = re.fullmatch(r"List\[(.*)\]", plain)
    named = re.fullmatch(r"Dict\[str, (.*)\]", plain)
    if several:
        return f"list of {_kind(several[1])}"
    return f"{_kind(named[1])} by name" if named else plain


def _initial(value: str) -> str:
    if value in ("MISSING", "None") or "field(" in value or value.startswith("_"):
        return "must be given" if value == "MISSING" else ""
    return f"`{value.split('.')[-1] if value[0].isupper() else value}`"


def doc(name: str) -> str:
    """The docstring of MODULE:OBJECT, or of a registered criterion."""
    if ":" in name:
        return inspect.getdoc(_config(name)) or ""
    from fairseq.criterions import CRITERION_REGISTRY

    return inspect.getdoc(CRITERION_REGISTRY[name]) or ""


def own_criterions() -> List[str]:
    """The names of the criterions of this package."""
    from fairseq.criterions import CRITERION_REGISTRY

    mine = [
        name
        for name, kind in CRITERION_REGISTRY.items()
        if kind.__module__.startswith("fairseq_eisl.")
    ]
    return sorted(mine, key=lambda name: (name != "eisl", name))


def noises() -> str:
    """The operators of ``--noise``, each with an example."""
    from fairseq_eisl.noise import parse_noise
    from fairseq_eisl.noise.operators import Context, example_rng
    from fairseq_eisl.noise.spec import KINDS

    words = "a man in a red hat reads a book".split()
    examples = {
        "shuffle": "shuffle:2", "repeat": "repeat:0.5", "blank": "blank:0.3", "drop": "drop:0.3",
        "substitute": "substitute:0.3", "insert": "insert:0.3", "synthetic": "synthetic:4",
        "synthetic_released": "synthetic_released:4",
    }  # fmt: skip
    context = Context(blank="&lt;unk&gt;", vocabulary=("dog", "two", "runs"))
    lines = []
    for name, kind in KINDS.items():
        noise = parse_noise(examples[name])
        made = " ".join(noise(list(words), example_rng(1, 0), context))
        lines.append([f"`{name}`", kind.argument, f"`{examples[name]}`", made])
    return table(["noise", "argument", "e.g.", f"makes of *{' '.join(words)}*"], lines)


def metrics() -> str:
    """The registered metrics and their columns."""
    from fairseq_eisl.evaluation.metrics.registry import registered

    lines = []
    for metric in registered():
        flags = ", ".join(f"`{flag.name}`" for flag in metric.flags) or "always"
        columns = ", ".join(f"`{column.name}`" for column in metric.columns)
        lines.append([metric.name, columns, flags])
    return table(["metric", "columns of the rows", "computed with"], lines)


MACROS = (flags, arguments, keys, doc, own_criterions, noises, metrics)
