"""Losses in plain PyTorch; nothing here needs fairseq."""

from .eisl import (
    EISLLoss,
    EISLOptions,
    EISLTerms,
    eisl_feature_terms,
    eisl_log_prob_terms,
    eisl_logit_terms,
    eisl_loss,
)
from .exact import exact_autoregressive_eisl
from .feature_log_probs import feature_log_probs
from .slots import SPECIALS, SlotTerms, slot_terms
from .token_log_probs import may_overwrite, token_log_probs

__all__ = [
    "SPECIALS",
    "EISLLoss",
    "EISLOptions",
    "EISLTerms",
    "SlotTerms",
    "eisl_feature_terms",
    "eisl_log_prob_terms",
    "eisl_logit_terms",
    "eisl_loss",
    "exact_autoregressive_eisl",
    "feature_log_probs",
    "may_overwrite",
    "slot_terms",
    "token_log_probs",
]
