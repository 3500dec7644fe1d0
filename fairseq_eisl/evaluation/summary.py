"""Rows to one sentence that says how the systems compare."""

import math
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ..common.rows import Row, ways
from .intervals import interval
from .row_checks import bleu_kind, number
from .short_names import isolated, shown

BASELINE = "CE"
SETTINGS = (
    *("test_set", "noise", "arch", "model", "targets"),
    *("iterations", "length_candidates", "search"),
)


class Setting(NamedTuple):
    """Rows that may be compared. known: what tells them from others, as far as it is filled.

    bleu: mean over the seeds by system, the baseline first. seeds: how many each has.
    rows: those that count, by system.
    """

    known: Dict[str, str]
    bleu: Dict[str, float]
    seeds: Dict[str, int]
    rows: Dict[str, List[Row]]

    def ends(self, system: str) -> Tuple[float, float]:
        """The least BLEU of the seeds and the largest."""
        scores = [number(row, "bleu") for row in self.rows[system]]
        return min(scores), max(scores)


def _columns(rows: Sequence[Row]) -> List[str]:
    """:data:`SETTINGS`, and how rows were decoded where one system was in several ways. Of several
    systems each may have the way that trials chose for it."""
    return [*SETTINGS, *(name for name in ways(rows) if name not in SETTINGS)]


def varying(rows: Sequence[Row]) -> List[str]:
    """What tells settings from one another: the columns of it that have several values."""
    return [name for name in _columns(rows) if len({row.get(name, "") for row in rows}) > 1]


def settings(rows: Sequence[Row]) -> List[Setting]:
    """Rows by setting and kind of BLEU, in order of appearance.

    Of rows with the same setting, system and seed the last one counts. The baseline is CE,
    or the first system where there is none.

    Raises:
        ValueError: a BLEU that is no number.
    """
    found: Dict[Tuple[str, ...], Dict[str, Dict[str, Row]]] = {}
    columns = _columns(rows)
    for row in rows:
        kind = bleu_kind(row.get("bleu_signature", ""))
        key = (*(row.get(name, "") for name in columns), kind)
        seeds = found.setdefault(key, {}).setdefault(row["system"], {})
        number(row, "bleu")
        seeds[row.get("seed", "")] = row
    result = []
    for key, systems in found.items():
        order = sorted(systems, key=lambda name: name != BASELINE)
        kept = {name: list(systems[name].values()) for name in order}
        means = {
            name: sum(number(r, "bleu") for r in kept[name]) / len(kept[name]) for name in order
        }
        known = {name: value for name, value in zip(columns, key) if value}
        result.append(Setting(known, means, {name: len(kept[name]) for name in order}, kept))
    return result


def headline(rows: Sequence[Row]) -> str:
    """How the systems compare in BLEU, e.g. ``EISL 24.5 BLEU against CE 10.5.``

    Of several settings the widest difference is told, and how often which system leads.
    """
    compared = _compared(rows)
    if not compared:
        scores = [
            f"{_quoted(name)} {score:.1f} BLEU"
            + (f" ({_named(each, rows)})" if varying(rows) else "")
            for each in settings(rows)
            for name, score in each.bleu.items()
        ]
        return "; ".join(scores[:4]) + ("; and more below." if scores[4:] else ".")
    widest = max(compared, key=_margin)
    baseline, *others = widest.bleu
    ours = ", ".join(f"{_quoted(name)} {widest.bleu[name]:.1f}" for name in others)
    text = f"{ours} BLEU against {_quoted(baseline)} {widest.bleu[baseline]:.1f}"
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
    told = ", ".join(f"{_quoted(name)} in {count}" for name, count in leads.items())
    return (
        f"{text}, where they differ most ({_named(widest, rows)}). "
        f"Highest BLEU: {told} of {len(compared)} settings."
    )


def evidence(rows: Sequence[Row], tests: Sequence[Row] = (), size: int = 0) -> str:
    """What the scores of :func:`headline` rest on: intervals and p, or seeds; the test set.

    ``tests``: rows of ``significance``. ``size``: sentences of the test set, where the rows
    do not tell.
    """
    compared = _compared(rows)
    told = max(compared, key=_margin) if compared else settings(rows)[0]
    of = {name: kept[-1] for name, kept in told.rows.items()}
    parts = []
    if set(told.seeds.values()) == {1}:
        known = {name: interval(row, tests) for name, row in of.items()}
        sure = {name: each for name, each in known.items() if each}
        ends = [f"{_quoted(n)} {each.low:.1f} to {each.high:.1f}" for n, each in sure.items()]
        chances = [
            f"{_quoted(name)} against {_quoted(each.baseline)} p {each.p}"
            for name, each in sure.items()
            if each.p
        ]
        if ends:
            parts.append(f"95 % interval: {', '.join(ends)}")
        if chances:
            parts.append(f"{', '.join(chances)} (paired bootstrap over the test sentences)")
        if not ends and len(of) > 1:
            parts.append("whether the difference is chance was not tested")
    else:
        ends = ["{} {:.1f} to {:.1f}".format(_quoted(n), *told.ends(n)) for n in told.rows]
        parts.append(f"least to largest of the seeds: {', '.join(ends)}")
    first = next(iter(of.values()))
    sentences = first.get("sentences") or (str(size) if size else "")
    where = [_quoted(told.known["test_set"])] if told.known.get("test_set") else []
    where += [f"{sentences} sentences"] if sentences else []
    if where:
        parts.append(f"test set: {', '.join(where)}")
    others = [f"{n} {first[n]}" for n in ("noise", "model") if first.get(n)]
    seeds = {name: row.get("seed", "") for name, row in of.items()}
    if set(told.seeds.values()) == {1} and all(seeds.values()):
        one = len(set(seeds.values())) == 1
        of_each = ", ".join(f"{_quoted(name)} {seed}" for name, seed in seeds.items())
        others.append(f"seed {first['seed']}" if one else f"seeds: {of_each}")
    if others:
        parts.append(", ".join(others))
    return "".join(f"{part[:1].upper()}{part[1:]}. " for part in parts).rstrip()


def _compared(rows: Sequence[Row]) -> List[Setting]:
    """Settings with several systems, each with a BLEU."""
    return [each for each in settings(rows) if len(each.bleu) > 1 and _defined(each)]


def _quoted(name: str) -> str:
    return isolated(shown(name, 60))


def _defined(setting: Setting) -> bool:
    return all(map(math.isfinite, setting.bleu.values()))


def _margin(setting: Setting) -> float:
    baseline, *others = setting.bleu.values()
    return max(abs(score - baseline) for score in others)


def _named(setting: Setting, rows: Sequence[Row]) -> str:
    """What tells a setting from the others of the rows."""
    told = [f"{name.replace('_', ' ')} {setting.known.get(name, 'none')}" for name in varying(rows)]
    return ", ".join(told) or "another kind of BLEU"
