"""Flags that several analyses have, and what they stand for."""

import argparse
import os
import shlex
import sys
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from ..common.errors import Refused, naming
from ..common.files import check_kind
from ..common.provenance import provenance
from ..common.rows import Row, append_row
from ..common.table import text_table
from ..evaluation.figures.canvas import check_picture
from ..losses import EISLOptions
from ..losses.position_selection import SELECTIONS
from ..noise import parse_noise
from .sentences import SentencePairs
from .trained import Trained, load_trained, name_of, untrained

MANY: Dict[str, Any] = {"nargs": "+", "action": "extend"}


def positive(text: str) -> int:
    """The type of a number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of 1 or more is needed, not {text!r}")
    return int(text)


def reads_models(part: argparse.ArgumentParser, sentences: int, batch: int) -> None:
    """Add checkpoints, and the sentences that they are asked about."""
    part.add_argument(
        "--checkpoint",
        required=True,
        metavar="[NAME=]FILE",
        help="a checkpoint of an autoregressive model; several are compared",
        **MANY,
    )
    part.add_argument(
        "--untrained",
        action="store_true",
        help="also the first one's model before training, with random weights",
    )
    part.add_argument(
        "--data", metavar="DIR", help="the preprocessed data (default: where they were trained on)"
    )
    part.add_argument("--user-dir", metavar="DIR", help="another plugin that the model needs")
    part.add_argument("--subset", default="valid", help="the split (default: %(default)s)")
    part.add_argument(
        "--sentences",
        type=positive,
        default=sentences,
        help="so many of its first pairs (default: %(default)s)",
    )
    part.add_argument(
        "--batch", type=positive, default=batch, help="pairs a batch (default: %(default)s)"
    )


def chooses_loss(part: argparse.ArgumentParser, ngrams: Sequence[str], many: bool = True) -> None:
    """Add the options of EISL."""
    several: Dict[str, Any] = MANY if many else {}
    part.add_argument(
        "--ngram",
        metavar="ORDERS",
        default=None if many else ngrams[0],
        help=f"n-gram orders of EISL, joined by commas{'; several are compared' if many else ''} "
        f"(default: {' '.join(ngrams)})",
        **several,
    )
    part.set_defaults(default_ngram=list(ngrams))
    part.add_argument(
        "--position-selection",
        choices=SELECTIONS,
        default="softmax",
        help="gumbel draws no noise here: it is softmax (default: %(default)s)",
    )
    part.add_argument("--gumbel-temperature", type=float, default=1.0, metavar="T", dest="tau",
                      help="of the selection (default: %(default)s)")  # fmt: skip


def makes_noise(part: argparse.ArgumentParser, default: Sequence[str], many: bool = True) -> None:
    """Add noise on targets, and its seed (``many``: each of several seeds)."""
    several: Dict[str, Any] = MANY if many else {}
    part.add_argument(
        "--noise",
        metavar="SPEC",
        help=f"on the targets, such as repeat:0.5{', or several' if many else ''} "
        f"(default: {' '.join(default)})",
        **several,
    )
    part.add_argument(
        "--noise-seed",
        type=int,
        default=None if many else 1,
        metavar="SEED",
        help=f"of the noise{', or several' if many else ''} (default: 1)",
        **several,
    )
    part.set_defaults(default_noise=list(default))


def decodes(part: argparse.ArgumentParser) -> None:
    """Add what is told of candidates."""
    part.add_argument(
        "--candidate-after-eos",
        action="store_true",
        help="positions after the candidate's own end count, as in such a training",
    )


def writes(part: argparse.ArgumentParser) -> None:
    """Add the files of results."""
    part.add_argument("--rows", metavar="CSV", help="append the rows to this file")
    part.add_argument("--out", metavar="FILE", help="draw the figure: a .png or .svg file")
    part.add_argument("--title", default="", help="of the figure: say the data here")


def check_files(args: argparse.Namespace) -> None:
    """Before any work: can the results be written?"""
    if args.rows == "":
        raise Refused("--rows: a file is needed, not an empty name")
    if args.out is not None:
        with naming(f"--out {args.out}", args.out):
            check_picture(args.out)
            check_kind(args.out)


def noises(args: argparse.Namespace) -> List[str]:
    """The noises of ``--noise``, checked."""
    given = args.noise or args.default_noise
    given = [given] if isinstance(given, str) else given
    for text in given:
        try:
            parse_noise(text)
        except ValueError as err:
            raise Refused(str(err)) from None
    return list(dict.fromkeys(given))


def orders_of(text: str) -> Tuple[int, ...]:
    """``1,2`` as numbers. Raises ``Refused``."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise Refused(f"--ngram {text}: whole numbers joined by commas are needed") from None


