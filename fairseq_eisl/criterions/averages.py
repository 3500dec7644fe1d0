"""Sums that all workers have logged, to the averages that fairseq shows."""

import math
from typing import Any, Dict, Iterable, List

from fairseq import utils
from fairseq.logging import metrics

from ..decoding import candidate_statistics as candidate_statistics  # also from here

STATISTICS = (
    *("ce", "nll_loss", "ppl", "repetition", "candidate_length", "target_length"),
    "too_long",
    r"(word_ins|mask_ins|word_del|word_reposition|length|crf)[\w-]*",
    *("nat_reg", "hint_hidden", "hint_align"),
)
"""Regular expressions of what :func:`log_other_parts` shows."""


RESERVED = ("loss", "ce", "nll", "ntokens", "nsentences", "sample_size", "entries")
"""Keys of the log that no criterion can have for a name."""


class Sums:
    """What was logged, added up; and averages of it under the names that fairseq shows."""

    def __init__(self, logs: Iterable[Dict[str, Any]]):
        self.logs = list(logs)

    def total(self, key: str):
        return sum(log.get(key, 0) for log in self.logs)

    def keys(self, prefix: str = "") -> List[str]:
        """The keys of any log that begin so, sorted."""
        return sorted({key for log in self.logs for key in log if key.startswith(prefix)})

    def average(self, name: str, value, count, round: int = 3):
        metrics.log_scalar(name, value / max(count, 1), count, round=round)

    def average_if_any(self, name: str, value, count, round: int = 3):
        """Nothing at all where nothing was counted."""
        if count > 0:
            self.average(name, value, count, round)
        else:
            _forget_if_empty(name)


def log_losses(sums: Sums, name: str):
    """The loss, and the part of it that is logged under the criterion's ``name``, in nats."""
    sentences = sums.total("sample_size")
    sums.average("loss", sums.total("loss"), sentences)
    if name in sums.keys(name):
        sums.average(name, sums.total(name), sentences)


def log_other_parts(sums: Sums):
    """What every sequence criterion logs besides: other terms of non-autoregressive models,
    cross entropy, likelihood (``nll_loss`` in bits, as in fairseq), the percentage of targets that
    need more slots than a model with latent alignments has, and statistics of candidates."""
    # A criterion whose sample size is smaller than what these are sums of says of how many.
    sentences = sums.total("entries" if sums.keys("entries") else "sample_size")
    for key in sums.keys("part_"):
        sums.average(key[len("part_") :], sums.total(key), sentences)
    tokens = sums.total("nll_tokens")
    if "ce" in sums.keys("ce"):
        sums.average("ce", sums.total("ce"), sentences)
    if tokens > 0:
        sums.average("nll_loss", sums.total("nll") / math.log(2), tokens)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
    if sums.keys("too_long"):
        sums.average("too_long", 100.0 * sums.total("too_long"), sentences, round=2)
    if sums.keys("target_tokens"):  # decoded candidates
        sums.average("candidate_length", sums.total("candidate_tokens"), sentences, round=2)
        sums.average("target_length", sums.total("target_tokens"), sentences, round=2)
    repeats = 100.0 * sums.total("candidate_repeats")
    sums.average_if_any("repetition", repeats, sums.total("candidate_tokens"), round=2)


def _forget_if_empty(name: str):
    """Log nothing under a name of which nothing was counted.

    A zero would read like a perfect loss, and the emptied meter of an earlier update is shown as
    null, which no reader of a log expects.
    """
    for meters in metrics.get_active_aggregators():
        if name in meters and not meters[name].count:
            del meters[name]
            meters.priorities = [entry for entry in meters.priorities if entry[2] != name]
