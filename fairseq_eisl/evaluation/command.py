"""``python -m fairseq_eisl.evaluation``: score, table, plot, curve, examples."""

import argparse
import contextlib
import math
import os
import sys
from typing import Dict, Iterator, List, NoReturn, Optional, Sequence, Tuple

from .files import read_lines
from .generation_log import HINT, read_generation_log
from .leftovers import check_pieces
from .rows import append_row, read_rows, select

# The other modules are imported where they are used: `table` needs no sacrebleu.
PROGRAM = "python -m fairseq_eisl.evaluation"
TOKENIZERS = ("none", "13a", "intl", "zh", "char")


class _Refused(Exception):
    """One line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


@contextlib.contextmanager
def _flag(flag: str, value: str = "") -> Iterator[None]:
    """Turn what goes wrong in the block into one line that names flag and value."""
    try:
        yield
    except OSError as err:
        reason = f"{value or err.filename}: {err.strerror or err}"
        raise _Refused(f"{flag} {reason}") from err
    except ValueError as err:
        reason = str(err)
        if value and value not in reason:
            reason = f"{value}: {reason}"
        raise _Refused(f"{flag} {reason}") from err


def _pairs(flag: str, texts: Sequence[str]) -> Dict[str, str]:
    pairs: Dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not (equals and key and value.strip()):
            raise _Refused(f"{flag} {text}: key=value is needed")
        if key in pairs:
            raise _Refused(f"{flag} {text}: {key} is given twice")
        pairs[key] = value.strip()
    return pairs


def _read_log(flag: str, path: str, reference: str, references: List[str]) -> List[str]:
    with _flag(flag, path):
        hypotheses = read_generation_log(path).hypotheses
        check_pieces(hypotheses, path, references)
    if len(hypotheses) != len(references):
        raise _Refused(
            f"--reference {reference}: {len(references)} lines for the {len(hypotheses)} "
            f"hypotheses of {flag} {path}; another test set? Or: {HINT}"
        )
    return hypotheses


def _read_reference(path: str) -> List[str]:
    with _flag("--reference", path):
        references = read_lines(path)
        check_pieces(references, path)
    return references


def _score(args: argparse.Namespace) -> None:
    from . import metrics
    from .provenance import provenance

    extra = _pairs("--set", args.set)
    references = _read_reference(args.reference)
    hypotheses = _read_log("--log", args.log, args.reference, references)
    bleu = metrics.bleu(hypotheses, references, args.tokenize, args.lowercase)
    repetition = metrics.repetition_rate(hypotheses)
    repetition_reference = metrics.repetition_rate(references)
    length_ratio = metrics.length_ratio(hypotheses, references)
    unk_rate = metrics.unk_rate(hypotheses)
    print(
        f"BLEU {bleu.score:.2f} ({bleu.signature}) | brevity penalty {bleu.brevity_penalty:.3f} | "
        f"repeated words {repetition:.2f} % (reference {repetition_reference:.2f} %) | "
        f"length ratio {length_ratio:.3f} | unknown words {unk_rate:.2f} % | "
        f"{len(hypotheses)} sentences"
    )
    scores = {
        "bleu": f"{bleu.score:.2f}",
        "bleu_signature": bleu.signature,
        "brevity_penalty": f"{bleu.brevity_penalty:.4f}",
        "repetition": f"{repetition:.2f}",
        "repetition_reference": f"{repetition_reference:.2f}",
        "length_ratio": f"{length_ratio:.3f}",
        "unk_rate": f"{unk_rate:.2f}",
        "words_signature": metrics.WORD_SIGNATURE,
        "sentences": str(len(hypotheses)),
        "log": args.log,
        "reference": args.reference,
        **provenance(),
    }
    for key in extra:
        if key in scores:
            raise _Refused(f"--set {key}={extra[key]}: {key} is computed, choose another name")
    if args.rows:
        with _flag("--rows", args.rows):
            append_row(args.rows, {**extra, **scores})


def _chosen_rows(args: argparse.Namespace):
    with _flag("--rows", args.rows):
        rows = read_rows(args.rows)
        if not rows:
            raise ValueError("a header without rows")
    wanted = _pairs("--where", args.where)
    with _flag("--where"):
        return select(rows, wanted)


def _table(args: argparse.Namespace) -> None:
    from .table import format_table

    rows = _chosen_rows(args)
    with _flag("--columns"):
        print(format_table(rows, args.columns, args.markdown))


def _plot(args: argparse.Namespace) -> None:
    from . import plots

    with _flag("--out", args.out):
        plots.check_extension(args.out)
    rows = _chosen_rows(args)
    with _flag("--rows", args.rows):
        plots.compare_rows(rows)
    with _flag("--out", args.out):
        plots.compare(rows, args.out)
    print(args.out)


def _curve(args: argparse.Namespace) -> None:
    from . import plots
    from .training_log import read_curve

    with _flag("--out", args.out):
        plots.check_extension(args.out)
    curves = {}
    for name, path in _pairs("--log", args.log).items():
        with _flag(f"--log {name}={path}:"):
            curves[name] = read_curve(path)
    with _flag("--out", args.out):
        plots.training_curve(curves, args.out, args.start, args.title)
    print(args.out)


def _examples(args: argparse.Namespace) -> None:
    from .examples import format_examples, pick

    with _flag("--source", args.source):
        source = read_lines(args.source)
    references = _read_reference(args.reference)
    if len(source) != len(references):
        raise _Refused(
            f"--reference {args.reference}: {len(references)} lines for the {len(source)} of "
            f"--source {args.source}"
        )
    systems = {
        name: _read_log(f"--system {name}={path}:", path, args.reference, references)
        for name, path in _pairs("--system", args.system).items()
    }
    print(format_examples(source, references, systems, pick(args.n, len(source), args.seed)))
