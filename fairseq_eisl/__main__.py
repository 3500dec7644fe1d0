"""Prints this folder, for ``--user-dir "$(python -m fairseq_eisl)"``."""

import os

print(os.path.dirname(os.path.abspath(__file__)))
