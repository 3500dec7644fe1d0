"""``--criterion eisl``: the Edit-Invariant Sequence Loss on fairseq models."""

import logging
import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.logging import metrics
from fairseq.models.nat import FairseqNATModel
from torch import Tensor

from ..losses import (
    EISLTerms,
    eisl_feature_terms,
    eisl_log_prob_terms,
    eisl_logit_terms,
    may_overwrite,
    random_numbers,
)
from . import _nat as nat
from ._candidates import Candidates, decode, decode_in_parallel, teacher_forced
from ._flags import EISLCriterionConfig, allow_negative_values, check_flags, loss_options
from ._idle_flags import idle_flags, idle_nat_flags
from ._model_outputs import Scores, check_model, run, run_twice, unwrapped
from ._output_layer import LARGE, output_layer

logger = logging.getLogger(__name__)


@register_criterion("eisl", dataclass=EISLCriterionConfig)
class EISLCriterion(FairseqCriterion):
    """EISL on any stock encoder-decoder, autoregressive or not.

    Autoregressive: a candidate is decoded without gradient; one forward on it gives
    the logits that the target's n-grams are matched against (paper, "Efficient
    approximate computation"). Non-autoregressive: the slots of the model are matched;
    the terms for lengths, insertions, deletions and the CRF stay what they are.

    ``sample_size`` is the number of sentences, so that gradients do not depend on how
    a batch is split over updates or workers.
    """

    def __init__(self, cfg: EISLCriterionConfig, task):
        super().__init__(task)
        check_flags(cfg)
        self.cfg, self.said = cfg, False
        self.options = loss_options(cfg)
        self.ngram_factor, self.ce_factor = cfg.ngram_factor, cfg.ce_factor
        self.label_smoothing = cfg.label_smoothing
        self.decoding = str(cfg.train_decoding)
        self.after_eos, self.parallel = cfg.candidate_after_eos, cfg.parallel_decoding
        self.layer = str(cfg.output_layer)
        dictionary = task.target_dictionary
        self.eos_idx = dictionary.eos()
        self.symbols = nat.Symbols(dictionary.bos(), dictionary.pad(), dictionary.eos())
        self.specials, self.steps = str(cfg.eisl_special), str(cfg.eisl_steps)
        self.released = str(cfg.eisl_compat) == "released"
        self.factors = {
            "word_crf": cfg.crf_loss_factor,
            "mask_ins": cfg.mask_ins_loss_factor,
            "word_del": cfg.word_del_loss_factor,
        }

    @classmethod
    def add_args(cls, parser):
        """The flags, of which some take lists that begin with a minus sign."""
        super().add_args(parser)
        allow_negative_values(parser)

    def forward(self, model, sample, reduce=True):
        """Loss in nats, summed over sentences (or (B,) without ``reduce``), the number of
        sentences, and sums to log."""
        check_model(model)
        nsentences = sample_size = sample["target"].size(0)
        if not isinstance(unwrapped(model), FairseqNATModel):
            if self.released:
                raise ValueError("--eisl-compat released is for non-autoregressive models only")
            loss, log = self._autoregressive(model, sample)
        else:
            loss, log = self._non_autoregressive(model, sample)
            if self.released:  # batch means
                sample_size = 1
        if reduce:
            loss = loss.sum()
        log.update(
            loss=loss.detach().sum(),
            ntokens=sample["ntokens"],
            nsentences=nsentences,
            sample_size=sample_size,
        )
        return loss, sample_size, log

    def _autoregressive(self, model, sample):
        self._say(lambda: idle_flags(self.cfg, unwrapped(model), self._has_blocks(model)))
        target = sample["target"]
        loss: Any = 0.0
        forced: Optional[Scores] = None
        log: Dict[str, Any] = {}
        if self.ngram_factor > 0:
            terms, candidates, forced = self._terms(model, sample)
            eisl = terms.total()
            loss = self.ngram_factor * eisl
            log.update(eisl=eisl.sum().detach(), target_tokens=sample["ntokens"])
            one_length = candidates.tokens is target
            log.update(self._statistics(terms, candidates.tokens, candidates.mask, one_length))
        else:  # cross entropy alone: nothing is decoded
            forced = run(model, sample["net_input"], len(self.task.target_dictionary))
        if forced is not None:
            ce, nll = self._cross_entropy(forced, target)
            if self.ce_factor > 0:
                loss = loss + self.ce_factor * ce
            log.update(ce=ce.sum().detach(), nll=nll.sum().detach(), nll_tokens=sample["ntokens"])
        return loss, log

    def _terms(self, model, sample) -> Tuple[EISLTerms, Candidates, Optional[Scores]]:
        """EISL, the candidates that it is of, and teacher-forced scores where they are needed."""
        target, net_input = sample["target"], sample["net_input"]
        seeds = self._seeds(sample)
        candidates = self._candidates(model, sample, seeds)
        rest = (target, candidates.mask, target.ne(self.padding_idx), self._options(), seeds)
        layer = self._layer_of_blocks(model, target)
        if layer is not None:
            net_input = {**net_input, "prev_output_tokens": candidates.prefix}
            features = model(**net_input, features_only=True)[0]
            weight = layer.weight.to(features.dtype)  # autocast gives half-precision features
            bias = None if layer.bias is None else layer.bias.to(features.dtype)
            return eisl_feature_terms(features, weight, bias, *rest), candidates, None
        scores, forced = self._scores(model, sample, candidates)
        if scores.normalized:
            return eisl_log_prob_terms(scores.values, *rest), candidates, forced
        # In place, where nobody else needs the logits then.
        in_place = forced is None and may_overwrite(scores.values)
        terms = eisl_logit_terms(scores.values, *rest, in_place=in_place)
        return terms, candidates, forced

    def _non_autoregressive(self, model, sample):
        batch = sample["target"].size(0)
        outputs = nat.run(model, sample, len(self.task.target_dictionary))
        self._say(lambda: idle_nat_flags(self.cfg, unwrapped(model), outputs, batch))
        words, seeds = outputs[nat.WORDS], self._seeds(sample)
        if self.released:
            losses = nat.released_losses(outputs, self.options, seeds)
        else:
            with_ce = self.ce_factor > 0 or not self.training
            losses = nat.sentence_losses(
                *(outputs, batch, self.symbols, self._options(), self.specials, self.steps),
                *(seeds, with_ce),
            )
        eisl, factor = self.ngram_factor * losses.eisl, words.get("factor", 1.0)
        if self.ngram_factor == 0:
            eisl = eisl.detach()  # saves the backward
        # The authors' code has the model's own factor on the cross entropy only.
        loss = eisl if self.released else factor * eisl
        log = {"eisl": losses.eisl.detach().sum()}
        if losses.ce is not None:
            if self.ce_factor > 0:
                loss = loss + self.ce_factor * factor * losses.ce
            log["ce"] = losses.ce.detach().sum()
        for name, values in losses.others.items():
            factor = outputs[name].get("factor", 1.0) * self.factors.get(name, 1.0)
            loss = loss + factor * values
            log[f"part_{name}"] = values.detach().sum()
        if not self.training:
            log["nll"], log["nll_tokens"] = nat.likelihood(words, batch, self.symbols)
        tokens, mask = nat.first_pass(words, batch, self.symbols)
        log.update(self._statistics(losses.terms, tokens, mask, one_length=True))
        return loss, log

    def _options(self):
        return self.options if self.training else self.options.without_noise()

    def _seeds(self, sample):
        """(B,) seeds of the random choices of this update: they depend on the trainer's
        seed, the update and the sentence, not on how the batch is put together.

        The trainer calls ``torch.manual_seed(--seed + update)`` before each update, alike
        on all workers; this reads it back.
        """
        ids = sample["id"] if "id" in sample else torch.arange(sample["target"].size(0))
        ids = ids.to(sample["target"].device)
        return random_numbers.fold(ids, torch.initial_seed())

    def _has_blocks(self, model) -> bool:
        """Whether blocks can be had, where they are asked for."""
        return self.layer != "blocks" or output_layer(model) is not None

    def _layer_of_blocks(self, model, target):
        """The output layer whose logits are not built as a whole, or None where they are: on
        request, where cross entropy needs them, and where the model has no such layer."""
        if self.layer == "whole" or self.ce_factor > 0 or not self.training:
            return None
        if self.layer == "auto" and target.numel() * len(self.task.target_dictionary) < LARGE:
            return None
        return output_layer(model)

    def _candidates(self, model, sample, seeds) -> Candidates:
        if self.decoding == "teacher-forcing":
            return teacher_forced(sample, self.padding_idx)
        if self.parallel:
            return decode_in_parallel(
                model, sample, self.padding_idx, self.eos_idx, after_eos=self.after_eos
            )
        sampling = self.decoding == "sample" and self.training
        return decode(
            model,
            sample,
            self.padding_idx,
            self.eos_idx,
            seeds=random_numbers.fold(seeds, 0) if sampling else None,
            after_eos=self.after_eos,
        )

    def _forced(self) -> bool:
        """Whether teacher-forced scores are needed."""
        return self.ce_factor > 0 or not self.training

    def _scores(self, model, sample, candidates: Candidates) -> Tuple[Scores, Optional[Scores]]:
        """Scores on the candidate, and teacher-forced ones where they are needed."""
        net_input, vocabulary = sample["net_input"], len(self.task.target_dictionary)
        if candidates.tokens is sample["target"]:
            scores = run(model, net_input, vocabulary)
            return scores, scores if self._forced() else None
        if not self._forced():
            net_input = {**net_input, "prev_output_tokens": candidates.prefix}
            return run(model, net_input, vocabulary), None
        return run_twice(model, net_input, candidates.prefix, vocabulary)

    def _say(self, lines: Callable[[], Iterable[str]]):
        """Warn, once and at the start, of flags that change nothing."""
        if self.training and not self.said:
            self.said = True
            for line in lines():
                logger.warning(line)

    def _cross_entropy(self, scores: Scores, target):
        """Per sentence: label-smoothed cross entropy per token, and the sum of the NLL."""
        real = target.ne(self.padding_idx)
        loss, nll = label_smoothed_nll_loss(
            scores.log_probs(),
            target,
            self.label_smoothing,
            ignore_index=self.padding_idx,
            reduce=False,
        )
        nll = nll.squeeze(-1).sum(1)
        return loss.squeeze(-1).sum(1) / real.sum(1).clamp(min=1), nll

    @torch.no_grad()
    def _statistics(
        self, terms: EISLTerms, tokens: Tensor, mask: Tensor, one_length: bool
    ) -> Dict[str, Any]:
        """Sums over sentences or tokens; ``reduce_metrics`` makes them averages.

        ``one_length``: candidates are as long as targets.
        """
        used = terms.weights.gt(0)
        log: Dict[str, Any] = {}
        orders: List[Any] = [*self.options.ngrams, "short"]
        always = (0, 1) if one_length else (1,)  # orders that fit into every sentence
        pairs = zip(self.options.ngrams, self.options.order_weights)
        if any(n in always and weight > 0 for n, weight in pairs):
            orders.pop()
        for column, n in enumerate(orders):
            log[f"order_{n}"] = terms.losses[:, column].sum()
            log[f"order_{n}_sentences"] = used[:, column].sum()
        share = terms.weights / terms.weights.sum(1, keepdim=True).clamp(min=1e-12)
        same = tokens[:, 1:].eq(tokens[:, :-1]) & mask[:, 1:] & mask[:, :-1]
        log["selection_entropy"] = (share * terms.entropy).sum()
        log["selection_rows"] = len(share)
        log["candidate_tokens"] = mask.sum()
        log["candidate_repeats"] = same.sum()
        return log

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Averages over all workers; losses in nats, ``nll_loss`` in bits as in fairseq."""

        def total(key):
            return sum(log.get(key, 0) for log in logging_outputs)

        def average(name, value, count, round=3):
            metrics.log_scalar(name, value / max(count, 1), count, round=round)

        def average_if_any(name, value, count, round=3):
            if count > 0:
                average(name, value, count, round)
            else:
                _forget_if_empty(name)

        sentences = total("sample_size")
        average("loss", total("loss"), sentences)
        if any("eisl" in log for log in logging_outputs):
            average("eisl", total("eisl"), sentences)
        keys = sorted({key for log in logging_outputs for key in log if key.startswith("order_")})
        for key in keys:
            if not key.endswith("_sentences"):
                name = "eisl_" + key[len("order_") :]
                average_if_any(name, total(key), total(f"{key}_sentences"))
        for key in sorted({key for log in logging_outputs for key in log}):
            if key.startswith("part_"):
                average(key[len("part_") :], total(key), sentences)
        tokens = total("nll_tokens")
        if any("ce" in log for log in logging_outputs):
            average("ce", total("ce"), sentences)
        if tokens > 0:
            average("nll_loss", total("nll") / math.log(2), tokens)
            metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
        if any("target_tokens" in log for log in logging_outputs):  # decoded candidates
            average("candidate_length", total("candidate_tokens"), sentences, round=2)
            average("target_length", total("target_tokens"), sentences, round=2)
        repeats = 100.0 * total("candidate_repeats")
        average_if_any("repetition", repeats, total("candidate_tokens"), round=2)
        average_if_any("selection_entropy", total("selection_entropy"), total("selection_rows"))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All logged values are sums."""
        return True


def _forget_if_empty(name: str):
    """Log nothing under a name of which nothing was counted.

    A zero would read like a perfect loss, and the emptied meter of an earlier update is shown as
    null, which no reader of a log expects.
    """
    for meters in metrics.get_active_aggregators():
        if name in meters and not meters[name].count:
            del meters[name]
            meters.priorities = [entry for entry in meters.priorities if entry[2] != name]
