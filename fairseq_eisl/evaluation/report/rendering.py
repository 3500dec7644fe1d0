"""The templates of the page. A text that comes into them is escaped, HTML of theirs is not."""

import functools
import os
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")


@functools.lru_cache(maxsize=None)
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, **values: Any) -> Markup:
    """A whole template."""
    return Markup(_environment().get_template(name).render(**values))


def part(name: str, *values: Any) -> Markup:
    """A macro of ``parts.html``."""
    return getattr(_environment().get_template("parts.html").module, name)(*values)


@functools.lru_cache(maxsize=None)
def style() -> Markup:
    """The style sheet."""
    with open(os.path.join(_FOLDER, "page.css"), encoding="utf-8") as f:
        return Markup(f.read())


def as_html(text: str) -> Markup:
    """What is HTML already."""
    return Markup(text)
