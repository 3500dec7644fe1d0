"""Blocks that stand in the README and on a page: written once, there."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def from_readme(start: str) -> str:
    """The block of code whose first words are these."""
    text = README.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w+\n.*?^```$", text, re.DOTALL | re.MULTILINE)
    (found,) = [block for block in blocks if block.split("\n", 1)[1].startswith(start)]
    return found


MACROS = (from_readme,)
