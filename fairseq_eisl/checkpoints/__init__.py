"""Averages of fairseq checkpoints; needs torch alone, fairseq is not imported.

``python -m fairseq_eisl.checkpoints --help``, or :func:`average_checkpoints`.
"""

from .average import average_checkpoints
from .files import read_checkpoint, write_checkpoint
from .select_checkpoints import best_checkpoints, last_checkpoints

__all__ = [
    "average_checkpoints",
    "best_checkpoints",
    "last_checkpoints",
    "read_checkpoint",
    "write_checkpoint",
]
