"""A grid of recipes: the cells run as submitit jobs, their rows become one table.

A sweep is a YAML file:

    recipe: ../multi30k/repeat50.yaml     # relative to the sweep's file
    name: multi30k_noise
    axes:                                 # every combination is a cell
      noise: [repeat:0.3, repeat:0.5]
      seed: [1, 2]
    overrides: [device=cpu]               # of every cell

An axis is a key of the recipe and its values, or a name and settings that belong together:

      loss:
        eisl: []
        eisl_sharp: [train.eisl.flags.gumbel-temperature=0.3]
"""

import csv
import io
import itertools
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .cell_names import cell_names
from .progress import duration, say
from .runner import as_text, write_whole
from .schema import ROOT, RecipeError, load, parse, read_config
from .yaml_text import read_yaml


@dataclass
class Sweep:
    name: str = MISSING
    recipe: str = MISSING
    axes: Dict[str, Any] = field(default_factory=dict)
    overrides: List[str] = field(default_factory=list)
    published: Optional[str] = None
    """A CSV file (noise, system, bleu) of the paper's numbers, relative to the sweep's file."""
    column: Optional[str] = None
    """A column of the rows to draw BLEU against, e.g. pairs."""


class Cell(NamedTuple):
    """name: the values of its axes; overrides: what they mean."""

    name: str
    overrides: List[str]


class Options(NamedTuple):
    """How cells run: submitit's cluster and parameters, jobs at once, further attempts."""

    cluster: str
    jobs: int
    retries: int
    parameters: Dict[str, Any]


def load_sweep(path: str, axes: Sequence[str] = ()) -> DictConfig:
    """A checked sweep; ``recipe`` becomes a path. Raises RecipeError, one line.

    ``axes`` (KEY=VALUE,...) come instead of or beside the file's. With them the file may also be
    a recipe, whose sweep is called NAME_sweep.
    """
    if not os.path.isfile(path):
        raise RecipeError(f"{path}: there is no such file")
    given = dict(map(_axis, axes))
    if axes and not _is_sweep(path):
        recipe = os.path.abspath(path)
        content: Any = {"name": f"{load(path).name}_sweep", "recipe": recipe}
        merged = OmegaConf.merge(OmegaConf.structured(Sweep), content)
        assert isinstance(merged, DictConfig)
        sweep = merged
    else:
        sweep = parse(
            path, lambda: OmegaConf.merge(OmegaConf.structured(Sweep), read_config(path, Sweep))
        )
    for key, values in given.items():
        sweep.axes.pop(key, None)
        sweep.axes[key] = values
    missing = sorted(OmegaConf.missing_keys(sweep))
    if missing:
        raise RecipeError(f"{path}: {', '.join(missing)} must be given")
    if not sweep.axes:
        raise RecipeError(f"{path}: axes: at least one is needed, e.g. noise: [repeat:0.3]")
    for name, values in sweep.axes.items():
        if not (OmegaConf.is_list(values) or OmegaConf.is_dict(values)) or not len(values):
            raise RecipeError(f"{path}: axes.{name}: a list of values is needed, or a mapping of "
                              "names to overrides")  # fmt: skip
        texts = [str(value) for value in values]
        twice = sorted({text for text in texts if texts.count(text) > 1})
        if twice:
            raise RecipeError(f"{path}: axes.{name}: {twice[0]} is given twice")
    for key in ("recipe", "published"):
        if sweep[key] is not None:
            sweep[key] = os.path.join(os.path.dirname(path), sweep[key])
            if not os.path.isfile(sweep[key]):
                raise RecipeError(f"{path}: {key}: {sweep[key]}: there is no such file")
    return sweep


def cells(sweep: DictConfig) -> List[Cell]:
    """Every combination of the axes' values, the last axis fastest."""
    axes = []
    for axis, values in sweep.axes.items():
        if OmegaConf.is_list(values):
            axes.append([(f"{axis}={value}", [f"{axis}={value}"]) for value in values])
        else:
            axes.append([(f"{axis}={name}", list(settings)) for name, settings in values.items()])
    combinations = list(itertools.product(*axes))
    names = cell_names([[part for part, _ in combination] for combination in combinations])
    found = []
    for name, combination in zip(names, combinations):
        settings = [setting for _, settings in combination for setting in settings]
        found.append(Cell(name, [*sweep.overrides, *settings]))
    return found


