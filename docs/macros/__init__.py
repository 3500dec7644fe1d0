"""What pages of the site ask the code and the rows of data/results for, while the site is built.

A page says ``{{ flags("eisl") }}``; mkdocs-macros calls the function and puts its text there.
"""

from . import code, formulas, results


def define_env(env):
    """Called by mkdocs-macros."""
    for module in (code, formulas, results):
        for function in module.MACROS:
            env.macro(function)
