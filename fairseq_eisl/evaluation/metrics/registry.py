"""The metrics that there are, and what each says of itself."""

import argparse
import functools
import importlib
import os
import pkgutil
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

SENTENCES = "sentences"
"""The column behind those of the metrics: how many sentences were scored."""


class Column(NamedTuple):
    """A column of the rows.

    heading: in the report, otherwise its name as words. after: the column behind which it is
    shown, otherwise that before it in the rows. in_table, in_report: is it shown there?
    of_reference: it is the same for all systems, and told once.
    """

    name: str
    heading: str = ""
    after: str = ""
    in_table: bool = True
    in_report: bool = True
    of_reference: bool = False


class Signature(NamedTuple):
    """The column that says how a score was computed; several metrics may share one.

    heading: of the signatures in the report, otherwise that of the metric's first column.
    """

    column: str
    heading: str = ""


class Flag(NamedTuple):
    """A flag of ``score``. in_run: what a recipe gives it, a file in the folder of the system's
    stage ``training`` or ``translation``; None where it gives nothing."""

    name: str
    metavar: str
    help: str
    default: Optional[str] = None
    in_run: Optional[Tuple[str, str]] = None

    def value(self, options: argparse.Namespace) -> Optional[str]:
        return getattr(options, self.name.lstrip("-").replace("-", "_"), self.default)


class Job(NamedTuple):
    """What is to be scored: one reference a sentence. options: the flags of ``score``."""

    hypotheses: Sequence[str]
    references: Sequence[str]
    options: argparse.Namespace


class Metric(NamedTuple):
    """compute: the texts of the columns and of the signature's, in the order of the rows.

    said: what ``score`` prints of it, with the columns in braces, otherwise the first column
    and its signature; empty for nothing. flags: it is computed where the first one is given,
    always where there is none. place: among the others, 10 for the first.
    """

    name: str
    columns: Tuple[Column, ...]
    compute: Callable[[Job], Mapping[str, str]]
    signature: Optional[Signature] = None
    said: Optional[str] = None
    flags: Tuple[Flag, ...] = ()
    place: int = 100

    def asked(self, options: argparse.Namespace) -> bool:
        """Are the scores of this one wanted?"""
        return not self.flags or bool(self.flags[0].value(options))

    def sentence(self, row: Mapping[str, str]) -> str:
        """What is printed of it."""
        if self.said is not None:
            return self.said.format(**row)
        first = self.columns[0].name
        how = f" ({row[self.signature.column]})" if self.signature else ""
        return f"{heading(first)} {row[first]}{how}"


_METRICS: Dict[str, Metric] = {}


def register(metric: Metric) -> Metric:
    """Add a metric; from outside, before a command runs.

    Raises:
        ValueError: it has no column, or there is one of its name or with one of its columns.
    """
    if not metric.columns:
        raise ValueError(f"{metric.name}: a metric needs a column")
    taken = {column.name: other.name for other in _METRICS.values() for column in other.columns}
    for column in metric.columns:
        if metric.name in _METRICS or column.name in taken:
            other = taken.get(column.name, metric.name)
            raise ValueError(f"{metric.name}: column {column.name} is that of metric {other}")
    _METRICS[metric.name] = metric
    return metric


def unregister(name: str) -> None:
    """Take a metric away again."""
    del _METRICS[name]


@functools.lru_cache(maxsize=None)
def _load() -> None:
    """Import the modules of this folder, which register themselves."""
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        importlib.import_module(f"{__package__}.{module.name}")


def registered() -> List[Metric]:
    """All metrics, in the order of the rows: those of this folder, and those from outside."""
    _load()
    return sorted(_METRICS.values(), key=lambda metric: metric.place)


def idle_flags(value: Callable[[Flag], Any]) -> Iterator[Tuple[Flag, Flag]]:
    """Flags that are given and read by no metric, each with the one that its metric needs.

    ``value``: of a flag, as it is given. What a recipe gives of its own accord is never idle.
    """
    metrics = [metric for metric in registered() if metric.flags]
    asked = [metric for metric in metrics if value(metric.flags[0])]
    read = {flag.name for metric in asked for flag in metric.flags}
    for metric in metrics:
        for flag in metric.flags[1:]:
            given = value(flag) and str(value(flag)) != flag.default
            if given and flag.in_run is None and flag.name not in read:
                yield flag, metric.flags[0]


def shown_columns(wanted: Callable[[Column], bool]) -> List[str]:
    """The columns of all metrics that are ``wanted``, and :data:`SENTENCES`, as they are shown."""
    every = [column for metric in registered() for column in metric.columns]
    order = [column.name for column in every if not column.after] + [SENTENCES]
    for column in every:
        if column.after:
            known = column.after in order
            at = order.index(column.after) + 1 if known else order.index(SENTENCES)
            order.insert(at, column.name)
    hidden = {column.name for column in every if not wanted(column)}
    return [name for name in order if name not in hidden]


def heading(name: str) -> str:
    """Of a column in the report, whichever it is.

    >>> heading("chrf"), heading("length_ratio"), heading("test_set")
    ('chrF', 'length ratio', 'test set')
    """
    found = {column.name: column for metric in registered() for column in metric.columns}
    own = found[name].heading if name in found else ""
    return own or name.replace("_", " ")


def signature_heading(name: str) -> str:
    """Of a column with signatures in the report, whichever it is.

    >>> signature_heading("bleu_signature"), signature_heading("words_signature")
    ('BLEU', 'words and lengths')
    """
    for metric in registered():
        if metric.signature and metric.signature.column == name:
            return metric.signature.heading or heading(metric.columns[0].name)
    return heading(name.removesuffix("_signature"))