def _axis(text: str) -> Tuple[str, List[str]]:
    """--axis: a key and its values; a comma within brackets, braces or quotes parts nothing."""
    key, _, rest = text.partition("=")
    pieces = re.findall(r"""(?:\[[^\]]*\]|\{[^}]*\}|"[^"]*"|'[^']*'|[^,])+""", rest)
    if not key or not pieces or len(pieces) != len([p for p in pieces if p.strip()]):
        raise RecipeError(
            f"--axis {text}: KEY=VALUE,... is needed, e.g. noise=repeat:0.3,repeat:0.5"
        )
    return key, [piece.strip() for piece in pieces]


def _is_sweep(path: str) -> bool:
    """Whether a file has the keys of a sweep, not of a recipe."""
    content = read_yaml(path)
    return isinstance(content, dict) and ("axes" in content or "recipe" in content)


def command_of(sweep: DictConfig, cell: Cell, runs: str) -> List[str]:
    """The command that runs a cell."""
    command = [sys.executable, "-m", "fairseq_eisl.recipes", "run", sweep.recipe]
    command += [*cell.overrides, "--runs", os.path.abspath(runs)]
    return [*command, "--out", os.path.join(folder_of(sweep, runs), cell.name)]


def run_cells(sweep: DictConfig, todo: List[Cell], runs: str, options: Options) -> Dict[str, str]:
    """Run cells as jobs; the reason for each that failed in the end, by name."""
    try:
        import submitit
    except ImportError:
        raise RecipeError("sweep needs submitit: pip install 'fairseq-eisl[sweep]'") from None
    folder = folder_of(sweep, runs)
    executor = submitit.AutoExecutor(os.path.join(folder, "jobs"), cluster=options.cluster)
    try:
        executor.update_parameters(**options.parameters)
    except (NameError, TypeError, ValueError) as err:
        raise RecipeError(f"--parameters: {err}") from None
    attempts: Dict[str, int] = {}
    active: List[Tuple[Cell, Any]] = []
    failed: Dict[str, str] = {}
    waiting, done, started = list(todo), 0, time.time()
    try:
        while waiting or active:
            while waiting and len(active) < options.jobs:
                cell = waiting.pop(0)
                attempts[cell.name] = attempts.get(cell.name, 0) + 1
                # The job's own environment, which SLURM makes, and where this package lies.
                command = ["env", f"PYTHONPATH={_environment()['PYTHONPATH']}"]
                command += command_of(sweep, cell, runs)
                function = submitit.helpers.CommandFunction(command, verbose=False)
                job = executor.submit(function)
                active.append((cell, job))
                say(f"{cell.name}: started (log: {job.paths.stderr})")
            for cell, job in [pair for pair in active if pair[1].done()]:
                active.remove((cell, job))
                reason = None if job.exception() is None else _reason(job)
                if reason is not None and attempts[cell.name] <= options.retries:
                    say(f"{cell.name}: failed ({reason}), once more")
                    waiting.append(cell)
                    continue
                done += 1
                if reason is not None:
                    failed[cell.name] = reason
                outcome = "done" if reason is None else f"FAILED: {reason}"
                left = (time.time() - started) / done * (len(todo) - done)
                row = {r["cell"]: r for r in gather(sweep, runs)}.get(cell.name, {})
                bleu = [f"{key} {value}" for key, value in row.items() if key != "cell"]
                parts = [outcome, *bleu, *([f"about {duration(left)} left"] if left else [])]
                say(f"[{done}/{len(todo)}] {cell.name}: {', '.join(parts)}")
            time.sleep(0.5)
    except BaseException:  # Ctrl-C: what runs is stopped, and goes on the next time
        for _, job in active:
            job.cancel()
        raise
    return failed


def _environment() -> Dict[str, str]:
    """This process's, in which the package is found."""
    path = ROOT + os.pathsep + os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def _reason(job) -> str:
    """The recipe's own line of a failed job, else the job's last one."""
    for text in (job.stderr() or "", job.stdout() or "", str(job.exception())):
        lines = [line for line in text.splitlines() if line.startswith("recipes: ")]
        if lines:
            return lines[-1][len("recipes: ") :]
    return (str(job.exception()).strip().splitlines() or ["no message"])[-1][:300]


