"""Noise on targets: operators, specifications and word units. Plain Python."""

from .gpt2 import read_gpt2_encoder
from .operators import Context, example_rng
from .segmentation import SCHEMES, detect_scheme
from .spec import KINDS, NoiseSpec, parse_noise
from .words import WordUnits

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
