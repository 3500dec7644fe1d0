"""``python -m fairseq_eisl.checkpoints``: average, updates."""

import argparse
import os
from typing import Any, List, NoReturn, Optional

from ..common.output import program
from .average import average_checkpoints
from .files import read_checkpoint, updates_of, write_checkpoint
from .select_checkpoints import best_checkpoints, last_checkpoints

PROGRAM = program("fairseq_eisl.checkpoints", "checkpoints")
DESCRIPTION = "Averages the model weights of fairseq checkpoints, and says how old they are."
# Flags that only some other flag gives a sense to, as argparse names them.
_ONLY_WITH = {
    "last": ("folder",),
    "best": ("folder",),
    "by_updates": ("last",),
    "upper_bound": ("last",),
    "metric": ("best",),
    "maximize": ("best",),
    "minimize": ("best",),
}


class _Refused(Exception):
    """One line for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


def _check_flags(args: argparse.Namespace) -> None:
    def given(name: str) -> bool:
        return getattr(args, name) not in (None, False)

    for name, others in _ONLY_WITH.items():
        if given(name) and not any(map(given, others)):
            needed = " or ".join(map(_flag, others))
            raise _Refused(f"{_flag(name)}: it has no meaning without {needed}")
    if given("folder") and not (given("last") or given("best")):
        raise _Refused(f"--folder {args.folder}: how many of it? --last K or --best K is needed")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _chosen(args: argparse.Namespace) -> List[str]:
    if args.inputs is not None:
        return args.inputs
    if args.last is not None:
        return last_checkpoints(args.folder, args.last, args.by_updates, args.upper_bound)
    maximize = True if args.maximize else False if args.minimize else None
    return best_checkpoints(args.folder, args.best, args.metric, maximize)


def average(args: argparse.Namespace) -> None:
    """Write the average and print what it was made of."""
    _check_flags(args)
    given = "--inputs" if args.inputs is not None else "--folder"
    try:
        paths = _chosen(args)
        if os.path.realpath(args.output) in map(os.path.realpath, paths):
            raise _Refused(f"--output {args.output}: it is one of the checkpoints to average")
        state = average_checkpoints(paths)
    except OSError as err:
        raise _Refused(f"{given} {err.filename}: {err.strerror}") from err
    except ValueError as err:
        raise _Refused(f"{given} {err}") from err
    try:
        write_checkpoint(state, args.output)
    except OSError as err:
        raise _Refused(f"--output {args.output}: {err.strerror or err}") from err
    except ValueError as err:
        raise _Refused(f"--output {err}") from err
    for entry in state["extra_state"]["averaged_from"]:
        print(f"{entry['file']} ({entry['num_updates']:,} updates)")
    print(f"average of {len(paths)}: {args.output}")


def updates(args: argparse.Namespace) -> None:
    """Print the number of updates that a checkpoint has been trained for."""
    try:
        print(updates_of(read_checkpoint(args.checkpoint)))
    except OSError as err:
        raise _Refused(f"{err.filename}: {err.strerror}") from err
    except ValueError as err:
        raise _Refused(str(err)) from err


def _number(text: str, least: int = 1) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"a number of {least} or more is needed, not {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=PROGRAM, description=DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    part: Any = commands.add_parser("average", help="the mean of several checkpoints")
    source = part.add_mutually_exclusive_group(required=True)
    source.add_argument("--inputs", metavar="FILE", nargs="+", action="extend", help="these files")
    source.add_argument("--folder", help="checkpoints of this --save-dir, with --last or --best")
    how = part.add_mutually_exclusive_group()
    how.add_argument(
        "--last", metavar="K", type=_number, help="the K newest by epoch, checkpointN.pt"
    )
    how.add_argument(
        "--best",
        metavar="K",
        type=_number,
        help="the K best that --keep-best-checkpoints kept, checkpoint.best_METRIC_VALUE.pt",
    )
    part.add_argument(
        "--by-updates",
        action="store_true",
        help="with --last: the newest by update, checkpoint_E_U.pt of --save-interval-updates",
    )
    part.add_argument(
        "--upper-bound",
        metavar="N",
        type=_number,
        help="with --last: none after this epoch (or, with --by-updates, this update)",
    )
    part.add_argument(
        "--metric", help="with --best: of several metrics that checkpoints were kept by, this one"
    )
    better = part.add_mutually_exclusive_group()
    better.add_argument(
        "--maximize",
        action="store_true",
        help="with --best: higher is better (default: as the checkpoints' own training had it)",
    )
    better.add_argument("--minimize", action="store_true", help="with --best: lower is better")
    part.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="the average: settings of the last input, no optimiser",
    )
    part.set_defaults(run=average)
    part = commands.add_parser("updates", help="how many updates a checkpoint was trained for")
    part.add_argument("checkpoint", metavar="FILE")
    part.set_defaults(run=updates)
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; 0 if it went well. Exits with 2 and one line on a wrong input."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        args.run(args)
    except _Refused as err:
        parser.error(str(err))
    return 0
