"""Slow, literal references of the losses, for tests and benchmarks only; one file a loss.

Python loops over float64 scalars, one sentence at a time, written from the definitions in the
paper and sharing no code with the implementation. Everything is differentiable through autograd,
so that gradients can be compared as well as values.
"""

from .axe import axe_loss, axe_table
from .bag_of_ngrams import bag_of_ngrams_loss
from .clean_text import clean_text_weights
from .content_words import content_loss
from .eisl import eisl_loss, one_hot_convolution_scores
from .exact_autoregressive import exact_autoregressive_eisl
from .hints import align_hint_loss, hidden_hint_loss
from .latent import (
    ctc_eisl_loss,
    ctc_likelihood,
    ctc_outputs,
    dag_eisl_loss,
    dag_likelihood,
    dag_log_likelihood,
    dag_paths,
)
from .loss_truncation import kept_sentences
from .nat_regularization import similarity_loss
from .nat_slots import slot_loss
from .oaxe import oaxe_loss
from .token_weights import token_weighted_loss

__all__ = [
    "align_hint_loss",
    "axe_loss",
    "axe_table",
    "bag_of_ngrams_loss",
    "clean_text_weights",
    "content_loss",
    "ctc_eisl_loss",
    "ctc_likelihood",
    "ctc_outputs",
    "dag_eisl_loss",
    "dag_likelihood",
    "dag_log_likelihood",
    "dag_paths",
    "eisl_loss",
    "exact_autoregressive_eisl",
    "hidden_hint_loss",
    "kept_sentences",
    "oaxe_loss",
    "one_hot_convolution_scores",
    "similarity_loss",
    "slot_loss",
    "token_weighted_loss",
]
