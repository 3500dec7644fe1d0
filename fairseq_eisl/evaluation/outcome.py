"""Rows to one sentence that says how the systems compare."""

import math
from typing import Dict, List, NamedTuple, Sequence, Tuple

from .comparison import bleu_kind, number
from .rows import Row

BASELINE = "CE"
SETTINGS = ("test_set", "noise", "arch", "model", "targets", "iterations", "length_candidates")


class Setting(NamedTuple):
    """Rows that may be compared. known: the columns of :data:`SETTINGS` that are filled.

    bleu: mean over the seeds by system, the baseline first. seeds: how many each has.
    """

    known: Dict[str, str]
    bleu: Dict[str, float]
    seeds: Dict[str, int]


def varying(rows: Sequence[Row]) -> List[str]:
    """The columns of :data:`SETTINGS` that have several values."""
    return [name for name in SETTINGS if len({row.get(name, "") for row in rows}) > 1]


def settings(rows: Sequence[Row]) -> List[Setting]:
    """Rows by setting and kind of BLEU, in order of appearance.

    Of rows with the same setting, system and seed the last one counts. The baseline is CE,
    or the first system where there is none.

    :raises ValueError: a BLEU that is no number.
    """
    found: Dict[Tuple[str, ...], Dict[str, Dict[str, float]]] = {}
    for row in rows:
        kind = bleu_kind(row.get("bleu_signature", ""))
        key = (*(row.get(name, "") for name in SETTINGS), kind)
        seeds = found.setdefault(key, {}).setdefault(row["system"], {})
        seeds[row.get("seed", "")] = number(row, "bleu")
    result = []
    for key, systems in found.items():
        order = sorted(systems, key=lambda name: name != BASELINE)
        means = {name: sum(systems[name].values()) / len(systems[name]) for name in order}
        known = {name: value for name, value in zip(SETTINGS, key) if value}
        result.append(Setting(known, means, {name: len(systems[name]) for name in order}))
    return result


def sentence(rows: Sequence[Row]) -> str:
    """How the systems compare in BLEU, e.g. ``EISL 24.5 BLEU against CE 10.5.``

    Of several settings the widest difference is told, and how often which system leads.
    """
    compared = [each for each in settings(rows) if len(each.bleu) > 1 and _defined(each)]
    if not compared:
        scores = [
            f"{name} {score:.1f} BLEU" + (f" ({_named(each, rows)})" if varying(rows) else "")
            for each in settings(rows)
            for name, score in each.bleu.items()
        ]
        return "; ".join(scores[:4]) + ("; and more below." if scores[4:] else ".")
    widest = max(compared, key=_margin)
    baseline, *others = widest.bleu
    ours = ", ".join(f"{name} {widest.bleu[name]:.1f}" for name in others)
    text = f"{ours} BLEU against {baseline} {widest.bleu[baseline]:.1f}"
    if set(widest.seeds.values()) != {1}:
        counts = sorted(set(widest.seeds.values()))
        text += f" (mean of {' or '.join(map(str, counts))} seeds)"
    if len(compared) == 1:
        return f"{text}."
    leads: Dict[str, int] = {}
    for each in compared:
        best = max(each.bleu.values())
        first, *equals = [name for name, score in each.bleu.items() if score == best]
        leader = "equal" if equals else first
        leads[leader] = leads.get(leader, 0) + 1
    told = ", ".join(f"{name} in {count}" for name, count in leads.items())
    return (
        f"{text}, where they differ most ({_named(widest, rows)}). "
        f"Highest BLEU: {told} of {len(compared)} settings."
    )


def _defined(setting: Setting) -> bool:
    return all(map(math.isfinite, setting.bleu.values()))


def _margin(setting: Setting) -> float:
    baseline, *others = setting.bleu.values()
    return max(abs(score - baseline) for score in others)


def _named(setting: Setting, rows: Sequence[Row]) -> str:
    """What tells a setting from the others of the rows."""
    told = [f"{name.replace('_', ' ')} {setting.known.get(name, 'none')}" for name in varying(rows)]
    return ", ".join(told) or "another kind of BLEU"
