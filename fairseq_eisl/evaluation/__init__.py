"""Scores with signatures, result rows, and the tables and pictures made from rows.

``python -m fairseq_eisl.evaluation --help``. Needs sacrebleu; matplotlib for the
pictures alone; neither fairseq nor torch.
"""
