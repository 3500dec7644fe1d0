"""Formulas as MathML, which browsers draw without a script or a network."""

from latex2mathml.converter import convert


def math(text: str) -> str:
    """A formula in LaTeX, in a line of its own."""
    return convert(text, display="block")


def m(text: str) -> str:
    """The same within a sentence."""
    return convert(text)


MACROS = (math, m)
