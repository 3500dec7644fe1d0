"""What a corpus is scored with: a metric a file, each of which registers itself.

A new one is a new file here, or a call of :func:`register` by code from outside; ``score``,
``table``, the page and recipes show what is registered. Texts of different preparation
(lower-cased or not, tokenised or not) or of different signatures are not comparable.
"""

from .registry import Column, Flag, Job, Metric, Signature, register, registered, unregister

__all__ = ["Column", "Flag", "Job", "Metric", "Signature", "register", "registered", "unregister"]
