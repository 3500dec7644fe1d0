"""Rows as an aligned table for the terminal, or as Markdown."""

from typing import List, Sequence

from .rows import Row, check_columns


def text_table(rows: Sequence[Row], names: Sequence[str], markdown: bool = False) -> str:
    """One line a row, with the columns ``names``; those of numbers stand to the right.

    Raises:
        ValueError: a column that no row has.

    >>> rows = [{"system": "CE", "bleu": "8.50"}, {"system": "EISL", "bleu": "32.10"}]
    >>> print(text_table(rows, ["system", "bleu"]))
    system   bleu
    CE       8.50
    EISL    32.10
    """
    check_columns(rows, names)
    body = [[_cell(row.get(name, ""), markdown) for name in names] for row in rows]
    right = [all(_is_number(line[i]) for line in body) for i in range(len(names))]
    header = [_cell(name, markdown) for name in names]
    widths = [max(len(line[i]) for line in [header, *body]) for i in range(len(names))]
    lines = [_aligned(line, widths, right) for line in [header, *body]]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    rule = [
        ("-" * (w - 1) + ":") if r else "-" * w for w, r in zip([max(w, 3) for w in widths], right)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def _cell(text: str, markdown: bool) -> str:
    text = " ".join(text.split())
    return text.replace("|", "\\|") if markdown else text


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> List[str]:
    return [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right)]
