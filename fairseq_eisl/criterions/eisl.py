"""``--criterion eisl``: the Edit-Invariant Sequence Loss on fairseq models."""

import math
from typing import Any, Dict

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
    eisl_logit_terms,
    may_overwrite,
    random_numbers,
)
from . import _nat as nat
from ._candidates import (
    Candidates,
    check_model,
    decode,
    decode_in_parallel,
    teacher_forced,
    unwrapped,
)
from ._flags import EISLCriterionConfig, check_flags, loss_options
from ._output_layer import LARGE, output_layer


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
        target = sample["target"]
        seeds = self._seeds(sample)
        candidates = self._candidates(model, sample, seeds)
        rest = (target, candidates.mask, target.ne(self.padding_idx), self._options(), seeds)
        layer, forced_logits = self._layer_of_blocks(model, target), None
        if layer is None:
            logits, forced_logits = self._logits(model, sample, candidates)
            # In place, where nobody else needs the logits then.
            in_place = forced_logits is None and may_overwrite(logits)
            terms = eisl_logit_terms(logits, *rest, in_place=in_place)
        else:
            net_input = {**sample["net_input"], "prev_output_tokens": candidates.prefix}
            features = model(**net_input, features_only=True)[0]
            weight = layer.weight.to(features.dtype)  # autocast gives half-precision features
            bias = None if layer.bias is None else layer.bias.to(features.dtype)
            terms = eisl_feature_terms(features, weight, bias, *rest)
        eisl = terms.total()
        loss = self.ngram_factor * eisl
        log = {"eisl": eisl.sum().detach(), "target_tokens": sample["ntokens"]}
        if forced_logits is not None:
            ce, nll = self._cross_entropy(forced_logits, target)
            if self.ce_factor > 0:
                loss = loss + self.ce_factor * ce
            log.update(ce=ce.sum().detach(), nll=nll.sum().detach(), nll_tokens=sample["ntokens"])
        log.update(self._statistics(terms, candidates.tokens, candidates.mask))
        return loss, log

    def _non_autoregressive(self, model, sample):
        batch = sample["target"].size(0)
        outputs = nat.run(model, sample, len(self.task.target_dictionary))
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
        log.update(self._statistics(losses.terms, *nat.first_pass(words, batch, self.symbols)))
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
    def _statistics(self, terms: EISLTerms, tokens: Tensor, mask: Tensor) -> Dict[str, Any]:
        """Sums over sentences or tokens; ``reduce_metrics`` makes them averages."""
        used = terms.weights.gt(0)
        log: Dict[str, Any] = {}
        orders = [*self.options.ngrams, "short"]
        if any(
            n in (0, 1) and w > 0 for n, w in zip(self.options.ngrams, self.options.order_weights)
        ):
            orders.pop()  # such an order fits into every sentence
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
        average(
            "repetition",
            100.0 * total("candidate_repeats"),
            total("candidate_tokens"),
            round=2,
        )
        average("selection_entropy", total("selection_entropy"), total("selection_rows"))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All logged values are sums."""
        return True
