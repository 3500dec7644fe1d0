"""The console command ``fairseq-eisl``: one word for each of the ``python -m fairseq_eisl...``."""

import argparse
import importlib
import sys
from typing import Dict, List, NamedTuple, Optional

from . import __main__ as user_dir
from . import __version__
from .common.output import CONSOLE, run_command


class Command(NamedTuple):
    module: str
    """Below the package; its ``main(words)`` gives the exit status."""
    help: str


COMMANDS: Dict[str, Command] = {
    "noise": Command("noise.command", "noise on a text"),
    "recipes": Command("recipes.command", "whole experiments from a YAML file"),
    "evaluate": Command("evaluation.cli.main", "scores, tables, pictures, reports"),
    "analyse": Command("analyses.command", "the paper's analyses of checkpoints"),
    "checkpoints": Command("checkpoints.command", "averages of checkpoints"),
    "user-dir": Command("__main__", "print the folder of the plugin, for fairseq's --user-dir"),
}
DESCRIPTION = """\
The commands of fairseq_eisl, each with a --help of its own:

"""


def make_parser() -> argparse.ArgumentParser:
    """Looks at the first word only: the others are the command's."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog=CONSOLE,
        usage=f"{CONSOLE} [-h] [--version] COMMAND ...",
        description=DESCRIPTION + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairseq_eisl {__version__}")
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help="one of these")
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command that the first word names."""
    words = list(sys.argv[1:] if argv is None else argv)
    name = make_parser().parse_args(words[:1]).command
    part = COMMANDS[name].module
    module = user_dir if part == "__main__" else importlib.import_module(f"{__package__}.{part}")
    return run_command(lambda: module.main(words[1:]), f"{CONSOLE} {name}")