def losses(args: argparse.Namespace) -> Dict[str, EISLOptions]:
    """The options of EISL by the text of their orders."""
    given = args.ngram or args.default_ngram
    given = [given] if isinstance(given, str) else given
    with naming("--ngram, --position-selection, --gumbel-temperature"):
        common = EISLOptions(selection=args.position_selection, temperature=args.tau)
        return {text: replace(common, ngrams=orders_of(text), weights=None) for text in given}


Model = Tuple[Trained, SentencePairs]


def models(args: argparse.Namespace) -> Iterator[Model]:
    """Each model, with the sentences in its own task's dictionary; one at a time in memory.

    Rows and pictures tell them apart by their names alone.
    """
    _check_names(args)
    first = True
    start = getattr(args, "start", None)  # of a command that follows one training
    every = [("--start", start)] if start is not None else []
    for flag, given in [*every, *(("--checkpoint", text) for text in args.checkpoint)]:
        name, path = _named(flag, given)
        with naming(f"{flag} {given}", path):
            trained = load_trained(path, name, args.data, args.user_dir)
        with naming(f"--subset {args.subset}"):
            pairs = SentencePairs(trained.task, args.subset, args.sentences, args.batch)
        if first and args.untrained:
            yield untrained(trained, seed=1), pairs
        first = False
        yield trained, pairs


def _check_names(args: argparse.Namespace) -> None:
    taken = {"untrained"} if args.untrained else set()
    for text in args.checkpoint:
        name, path = _named("--checkpoint", text)
        name = name or name_of(path)
        if name in taken:
            raise Refused(f"--checkpoint {text}: two models are called {name}; write NAME=FILE")
        taken.add(name)


def _named(flag: str, text: str) -> Tuple[str, str]:
    """``NAME=FILE`` or ``FILE``, which may hold an equals sign itself."""
    if os.path.exists(text) or "=" not in text:
        return "", text
    name, _, path = text.partition("=")
    if not name or not path:
        raise Refused(f"{flag} {text}: NAME=FILE or FILE is needed")
    return name, path


def about(args: argparse.Namespace, trained: Trained, pairs: SentencePairs) -> Dict[str, Any]:
    """Columns of every row of a model."""
    found = {
        "analysis": args.command,
        "title": args.title,
        "checkpoint": trained.name,
        "updates": trained.updates,
        "data": os.path.basename(os.path.normpath(str(trained.task.cfg.data))),
        "subset": args.subset,
        "sentences": len(pairs),
        "selection": args.position_selection,
        "temperature": args.tau,
    }
    if hasattr(args, "candidate_after_eos"):
        found["after_eos"] = "yes" if args.candidate_after_eos else "no"
    return found


def number(value: float) -> str:
    """A number of a row: six digits that count."""
    return f"{value:.6g}"


def finish(
    args: argparse.Namespace,
    rows: Sequence[Mapping[str, Any]],
    shown: Sequence[str],
    draw: Callable[[Sequence[Row], str], None],
) -> None:
    """Print the columns ``shown``, append the rows and draw them, where that is wanted."""
    origin = {"command": shlex.join(args.argv), **provenance()}
    # What a row knows of its making, as one that was scored does, stays.
    texts = [{key: str(v) for key, v in {**row, **origin, **row}.items()} for row in rows]
    print(text_table(texts, shown))
    if args.rows is not None:
        with naming(f"--rows {args.rows}", args.rows):
            for row in texts:
                append_row(args.rows, row)
    if args.out is not None:
        with naming(f"--out {args.out}", args.out):
            draw(texts, args.out)
        print(args.out)


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr)
