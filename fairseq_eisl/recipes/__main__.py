"""``python -m fairseq_eisl.recipes``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
