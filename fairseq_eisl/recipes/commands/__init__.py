"""A recipe as stages: the stock command lines, what each reads, and where it writes.

``build`` puts them together; each kind of stage has a file: ``data``, ``train``, ``generate``,
``score``.
"""

from .pipeline import build

__all__ = ["build"]
