"""EISL for Hugging Face's trainers.

:class:`EISLTrainer` with :class:`EISLConfig` for encoder-decoder models (BART, T5, Marian),
:class:`EISLSFTTrainer` with :class:`EISLSFTConfig`, on TRL's, for decoder-only ones, and
:func:`eisl_compute_loss` for a stock ``Trainer``. All of them weight a sentence by its tokens and
divide by those of the whole accumulated batch on all processes, so that gradients do not depend on
how a batch is split.

transformers, accelerate and trl (the extra ``huggingface``) are imported with the first use of a
trainer.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .arguments import DECODINGS, EISLArguments
from .loss_function import eisl_compute_loss

if TYPE_CHECKING:
    from .causal import EISLSFTConfig, EISLSFTTrainer
    from .seq2seq import EISLConfig, EISLTrainer

__all__ = [
    "DECODINGS",
    "EISLArguments",
    "EISLConfig",
    "EISLSFTConfig",
    "EISLSFTTrainer",
    "EISLTrainer",
    "eisl_compute_loss",
]
_MODULES = {
    "EISLConfig": "seq2seq",
    "EISLTrainer": "seq2seq",
    "EISLSFTConfig": "causal",
    "EISLSFTTrainer": "causal",
}


def __getattr__(name: str) -> Any:
    """The trainers, whose modules import what they extend."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f".{_MODULES[name]}", __name__)
    except ModuleNotFoundError as err:
        if err.name not in ("accelerate", "transformers", "trl"):
            raise
        raise ImportError(
            f"{name} needs {err.name}, which is not installed: pip install "
            '"fairseq-eisl[huggingface]"'
        ) from err
    return getattr(module, name)
