"""Writes the README's tables of results anew from the rows: python docs/macros/update_readme.py"""

import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from macros.results import pivot, seeds  # noqa: E402

README = Path(__file__).resolve().parents[2] / "README.md"


def with_results(text: str) -> str:
    """The README's text with the tables of today's rows."""
    columns = "noise system seeds bleu sd recovery"
    one_pass = pivot(
        *("nat_onepass.csv", "arch", "system", "bleu repetition"),
        **{"digits": 2, "iterations": "0", "length_candidates": "1", "search": ""},
    )
    tables = {
        "results": seeds("multi30k_noise_small.csv", "CE, clean targets", columns),
        "one pass": one_pass,
    }
    for name, table in tables.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, places = marked.subn(lambda at, table=table: f"{at[1]}{table}\n{at[2]}", text)
        if places != 1:
            raise ValueError(f"README.md: {places} places for the table '{name}', not one")
    return text


if __name__ == "__main__":
    README.write_text(with_results(README.read_text(encoding="utf-8")), encoding="utf-8")
