"""What the cells of a sweep have brought: one table, pictures and a page."""

import csv
import io
import os
import re
import subprocess
import sys
from typing import Dict, List, Tuple

from omegaconf import DictConfig

from ..common.rows import ways
from ..common.run_files import ROWS, TESTS
from .processes import captured
from .progress import say
from .run_folder import write_whole
from .schema import load
from .sweep import cells, environment, folder_of, is_done


def gather(sweep: DictConfig, runs: str) -> List[Dict[str, str]]:
    """What the cells that are done have brought, a row a cell: its BLEU by system.

    Written as cells.csv; all rows of these cells, with the cell's name, as rows.csv.
    """
    folder = folder_of(sweep, runs)
    rows: List[Dict[str, str]] = []
    table: List[Dict[str, str]] = []
    for cell in cells(sweep):
        if is_done(sweep, cell, runs):
            path = os.path.join(folder, cell.name, ROWS)
            with open(path, encoding="utf-8", newline="") as f:
                found = list(csv.DictReader(f))
            rows += [{"cell": cell.name, **row} for row in found]
            several = ways(found)
            scores = {_title(row, several): row["bleu"] for row in found}
            table.append({"cell": cell.name, **scores})
    for name, content in ((ROWS, rows), ("cells.csv", table)):
        if content:
            names = list(dict.fromkeys(key for row in content for key in row))
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(content)
            write_whole(os.path.join(folder, name), text.getvalue())
    return table


def _title(row: Dict[str, str], several: List[str]) -> str:
    """Of a row's BLEU among those of its cell, in which a system may translate in several ways."""
    told = [f"{name.replace('_', ' ')} {row[name]}" for name in several if row.get(name)]
    return f"{row['system']} BLEU" + (f" ({', '.join(told)})" if told else "")


def by_way(table: List[Dict[str, str]]) -> List[Dict[str, str]]:
    """The cells with a row for each way to decode, of which there may be too many for one line.

    >>> by_way([{"cell": "seed=1", "CE BLEU (beam 1)": "10", "CE BLEU (beam 5)": "11"}])
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'cell': 'seed=1', 'decoding': 'beam 1', 'CE BLEU': '10'},
     {'cell': 'seed=1', 'decoding': 'beam 5', 'CE BLEU': '11'}]
    """
    found: Dict[Tuple[str, str], Dict[str, str]] = {}
    for row in table:
        for title, bleu in row.items():
            match = re.fullmatch(r"(.* BLEU)(?: \((.*)\))?", title)
            if match:
                way = {"decoding": match[2]} if match[2] else {}
                line = found.setdefault((row["cell"], match[2] or ""), {"cell": row["cell"], **way})
                line[match[1]] = bleu
    return list(found.values())


def draw(sweep: DictConfig, runs: str) -> List[str]:
    """Draw what the cells that are done have brought; the files that came of it.

    report.html shows all of them; noise.png BLEU against the noise, where there are several;
    COLUMN.png against the sweep's ``column``.
    """
    drawn = []
    for name, command in _commands(sweep, runs).items():
        path = os.path.join(folder_of(sweep, runs), name)
        ended = captured(
            [*command, "--out", path],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        if ended.returncode:
            say(f"{name}: not drawn: {(ended.stderr.strip().splitlines() or [''])[-1]}")
        else:
            drawn.append(path)
    return drawn


def _commands(sweep: DictConfig, runs: str) -> Dict[str, List[str]]:
    """The command that draws each file."""
    folder = folder_of(sweep, runs)
    done = [cell for cell in cells(sweep) if is_done(sweep, cell, runs)]
    evaluate = [sys.executable, "-m", "fairseq_eisl.evaluation"]
    rows = ["--rows", os.path.join(folder, ROWS)]
    commands = {"report.html": [*evaluate, "report", "--title", sweep.name, "--run"]}
    commands["report.html"] += [os.path.join(folder, cell.name) for cell in done]
    if len({load(sweep.recipe, cell.overrides).noise for cell in done}) > 1:
        commands["noise.png"] = [*evaluate, "plot", "--kind", "noise", *rows]
        if sweep.published is not None:
            commands["noise.png"] += ["--published", sweep.published]
    if sweep.published is not None and _has_sources(sweep.published):
        commands["report.html"] += ["--published", sweep.published]
    if sweep.column is not None:
        command = [*evaluate, "plot", "--kind", "column", "--column", sweep.column]
        commands[f"{sweep.column}.png"] = [*command, *rows]
    tests = [os.path.join(folder, cell.name, TESTS) for cell in done]
    tests = [path for path in tests if os.path.exists(path)]
    for name in commands:
        if tests and name != "report.html":  # the page finds them in the folders
            commands[name] += ["--tests", *tests]
    return commands


def _has_sources(published: str) -> bool:
    """Whether a paper's numbers say what they are and where they come from, as the page wants."""
    with open(published, encoding="utf-8", newline="") as f:
        return {"setting", "source"} <= set(next(csv.reader(f), []))


def as_table(table: List[Dict[str, str]]) -> str:
    """Rows in columns, for people."""
    names = list(dict.fromkeys(key for row in table for key in row))
    lines = [names, *([row.get(name, "") for name in names] for row in table)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in lines
    )
