"""Experiments as YAML files, run with the stock commands of fairseq.

``python -m fairseq_eisl.recipes plan|run|sweep CONFIG``: a recipe is read by ``schema`` (what it
holds is in ``recipe``, what YAML means in ``yaml_text`` and ``typed``, what is refused in
``checks``), turned into stages by ``commands``, checked against fairseq's own parsers by
``flag_check`` (and ``flag_values``), and run by ``runner``, which keeps results in a
``stage_cache``; ``command`` is the command line. ``sweep`` reads a grid of recipes, which
``sweep_jobs`` runs and ``sweep_results`` gathers.
"""
