"""``--criterion eisl``: the Edit-Invariant Sequence Loss on fairseq models."""

import math
from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics

from ..losses import EISLOptions, eisl_logit_terms, random_numbers
from ..losses.position_selection import SELECTION_ON, SELECTIONS
from ._candidates import Candidates, check_model, decode, teacher_forced

DECODINGS = ("greedy", "sample", "teacher-forcing")
# The flag of each option of the loss that has another name.
_FLAGS = {
    "ngrams": "--ngram",
    "weights": "--ngram-weight",
    "selection": "--position-selection",
    "temperature": "--gumbel-temperature",
    "selection_on": "--selection-on",
    "floor": "--log-prob-floor",
}


@dataclass
class EISLCriterionConfig(FairseqDataclass):
    ngram: str = field(
        default="2,3,4",
        metadata={
            "help": "n-gram orders, e.g. 1,2; 0 stands for the target's length, -1 for one less"
        },
    )
    ngram_weight: Optional[str] = field(
        default=None,
        metadata={"help": "a weight for each order, e.g. 0.8,0.2 (default: equal, summing to 1)"},
    )
    ngram_factor: float = field(default=1.0, metadata={"help": "factor of EISL in the loss"})
    ce_factor: float = field(
        default=0.0, metadata={"help": "factor of the teacher-forced cross entropy in the loss"}
    )
    label_smoothing: float = field(
        default=0.0, metadata={"help": "label smoothing of the cross entropy part"}
    )
    position_selection: ChoiceEnum(SELECTIONS) = field(  # type: ignore[valid-type]
        default="gumbel",
        metadata={
            "help": "weights over candidate positions: gumbel (softmax with Gumbel noise; no noise "
            "in validation), softmax, uniform, or hard (the best position)"
        },
    )
    gumbel_temperature: float = field(
        default=1.0, metadata={"help": "temperature of the position selection"}
    )
    selection_on: ChoiceEnum(SELECTION_ON) = field(  # type: ignore[valid-type]
        default="log_prob",
        metadata={"help": "logits of the selection: log g (authors' code) or g (paper's wording)"},
    )
    log_prob_floor: float = field(
        default=-20.0, metadata={"help": "log-probabilities (nats) are clamped from below to this"}
    )
    ngram_sum: bool = field(
        default=False,
        metadata={"help": "sum an n-gram's log-probabilities instead of averaging them"},
    )
    train_decoding: ChoiceEnum(DECODINGS) = field(  # type: ignore[valid-type]
        default="greedy",
        metadata={
            "help": "where the candidate comes from: the model's own greedy output, a "
            "sample from it, or the target (teacher forcing)"
        },
    )
    candidate_after_eos: bool = field(
        default=False,
        metadata={
            "help": "count positions after the candidate's own EOS, up to the target's "
            "length, as candidate positions"
        },
    )


def _numbers(flag: str, text: str, kind) -> list:
    """A comma-separated flag as numbers."""
    try:
        return [kind(part) for part in str(text).split(",")]
    except ValueError:
        numbers = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"{flag} must be {numbers} separated by commas, not {text!r}") from None


def _options(cfg: EISLCriterionConfig) -> EISLOptions:
    """Checked loss options; errors name the flags."""
    ngrams = _numbers("--ngram", cfg.ngram, int)
    weights = None
    if cfg.ngram_weight is not None:
        weights = _numbers("--ngram-weight", cfg.ngram_weight, float)
        if len(weights) != len(ngrams):
            raise ValueError(
                f"--ngram-weight {cfg.ngram_weight}: {len(weights)} weights for the "
                f"{len(ngrams)} orders of --ngram {cfg.ngram}; one for each is needed"
            )
    try:
        return EISLOptions(
            ngrams,
            weights,
            str(cfg.position_selection),
            cfg.gumbel_temperature,
            str(cfg.selection_on),
            cfg.log_prob_floor,
            not cfg.ngram_sum,
        )
    except ValueError as err:
        option = str(err).replace("=", " ").split()[0]
        raise ValueError(f"{_FLAGS.get(option, option)}: {err}") from None


