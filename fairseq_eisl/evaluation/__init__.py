"""Scores with signatures, and the tables, pictures and pages made from rows of them.

``python -m fairseq_eisl.evaluation --help``. Needs sacrebleu; matplotlib for the
pictures alone; neither fairseq nor torch.
"""

from ..common.output import program

PROGRAM = program("fairseq_eisl.evaluation", "evaluate")
