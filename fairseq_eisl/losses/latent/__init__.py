"""Losses over latent alignments: an output has more slots than its target has tokens, and sums over
the ways to use them (CTC, directed acyclic decoders).

All that EISL needs of such a model is ``c_n[t, s]``, the probability that the target's n-gram at s
is said *from slot t on* (:class:`fairseq_eisl.losses.NGramLogProbs`). The sum of it over t is how
often the n-gram is expected in the output.
"""

from .ctc import (
    ctc_expected_ngrams,
    ctc_ngram_log_probs,
    eisl_ctc_log_prob_terms,
    eisl_ctc_terms,
)
from .ctc_likelihood import (
    ctc_best_alignment,
    ctc_log_likelihood,
    ctc_log_prob_likelihood,
    ctc_needed_slots,
)
from .dag import (
    dag_expected_ngrams,
    dag_ngram_log_probs,
    eisl_dag_log_prob_terms,
    eisl_dag_terms,
    passing_probabilities,
)
from .dag_likelihood import dag_best_alignment, dag_log_likelihood

__all__ = [
    "ctc_best_alignment",
    "ctc_expected_ngrams",
    "ctc_log_likelihood",
    "ctc_log_prob_likelihood",
    "ctc_needed_slots",
    "ctc_ngram_log_probs",
    "dag_best_alignment",
    "dag_expected_ngrams",
    "dag_log_likelihood",
    "dag_ngram_log_probs",
    "eisl_ctc_log_prob_terms",
    "eisl_ctc_terms",
    "eisl_dag_log_prob_terms",
    "eisl_dag_terms",
    "passing_probabilities",
]
