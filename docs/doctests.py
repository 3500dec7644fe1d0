"""Docstrings as Markdown: doctests become code, roles such as :func: the names that they hold."""

import re

import griffe


def as_markdown(text: str) -> str:
    """A docstring whose blocks of ``>>>`` lines are fenced."""
    text = re.sub(r":(?:func|class|mod|meth|data):`~?\.?([^`]+)`", r"`\1`", text)
    lines, open_block = [], False
    for line in text.split("\n"):
        begins = line.lstrip().startswith(">>> ")
        if begins and not open_block:
            lines.append(line[: len(line) - len(line.lstrip())] + "```python")
            open_block = True
        if open_block and not line.strip():
            lines.append("```")
            open_block = False
        lines.append(line)
    return "\n".join([*lines, "```"] if open_block else lines)


class Doctests(griffe.Extension):
    """Called by mkdocstrings."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