def folder_of(sweep: DictConfig, runs: str) -> str:
    return os.path.join(os.path.abspath(runs), sweep.name)


def is_done(sweep: DictConfig, cell: Cell, runs: str) -> bool:
    """Whether a cell has rows, and of its present settings."""
    folder = os.path.join(folder_of(sweep, runs), cell.name)
    try:
        with open(os.path.join(folder, "recipe.yaml"), encoding="utf-8") as f:
            made_by = f.read()
    except FileNotFoundError:
        return False
    return made_by == as_text(load(sweep.recipe, cell.overrides))


def gather(sweep: DictConfig, runs: str) -> List[Dict[str, str]]:
    """What the cells that are done have brought, a row a cell: its BLEU by system.

    Written as cells.csv; all rows of these cells, with the cell's name, as rows.csv.
    """
    folder = folder_of(sweep, runs)
    rows: List[Dict[str, str]] = []
    table: List[Dict[str, str]] = []
    for cell in cells(sweep):
        if is_done(sweep, cell, runs):
            path = os.path.join(folder, cell.name, "rows.csv")
            with open(path, encoding="utf-8", newline="") as f:
                found = list(csv.DictReader(f))
            rows += [{"cell": cell.name, **row} for row in found]
            table.append({"cell": cell.name, **{r["system"] + " BLEU": r["bleu"] for r in found}})
    for name, content in (("rows.csv", rows), ("cells.csv", table)):
        if content:
            names = list(dict.fromkeys(key for row in content for key in row))
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(content)
            write_whole(os.path.join(folder, name), text.getvalue())
    return table


def draw(sweep: DictConfig, runs: str) -> List[str]:
    """Draw what the cells that are done have brought; the files that came of it.

    report.html shows all of them; noise.png BLEU against the noise, where there are several;
    COLUMN.png against the sweep's ``column``.
    """
    folder = folder_of(sweep, runs)
    done = [cell for cell in cells(sweep) if is_done(sweep, cell, runs)]
    evaluate = [sys.executable, "-m", "fairseq_eisl.evaluation"]
    commands = {"report.html": [*evaluate, "report", "--title", sweep.name, "--run"]}
    commands["report.html"] += [os.path.join(folder, cell.name) for cell in done]
    if len({load(sweep.recipe, cell.overrides).noise for cell in done}) > 1:
        rows = os.path.join(folder, "rows.csv")
        commands["noise.png"] = [*evaluate, "plot", "--kind", "noise", "--rows", rows]
        if sweep.published is not None:
            commands["noise.png"] += ["--published", sweep.published]
    if sweep.published is not None and _has_sources(sweep.published):
        commands["report.html"] += ["--published", sweep.published]
    if sweep.column is not None:
        rows = os.path.join(folder, "rows.csv")
        command = [*evaluate, "plot", "--kind", "column", "--column", sweep.column]
        commands[f"{sweep.column}.png"] = [*command, "--rows", rows]
    tests = [os.path.join(folder, cell.name, "significance.csv") for cell in done]
    tests = [path for path in tests if os.path.exists(path)]
    for name in commands:
        if tests and name != "report.html":  # the page finds them in the folders
            commands[name] += ["--tests", *tests]
    drawn = []
    for name, command in commands.items():
        path = os.path.join(folder, name)
        ended = subprocess.run(
            [*command, "--out", path],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        if ended.returncode:
            say(f"{name}: not drawn: {(ended.stderr.strip().splitlines() or [''])[-1]}")
        else:
            drawn.append(path)
    return drawn


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


def executor_parameters(texts: List[str]) -> Dict[str, Any]:
    """``key=value`` words for submitit's executor, numbers as numbers."""
    try:
        given = OmegaConf.to_container(OmegaConf.from_dotlist(texts))
    except OmegaConfBaseException as err:
        raise RecipeError(f"--parameters {' '.join(texts)}: {err}") from None
    return {"timeout_min": 7 * 24 * 60, **given}  # type: ignore[dict-item]
