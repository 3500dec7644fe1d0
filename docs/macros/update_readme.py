"""Writes the README's table of results anew from the rows: python docs/macros/update_readme.py"""

import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from macros.results import seeds  # noqa: E402

README = Path(__file__).resolve().parents[2] / "README.md"
MARKED = re.compile(r"(<!-- results -->\n).*?(<!-- /results -->)", re.DOTALL)


def with_results(text: str) -> str:
    """The README's text with the table of today's rows."""
    table = seeds(
        *("multi30k_noise_small.csv", "CE, clean targets", "noise system seeds bleu sd recovery")
    )
    return MARKED.sub(lambda found: found[1] + table + "\n" + found[2], text)


if __name__ == "__main__":
    README.write_text(with_results(README.read_text(encoding="utf-8")), encoding="utf-8")