@register_criterion("eisl", dataclass=EISLCriterionConfig)
class EISLCriterion(FairseqCriterion):
    """EISL on any stock encoder-decoder.

    A candidate is decoded without gradient; one forward on it gives the logits
    that the target's n-grams are matched against (paper, "Efficient approximate
    computation"). ``sample_size`` is the number of sentences, so that gradients
    do not depend on how a batch is split over updates or workers.
    """

    def __init__(self, cfg: EISLCriterionConfig, task):
        super().__init__(task)
        self.options = _options(cfg)
        for flag, value in (("--ngram-factor", cfg.ngram_factor), ("--ce-factor", cfg.ce_factor)):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{flag} must be a finite number, 0 or above, not {value}")
        if cfg.ngram_factor == 0 and cfg.ce_factor == 0:
            raise ValueError("--ngram-factor and --ce-factor are both 0: nothing to train on")
        if not 0 <= cfg.label_smoothing < 1:
            raise ValueError(f"--label-smoothing must be in [0, 1), not {cfg.label_smoothing}")
        self.ngram_factor, self.ce_factor = cfg.ngram_factor, cfg.ce_factor
        self.label_smoothing = cfg.label_smoothing
        self.decoding = str(cfg.train_decoding)
        if self.decoding not in DECODINGS:
            choices = ", ".join(DECODINGS)
            raise ValueError(
                f"--train-decoding: {self.decoding!r} is unknown; choose from {choices}"
            )
        self.after_eos = cfg.candidate_after_eos
        self.eos_idx = task.target_dictionary.eos()

    def forward(self, model, sample, reduce=True):
        """Loss in nats, summed over sentences (or (B,) without ``reduce``), the number of
        sentences, and sums to log."""
        check_model(model)
        target = sample["target"]
        seeds = self._seeds(sample)
        candidates = self._candidates(model, sample, seeds)
        logits, forced_logits = self._logits(model, sample, candidates)
        options = self.options if self.training else self.options.without_noise()
        terms = eisl_logit_terms(
            logits, target, candidates.mask, target.ne(self.padding_idx), options, seeds
        )
        eisl = terms.total()
        loss = self.ngram_factor * eisl
        log = {"eisl": eisl.sum().detach()}
        if forced_logits is not None:
            ce, nll = self._cross_entropy(forced_logits, target)
            if self.ce_factor > 0:
                loss = loss + self.ce_factor * ce
            log.update(ce=ce.sum().detach(), nll=nll.sum().detach(), nll_tokens=sample["ntokens"])
        if reduce:
            loss = loss.sum()
        nsentences = target.size(0)
        log.update(
            loss=loss.detach().sum(),
            ntokens=sample["ntokens"],
            nsentences=nsentences,
            sample_size=nsentences,
            target_tokens=sample["ntokens"],
        )
        log.update(self._statistics(terms, candidates))
        return loss, nsentences, log

    def _seeds(self, sample):
        """(B,) seeds of the random choices of this update: they depend on the trainer's
        seed, the update and the sentence, not on how the batch is put together.

        The trainer calls ``torch.manual_seed(--seed + update)`` before each update, alike
        on all workers; this reads it back.
        """
        ids = sample["id"] if "id" in sample else torch.arange(sample["target"].size(0))
        ids = ids.to(sample["target"].device)
        return random_numbers.fold(ids, torch.initial_seed())

    def _candidates(self, model, sample, seeds) -> Candidates:
        if self.decoding == "teacher-forcing":
            return teacher_forced(sample, self.padding_idx)
        sampling = self.decoding == "sample" and self.training
        return decode(
            model,
            sample,
            self.padding_idx,
            self.eos_idx,
            seeds=random_numbers.fold(seeds, 0) if sampling else None,
            after_eos=self.after_eos,
        )

    def _logits(self, model, sample, candidates: Candidates):
        """Logits on the candidate, and teacher-forced ones where they are needed."""
        net_input = sample["net_input"]
        forced = self.ce_factor > 0 or not self.training
        if candidates.tokens is sample["target"]:
            logits = self._forward(model, net_input)
            return logits, logits if forced else None
        candidate_input = {**net_input, "prev_output_tokens": candidates.prefix}
        if not forced:
            return self._forward(model, candidate_input), None
        # One forward for both prefixes: a distributed wrapper allows one a backward. The two
        # rows of a sentence stand together, as recurrent encoders want lengths that fall.
        both = {
            name: torch.stack([candidate_input[name], value], 1).flatten(0, 1)
            if torch.is_tensor(value)
            else value
            for name, value in net_input.items()
        }
        logits = self._forward(model, both).unflatten(0, (sample["target"].size(0), 2))
        return logits.unbind(1)

    def _forward(self, model, net_input):
        logits = model(**net_input)[0]
        vocabulary = len(self.task.target_dictionary)
        if logits.dim() != 3 or logits.size(2) != vocabulary:
            raise ValueError(
                f"--criterion eisl needs logits over all {vocabulary} symbols of the target "
                f"dictionary, but this model gives a tensor of shape {tuple(logits.shape)}"
            )
        return logits

    def _cross_entropy(self, logits, target):
        """Per sentence: label-smoothed cross entropy per token, and the sum of the NLL."""
        real = target.ne(self.padding_idx)
        log_probs = utils.log_softmax(logits, dim=-1)
        loss, nll = label_smoothed_nll_loss(
            log_probs, target, self.label_smoothing, ignore_index=self.padding_idx, reduce=False
        )
        nll = nll.squeeze(-1).sum(1)
        return loss.squeeze(-1).sum(1) / real.sum(1).clamp(min=1), nll

    @torch.no_grad()
    def _statistics(self, terms, candidates: Candidates) -> dict:
        """Sums over sentences or tokens; ``reduce_metrics`` makes them averages."""
        used = terms.weights.gt(0)
        log = {}
        orders = [*self.options.ngrams, "short"]
        if any(
            n in (0, 1) and w > 0 for n, w in zip(self.options.ngrams, self.options.order_weights)
        ):
            orders.pop()  # such an order fits into every sentence
        for column, n in enumerate(orders):
            log[f"order_{n}"] = terms.losses[:, column].sum()
            log[f"order_{n}_sentences"] = used[:, column].sum()
        share = terms.weights / terms.weights.sum(1, keepdim=True).clamp(min=1e-12)
        same = candidates.tokens[:, 1:].eq(candidates.tokens[:, :-1]) & candidates.mask[:, 1:]
        log["selection_entropy"] = (share * terms.entropy).sum()
        log["candidate_tokens"] = candidates.mask.sum()
        log["candidate_repeats"] = same.sum()
        return log

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Averages over all workers; losses in nats, ``nll_loss`` in bits as in fairseq."""

        def total(key):
            return sum(log.get(key, 0) for log in logging_outputs)

        def average(name, value, count, round=3):
            # Where nothing was counted this logs a 0 of weight 0: without a value, a meter of
            # an earlier update would be shown as null.
            metrics.log_scalar(name, value / max(count, 1), count, round=round)

        sentences = total("sample_size")
        average("loss", total("loss"), sentences)
        average("eisl", total("eisl"), sentences)
        keys = sorted({key for log in logging_outputs for key in log if key.startswith("order_")})
        for key in keys:
            if not key.endswith("_sentences"):
                name = "eisl_" + key[len("order_") :]
                average(name, total(key), total(f"{key}_sentences"))
        tokens = total("nll_tokens")
        if tokens > 0:
            average("ce", total("ce"), sentences)
            average("nll_loss", total("nll") / math.log(2), tokens)
            metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
        average("candidate_length", total("candidate_tokens"), sentences, round=2)
        average("target_length", total("target_tokens"), sentences, round=2)
        average(
            "repetition",
            100.0 * total("candidate_repeats"),
            total("candidate_tokens"),
            round=2,
        )
        average("selection_entropy", total("selection_entropy"), sentences)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All logged values are sums."""
        return True
