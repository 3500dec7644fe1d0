"""``python -m fairseq_eisl.analyses``."""

import sys

from ..common.output import run_command
from . import PROGRAM
from .command import main

if __name__ == "__main__":
    sys.exit(run_command(main, PROGRAM))
