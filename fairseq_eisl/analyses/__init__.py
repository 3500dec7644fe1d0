"""The paper's analyses of the loss, on checkpoints of one's own: rows, and a figure of them.

``python -m fairseq_eisl.analyses --help``. Needs torch and fairseq; matplotlib for the figures
alone, which ``python -m fairseq_eisl.evaluation plot`` draws again from the rows.
"""

from ..common.output import program

PROGRAM = program("fairseq_eisl.analyses", "analyse")
