"""Experiments as recipes: a YAML file to the stock command lines, run in order, resumable.

``python -m fairseq_eisl.recipes plan|run|sweep CONFIG``. A recipe is read by ``schema``, turned
into stages by ``stages``, checked against fairseq's own parsers by ``flag_check``, and run by
``runner``, which keeps every stage's results in the ``store``.
"""
