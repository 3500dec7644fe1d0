"""Noise on targets: operators, specifications and word units. Plain Python."""

from .operators import Context, example_rng
from .spec import KINDS, NoiseSpec, parse_noise
from .words import SCHEMES, WordUnits, detect_scheme, read_gpt2_encoder

__all__ = [
    "KINDS",
    "SCHEMES",
    "Context",
    "NoiseSpec",
    "WordUnits",
    "detect_scheme",
    "example_rng",
    "parse_noise",
    "read_gpt2_encoder",
]
