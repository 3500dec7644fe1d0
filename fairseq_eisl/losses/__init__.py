"""Losses in plain PyTorch; nothing here needs fairseq."""

from .eisl import EISLLoss, EISLOptions, EISLTerms, eisl_logit_terms, eisl_loss
from .exact import exact_autoregressive_eisl
from .token_log_probs import token_log_probs

__all__ = [
    "EISLLoss",
    "EISLOptions",
    "EISLTerms",
    "eisl_logit_terms",
    "eisl_loss",
    "exact_autoregressive_eisl",
    "token_log_probs",
]
