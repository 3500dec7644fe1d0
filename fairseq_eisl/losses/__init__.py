"""Losses in plain PyTorch; nothing here needs fairseq."""

from .clean_text import CleanTextWeights, count_ngrams
from .eisl import (
    IGNORE_INDEX,
    EISLLoss,
    eisl_feature_terms,
    eisl_log_prob_terms,
    eisl_logit_terms,
    eisl_loss,
)
from .eisl_options import EISLOptions
from .eisl_terms import (
    EISLTerms,
    NGramLogProbs,
    NGramPositions,
    eisl_from_log_probs,
    eisl_from_ngram_log_probs,
)
from .exact_autoregressive import exact_autoregressive_eisl
from .feature_log_probs import feature_log_probs
from .nat_slots import SPECIALS, Slots, SlotTerms, slot_terms
from .ngram_positions import ngram_positions
from .ngram_weights import NGramWeights
from .token_log_probs import may_overwrite, token_log_probs

__all__ = [
    "IGNORE_INDEX",
    "SPECIALS",
    "CleanTextWeights",
    "EISLLoss",
    "EISLOptions",
    "EISLTerms",
    "NGramLogProbs",
    "NGramPositions",
    "NGramWeights",
    "SlotTerms",
    "Slots",
    "count_ngrams",
    "eisl_feature_terms",
    "eisl_from_log_probs",
    "eisl_from_ngram_log_probs",
    "eisl_log_prob_terms",
    "eisl_logit_terms",
    "eisl_loss",
    "exact_autoregressive_eisl",
    "feature_log_probs",
    "may_overwrite",
    "ngram_positions",
    "slot_terms",
    "token_log_probs",
]
