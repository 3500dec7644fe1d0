"""Prints this folder, for ``--user-dir "$(python -m fairseq_eisl)"``."""

import argparse
import importlib.util
import os
import sys
from typing import List, Optional

from . import __version__
from .common.get_fairseq import GET_FAIRSEQ
from .common.output import program, run_command

DESCRIPTION = """\
Prints the folder of the plugin, for fairseq's commands:

  fairseq-train DATA --user-dir "$(python -m fairseq_eisl)" --criterion eisl ...

Other commands, each with a --help of its own:

  python -m fairseq_eisl.recipes       whole experiments from a YAML file
  python -m fairseq_eisl.noise         noise on a text
  python -m fairseq_eisl.evaluation    scores, tables, pictures, reports
  python -m fairseq_eisl.checkpoints   averages of checkpoints

The installed command fairseq-eisl has them all.
"""
NO_FAIRSEQ = """\
fairseq is not installed here, the losses and the noise work without it. To have it, without the
torchaudio that it asks for and does not need for text:
"""


def main(argv: Optional[List[str]] = None) -> int:
    """Print the folder; what is missing goes to standard error, so that ``$(...)`` stays a path."""
    parser = argparse.ArgumentParser(
        prog=program("fairseq_eisl", "user-dir"),
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fairseq_eisl {__version__}")
    parser.parse_args(argv)
    print(os.path.dirname(os.path.abspath(__file__)))
    if importlib.util.find_spec("fairseq") is None:
        sys.stderr.write(f"{NO_FAIRSEQ}  {GET_FAIRSEQ}\n")
    return 0


if __name__ == "__main__":
    sys.exit(run_command(main, "python -m fairseq_eisl"))
