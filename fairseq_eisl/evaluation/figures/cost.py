"""Time of an epoch by loss: the paper's comparison of costs, from rows of the step benchmark."""

import re
import textwrap
from typing import List, NamedTuple, Optional, Sequence, Tuple

from ...common.rows import Row, check_columns
from ..row_checks import number, only
from ..short_names import glossary, shown
from .canvas import (
    COLOURS,
    LONGEST_TICK,
    WIDTH,
    canvas,
    check_extension,
    error_bar,
    write_title,
)

_NEEDED = ("kind", "system", "step_ms", "epoch_s")
_ENDS = ("step_ms_q20", "step_ms_q80")
_SAME = ("kind", "batch", "length", "vocabulary", "dtype", "cpu", "threads")
_KINDS = {
    "ar": "an autoregressive Transformer",
    "nat": "a non-autoregressive Transformer (CMLM)",
    "exact": "the exact value of EISL",
}
_WORDS = {
    "released": "the way of the authors' code, which decodes every prefix anew",
    "target": "the target as candidate, so that nothing is decoded",
    "parallel": "decoded in parallel",
    "shared encoder": "decoded from the encoder's output of the training forward",
    "blocks": "logits made in blocks",
    "nat_loss": "fairseq's criterion for non-autoregressive models",
}
_ORDERS = re.compile(r"(?<= )[1-9]+(?=,|$)")
_UNITS = {
    "batch": "sentences a batch",
    "length": "tokens a sentence",
    "vocabulary": "words in the vocabulary",
    "threads": "threads",
}


class Costs(NamedTuple):
    """Systems in the order of their rows, with seconds an epoch and ratios to the first.

    spread: the 20 % and 80 % quantiles of the seconds over the repeats, None where unknown.
    """

    systems: List[str]
    seconds: List[float]
    ratios: List[float]
    title: str
    spread: List[Optional[Tuple[float, float]]]


def step_costs(rows: Sequence[Row]) -> Costs:
    """Collect rows of ``scripts/benchmarks/steps.py``; of those with one system the last counts.

    Raises:
        ValueError: a column is missing, a time is no number above 0, or rows of different
            kinds, sizes or machines, whose times are not to be compared.
    """
    if not rows:
        raise ValueError("no rows to draw")
    check_columns(rows, _NEEDED)
    for name in _SAME:
        only(name, [row.get(name, "") for row in rows])
    last = {row["system"]: row for row in rows}
    seconds, steps = (
        [number(row, name) for row in last.values()] for name in ("epoch_s", "step_ms")
    )
    if not all(value > 0 for value in (*seconds, *steps)):
        raise ValueError("step_ms and epoch_s must be above 0")
    first = next(iter(last.values()))
    sizes = [f"{first[name]} {unit}" for name, unit in _UNITS.items() if first.get(name)]
    title = ", ".join(filter(None, [first["kind"], *sizes, first.get("dtype"), first.get("cpu")]))
    ratios = [step / steps[0] for step in steps]
    spread: List[Optional[Tuple[float, float]]] = []
    for row, step, epoch in zip(last.values(), steps, seconds):
        ends = [number(row, name) / step * epoch for name in _ENDS if row.get(name)]
        spread.append((ends[0], ends[1]) if len(ends) == len(_ENDS) else None)
    return Costs(list(last), seconds, ratios, title, spread)


def draw_costs(data: Costs, path: str) -> None:
    """One bar a system, with its seconds and its ratio to the first.

    Raises:
        ValueError: a wrong extension.
    """
    check_extension(path)
    note = _note(data)
    with canvas(path, (WIDTH, 1.4 + 0.35 * len(data.systems) + 0.14 * len(note))) as figure:
        axis = figure.subplots()
        colours = [COLOURS[0 if i == 0 else 1] for i in range(len(data.systems))]
        places = range(len(data.systems))
        axis.barh(places, data.seconds, color=colours, edgecolor="black", linewidth=0.6)
        axis.set_yticks(places, [shown(name, LONGEST_TICK) for name in data.systems])
        axis.invert_yaxis()
        ends = [span or (mean, mean) for span, mean in zip(data.spread, data.seconds)]
        for place, mean, (low, high) in zip(places, data.seconds, ends):
            error_bar(axis, place, mean, low, high, flat=True)
        axis.set_xlim(0, 1.25 * max(*data.seconds, *(high for _, high in ends)))
        axis.set_xlabel("time of an epoch (seconds)")
        for place, seconds, ratio, (_, high) in zip(places, data.seconds, data.ratios, ends):
            axis.annotate(
                f"{seconds:,.0f} s, {ratio:.2f} x",
                (max(seconds, high), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        write_title(figure, data.title)
        figure.supxlabel("\n".join(note), fontsize=8, x=0.01, ha="left", multialignment="left")


def _note(data: Costs) -> List[str]:
    """What the names of the benchmark's steps mean; x is the ratio to the first."""
    kind = data.title.split(", ")[0]
    told = [f"x: times the time of {shown(data.systems[0], LONGEST_TICK)}"]
    told += ["error bar: 20 % to 80 % of the repeats"] if any(data.spread) else []
    told += [f"{kind}: a training step of {_KINDS[kind]}"] if kind in _KINDS else []
    told += filter(None, [glossary(data.systems)])
    orders = next((m for name in data.systems for m in _ORDERS.findall(name) if len(m) > 1), "")
    if orders:
        told.append(f"{orders}: n-grams of {', '.join(orders[:-1])} and {orders[-1]} words")
    said = " ".join(data.systems)
    told += [f"{word}: {text}" for word, text in _WORDS.items() if re.search(rf"\b{word}\b", said)]
    return textwrap.wrap("; ".join(told), 125)
