"""The table of several runs: what each has brought, and the means over their seeds."""

from typing import List, Sequence

from ...common.rows import Row
from ..intervals import interval
from ..readers.run_folder import Run
from ..summary import Setting, settings, varying
from .parts import table
from .rendering import part


def summary(runs: Sequence[Run]) -> str:
    """A line a run (where it has several settings, a line each), linked to what the page tells
    of it; then a line a setting with means, where there are several seeds."""
    rows = [row for run in runs for row in run.rows]
    told = varying(rows)
    several = len({row.get("seed", "") for row in rows}) > 1
    systems = sorted(dict.fromkeys(row["system"] for row in rows), key=_order(rows))
    tested = any(run.tests for run in runs)
    head = ["run", *(name.replace("_", " ") for name in told), *(["seed"] if several else [])]
    for system in systems:
        head += [f"{system}, BLEU", *([f"{system}, 95 % interval"] if tested else [])]
    head += ["p"] if tested else []
    body = []
    for i, run in enumerate(runs, 1):
        for setting in settings(run.rows):
            line = [
                part("link", f"run-{i}", run.title),
                *(setting.known.get(name, "") for name in told),
            ]
            if several:
                line.append(_seeds(setting))
            line += _scores(setting, systems, run.tests if tested else None)
            body.append(line)
    means = [setting for setting in settings(rows) if max(setting.seeds.values()) > 1]
    shown = means and several and not _hidden(runs)
    of_seeds = _means(means, told, systems) if shown else ""
    return part("summary", table(head, body, "summary"), of_seeds)


def _order(rows: Sequence[Row]):
    """The baseline before the others, which stay as they are."""
    first = next(iter(settings(rows)[0].bleu))
    return lambda name: name != first


def _seeds(setting: Setting) -> str:
    return ", ".join(
        dict.fromkeys(row.get("seed", "") for kept in setting.rows.values() for row in kept)
    )


def _scores(setting: Setting, systems: Sequence[str], tests) -> List[str]:
    """The cells of a line; ``tests`` is None where no run of the table has any."""
    cells, chances = [], []
    for system in systems:
        mean = setting.bleu.get(system)
        cells.append("" if mean is None else f"{mean:.2f}")
        if tests is None:
            continue
        alone = setting.rows.get(system, [])
        known = interval(alone[0], tests) if len(alone) == 1 else None
        cells.append(f"{known.low:.2f} to {known.high:.2f}" if known else "")
        if known and known.p:
            chances.append(f"{system} {known.p}" if len(systems) > 2 else known.p)
    return cells if tests is None else [*cells, ", ".join(chances)]


def _hidden(runs: Sequence[Run]) -> bool:
    """Have two runs rows of the same setting, system and seed? Their mean would drop one."""
    found = [
        (tuple(setting.known.items()), row["system"], row.get("seed", ""))
        for run in runs
        for setting in settings(run.rows)
        for kept in setting.rows.values()
        for row in kept
    ]
    return len(set(found)) < len(found)


def _means(means: Sequence[Setting], told: Sequence[str], systems: Sequence[str]) -> str:
    head = [name.replace("_", " ") for name in told] + ["seeds"]
    for system in systems:
        head += [f"{system}, mean BLEU", f"{system}, least to largest"]
    body = []
    for setting in means:
        line = [*(setting.known.get(name, "") for name in told), _seeds(setting)]
        for system in systems:
            if system in setting.bleu:
                line += [
                    f"{setting.bleu[system]:.2f}",
                    "{:.2f} to {:.2f}".format(*setting.ends(system)),
                ]
            else:
                line += ["", ""]
        body.append(line)
    return table(head, body, "summary")
