"""Non-autoregressive models that draw random numbers of their own, and validation without."""

from contextlib import contextmanager
from typing import Any, List, Tuple

from torch import nn

# iNAT shuffles the decoder input of some sentences, and may sample it; the Levenshtein
# Transformer may sample what it learns to delete. Evaluation mode stops none of it.
_NOISE = {"dae_ratio": 0.0, "stochastic_approx": False, "sampling_for_deletion": False}


@contextmanager
def without_noise(model: nn.Module):
    """Validation of a model that is the same in every run, for every batch and seed."""
    before: List[Tuple[nn.Module, str, Any]] = []
    for module in model.modules():
        for name, quiet in _NOISE.items():
            if name in vars(module):
                before.append((module, name, getattr(module, name)))
                setattr(module, name, quiet)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
