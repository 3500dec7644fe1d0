"""What every criterion over a model's own output needs; one such criterion is one new file.

A criterion says what the loss of each sentence is (:meth:`SequenceCriterion.sequence_losses`).
From here come candidates and the forward on them, slots of non-autoregressive models and their
other terms, cross entropy beside it, seeds, sums and averages.
"""

import logging
from typing import Any, Callable, Dict, Iterable, Optional, Tuple

import torch
from fairseq.criterions import (
    CRITERION_DATACLASS_REGISTRY,
    CRITERION_REGISTRY,
    FairseqCriterion,
)
from fairseq.models.nat import FairseqNATModel
from torch import Tensor

from ..decoding import Candidates
from ..decoding.fairseq.candidates import decode, decode_in_parallel, teacher_forced
from ..decoding.fairseq.model_scores import Scores, unwrapped
from ..losses import NGramWeights, may_overwrite, random_numbers
from . import latent_outputs, model_outputs, nat_outputs, nat_terms
from .averages import RESERVED, STATISTICS, Sums, candidate_statistics, log_losses, log_other_parts
from .candidate_flags import (
    PART_FACTORS,
    SequenceCriterionConfig,
    allow_negative_values,
    at_eos,
    check_candidate_flags,
    check_factors,
    flag_of,
)
from .clean_text import TrainingWeights, idle_number_lines
from .cross_entropy import cross_entropy
from .idle_flags import FlagGroups, GivenFlags, idle_flags, idle_nat_flags
from .latent_outputs import latent_likelihood
from .nat_outputs import NATLosses, NATOutputs
from .output_layer import layer_of_blocks, output_layer
from .sequence_output import SequenceOutput

logger = logging.getLogger(__name__)

AUTOREGRESSIVE, NON_AUTOREGRESSIVE = "autoregressive", "non-autoregressive"
Log = Dict[str, Any]


class SequenceCriterion(FairseqCriterion):
    """A loss of each sentence over a model's own output, on any stock encoder-decoder.

    Autoregressive: a candidate is decoded without gradient; one forward on it gives the scores
    that the loss is of. Non-autoregressive: the scores are those of the model's slots; the terms
    for lengths, insertions, deletions and the CRF stay what they are.

    ``sample_size`` is the number of sentences, so that gradients do not depend on how a batch is
    split over updates or workers.

    A subclass is registered with a dataclass that extends ``CandidateCriterionConfig`` (or
    ``SequenceCriterionConfig``, where the candidate is always the target), and has
    :meth:`sequence_losses`. It may say more: which models it fits (``kinds``), flags of its
    own and the factor of its loss (``flag_groups``, :meth:`check_flags`).
    """

    kinds: Tuple[str, ...] = (AUTOREGRESSIVE, NON_AUTOREGRESSIVE)
    """The kinds of models that it trains; tasks refuse the others."""
    flag_groups = FlagGroups()
    """Flags that only some training looks at."""
    own_averages: Tuple[str, ...] = ()
    """Regular expressions of what :meth:`log_own_averages` shows."""
    takes_features = False
    """Whether :meth:`sequence_losses` takes features and their layer in place of scores."""
    sequence_factor = 1.0
    """Factor of the sequence loss, from the flag ``flag_groups.factor`` where there is one; with 0,
    only cross entropy is trained."""
    steps = "all"
    """Refinement steps of iNAT's training that the loss is for: all, or first (the others keep
    their cross entropy)."""
    takes_more_slots = False
    """Whether a non-autoregressive model may have more slots than target tokens."""
    blank: Optional[int] = None
    """The id of what a slot without a word says, where there is such a symbol."""
    is_likelihood = False
    """Whether its loss is the model's own likelihood, of models with latent alignments."""
    released = ""
    """The flag, if any, that makes losses means over the batch, as the authors' code does."""
    is_dummy = False  # the batch only fills up (fairseq_fixes)

    def __init__(self, cfg, task):
        super().__init__(task)
        self.check_flags(cfg)
        self.cfg, self.said = cfg, False
        if self.name() in RESERVED:
            raise ValueError(f"--criterion {self.name()}: this name is that of a part of the log")
        flags = CRITERION_DATACLASS_REGISTRY.get(self.name(), SequenceCriterionConfig)
        defaults = {name: f.default for name, f in flags.__dataclass_fields__.items()}
        self.given = GivenFlags(cfg, defaults)
        if self.flag_groups.factor:
            self.sequence_factor = getattr(cfg, self.flag_groups.factor)
        self.ce_factor, self.label_smoothing = cfg.ce_factor, cfg.label_smoothing
        # A criterion whose flags say nothing of candidates has the target for one.
        self.decoding = str(getattr(cfg, "train_decoding", "teacher-forcing"))
        self.at_eos = at_eos(cfg)
        self.parallel = getattr(cfg, "parallel_decoding", False)
        self.share_encoder_output = getattr(cfg, "share_encoder_output", False)
        self.layer = str(getattr(cfg, "output_layer", "whole"))
        dictionary = task.target_dictionary
        self.vocabulary, self.eos_idx = len(dictionary), dictionary.eos()
        self.symbols = nat_outputs.Symbols(dictionary.bos(), dictionary.pad(), dictionary.eos())
        self.terms = nat_terms.NATTerms(cfg, task)
        self.factors = {part: getattr(cfg, flag) for part, flag in PART_FACTORS.items()}
        self.training_weights: Optional[TrainingWeights] = None
        if getattr(cfg, "clean_text", None) is not None:
            self.training_weights = TrainingWeights(cfg, task)

    # -- what a criterion says -----------------------------------------------------------

    def sequence_losses(self, output: SequenceOutput) -> Tuple[Tensor, Log]:
        """(B,) losses of the sentences in nats, attached to the graph, and sums to log.

        What is logged must be sums over sentences or tokens, the same ones for every batch:
        workers' are added up.
        """
        raise NotImplementedError

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError for flags that cannot be meant; called before any training starts."""
        check_candidate_flags(cfg)
        factor = cls.flag_groups.factor
        if factor:
            check_factors(cfg, factor)
        if factor and getattr(cfg, factor) == cfg.ce_factor == 0:
            flag = flag_of(factor)
            raise ValueError(f"{flag} and --ce-factor are both 0: nothing to train on")

    @classmethod
    def validated(cls) -> str:
        """A regular expression of what validation logs, to choose the best checkpoint by."""
        return "|".join(("loss", cls.name(), *cls.own_averages, *STATISTICS))

    def idle_lines(self) -> Iterable[str]:
        """Lines on flags of the criterion's own that change nothing, on whatever model."""
        return ()

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """Show averages of what :meth:`sequence_losses` logs."""

    # -- what it is given ------------------------------------------------------------------

    @classmethod
    def add_args(cls, parser):
        """The flags, of which some take lists that begin with a minus sign."""
        super().add_args(parser)
        allow_negative_values(parser)

    @classmethod
    def name(cls) -> str:
        """What it, or the class it extends, is registered as; its loss is logged under this."""
        names = {kind: name for name, kind in reversed(CRITERION_REGISTRY.items())}
        return next(names[kind] for kind in cls.__mro__ if kind in names)

    def forward(self, model, sample, reduce=True):
        """Loss in nats, summed over sentences (or (B,) without ``reduce``), the number of
        sentences, and sums to log."""
        model_outputs.check_model(model, self.name())
        nsentences = sample["target"].size(0)
        inner = unwrapped(model)
        is_nat = isinstance(inner, FairseqNATModel)
        kind = NON_AUTOREGRESSIVE if is_nat else AUTOREGRESSIVE
        if kind not in self.kinds:
            raise ValueError(
                f"--criterion {self.name()} is for {' and '.join(self.kinds)} models; "
                f"{type(inner).__name__} is {kind}"
            )
        loss, log = (self.non_autoregressive if is_nat else self.autoregressive)(model, sample)
        if reduce:
            loss = loss.sum()
        size = 1 if self.released else nsentences
        log.update(loss=loss.detach().sum(), ntokens=sample["ntokens"])
        log.update(nsentences=nsentences, sample_size=size)
        return loss, size, log

    def ngram_weights(self, targets: Tensor) -> Optional[NGramWeights]:
        """How much n-grams of (B, S) targets count in training (``--clean-text``); None where all
        count alike, as in validation."""
        if self.training_weights is None or not self.training:
            return None
        return self.training_weights(targets)

    # -- autoregressive models -------------------------------------------------------------

    def autoregressive(self, model, sample) -> Tuple[Tensor, Log]:
        """(B,) losses with their factors, and sums to log."""
        self.say_idle_flags(model, sample["net_input"])
        loss: Any = 0.0
        log: Log = {}
        forced: Optional[Scores] = None
        if self.sequence_factor > 0:
            output, candidates, forced = self._on_candidate(model, sample)
            losses, log = self.sequence_losses(output)
            loss = self.sequence_factor * losses
            log[self.name()] = losses.sum().detach()
            log["target_tokens"] = sample["ntokens"]
            log.update(candidate_statistics(candidates.tokens, candidates.mask))
        else:  # cross entropy alone: nothing is decoded
            forced = model_outputs.run(model, sample["net_input"], self.vocabulary)
        if forced is not None:
            target, smoothing = sample["target"], self.label_smoothing
            weights = self.ngram_weights(target)
            ce, nll = cross_entropy(forced, target, smoothing, self.padding_idx, weights)
            if self.ce_factor > 0:
                loss = loss + self.ce_factor * ce
            log.update(ce=ce.sum().detach(), nll=nll.sum().detach(), nll_tokens=sample["ntokens"])
        return loss, log

    def say_idle_flags(self, model, net_input):
        """Warn, once, of flags that change nothing with this autoregressive model."""
        inner = unwrapped(model)
        has_blocks = self.layer != "blocks" or output_layer(model) is not None
        shares = model_outputs.shares_encoder_output(inner, net_input)
        self._say(
            lambda: idle_flags(
                self.given, self.flag_groups, inner, blocks=has_blocks, shares=shares
            )
        )

    def _on_candidate(self, model, sample) -> Tuple[SequenceOutput, Candidates, Optional[Scores]]:
        """The output on the candidate, and teacher-forced scores where they are needed."""
        target, seeds = sample["target"], self.seeds(sample)
        net_input, layer = sample["net_input"], self._layer_of_blocks(model, target)
        if self._shares_encoder_output(model, net_input):
            within = model_outputs.candidate_within(
                model,
                net_input,
                lambda encoder_out: self._candidates(model, sample, seeds, encoder_out),
                twice=self._needs_forced(),
            )
            with within as found:
                ran = self._run(model, net_input, net_input["prev_output_tokens"], False, layer)
            candidates = found[0]
        else:
            candidates = self._candidates(model, sample, seeds)
            is_target = candidates.tokens is target
            ran = self._run(model, net_input, candidates.prefix, is_target, layer)
        scores, forced, features = ran
        output = SequenceOutput(
            targets=target,
            target_mask=target.ne(self.padding_idx),
            mask=candidates.mask,
            seeds=seeds,
            scores=scores,
            features=features,
            layer=layer,
            # In place, where nobody else needs the logits then.
            overwritable=forced is None and scores is not None and may_overwrite(scores.values),
            as_long_as_target=candidates.tokens is target,
        )
        return output, candidates, forced

    def _run(
        self, model, net_input, prefix: Tensor, is_target: bool, layer
    ) -> Tuple[Optional[Scores], Optional[Scores], Optional[Tensor]]:
        """Scores on the decoder input ``prefix``, teacher-forced ones where they are needed, and
        features in place of the scores where there is a ``layer``."""
        on_prefix = {**net_input, "prev_output_tokens": prefix}
        if layer is not None:
            return None, None, model(**on_prefix, features_only=True)[0]
        if is_target:
            scores = model_outputs.run(model, net_input, self.vocabulary)
            return scores, scores if self._needs_forced() else None, None
        if not self._needs_forced():
            return model_outputs.run(model, on_prefix, self.vocabulary), None, None
        both = model_outputs.run_twice(model, net_input, prefix, self.vocabulary)
        return (*both, None)

    def _needs_forced(self) -> bool:
        """Whether teacher-forced scores are needed."""
        return self.ce_factor > 0 or not self.training

    def _shares_encoder_output(self, model, net_input) -> bool:
        """In training only: validation decodes as generation does, without dropout."""
        return (
            self.share_encoder_output
            and self.training
            and self.decoding != "teacher-forcing"
            and model_outputs.shares_encoder_output(unwrapped(model), net_input)
        )

    def _layer_of_blocks(self, model, target):
        """The output layer whose logits are not built as a whole, or None where they are: on
        request, where cross entropy needs them, and where the model has no such layer."""
        if not self.takes_features or self._needs_forced():
            return None
        return layer_of_blocks(model, self.layer, target.numel() * self.vocabulary)

    def _candidates(self, model, sample, seeds, encoder_out=None) -> Candidates:
        if self.decoding == "teacher-forcing":
            return teacher_forced(sample, self.padding_idx)
        rest = {"at_eos": self.at_eos, "encoder_out": encoder_out}
        if self.parallel:
            return decode_in_parallel(model, sample, self.padding_idx, self.eos_idx, **rest)
        sampling = self.decoding == "sample" and self.training
        rest["seeds"] = random_numbers.fold(seeds, 0) if sampling else None
        return decode(model, sample, self.padding_idx, self.eos_idx, **rest)

    # -- non-autoregressive models ---------------------------------------------------------

    def non_autoregressive(self, model, sample) -> Tuple[Tensor, Log]:
        """(B,) losses (or batch means) with their factors, and sums to log."""
        outputs = self.terms.outputs(model, sample, self.vocabulary, self.symbols)
        self._say(
            lambda: idle_nat_flags(
                self.given,
                self.flag_groups,
                unwrapped(model),
                outputs,
                first_step=self.steps == "first",
                released=self.released,
            )
        )
        losses = self.nat_losses(outputs, self.seeds(sample))
        sequence = self.sequence_factor * losses.sequence
        if self.sequence_factor == 0:
            sequence = sequence.detach()  # saves the backward
        loss, log = losses.factor * sequence, losses.log
        log[self.name()] = losses.sequence.detach().sum()
        if losses.ce is not None:
            if self.ce_factor > 0:
                loss = loss + self.ce_factor * outputs.words.factor * losses.ce
            log["ce"] = losses.ce.detach().sum()
        for name, values in losses.others.items():
            factor = outputs.others[name].factor * self.factors.get(name, 1.0)
            loss = loss + factor * values
            log[f"part_{name}"] = values.detach().sum()
        log.update(latent_outputs.statistics(outputs, not self.training, self.blank))
        return loss, log

    def nat_losses(self, outputs: NATOutputs, seeds: Tensor) -> NATLosses:
        """Losses of each sentence: they depend neither on padding nor on the rest of the batch.

        Rows of several refinement steps are averaged. The backward overwrites the words' logits
        where it may, but for NAT-CRF, whose likelihood needs them.
        """
        words, batch = outputs.words, outputs.batch
        count = len(words.targets) // batch
        rows = batch if self.steps == "first" else batch * count
        with_ce = self.ce_factor > 0 or not self.training
        output = nat_outputs.sequence_output(outputs, rows, seeds, may_overwrite(words.logits))
        losses, log = self.sequence_losses(output)
        sequence, ce = losses.view(-1, batch).sum(0), None
        if words.latent and with_ce and not self.is_likelihood:
            found = latent_likelihood(output)
            ce = found.per_token()
            log.update(found.log())
        with_ce = with_ce and outputs.has_own_slots()
        if with_ce or rows < len(words.targets):
            entries = nat_outputs.entry_losses(
                words._replace(mask=outputs.predicted()), self.ngram_weights(words.targets)
            )
            each = nat_outputs.row_means(*entries).view(count, batch)
            sequence = sequence + each[rows // batch :].sum(0)
            ce = each.mean(0) if with_ce else None
        others = nat_outputs.other_losses(outputs)
        return NATLosses(sequence / count, ce, others, log, words.factor)

    def seeds(self, sample):
        """(B,) seeds of the random choices of this update: they depend on the trainer's
        seed, the update and the sentence, not on how the batch is put together.

        The trainer calls ``torch.manual_seed(--seed + update)`` before each update, alike
        on all workers; this reads it back.
        """
        ids = sample["id"] if "id" in sample else torch.arange(sample["target"].size(0))
        ids = ids.to(sample["target"].device)
        return random_numbers.fold(ids, torch.initial_seed())

    def _say(self, lines: Callable[[], Iterable[str]]):
        """Warn, once and at the start, of flags that change nothing."""
        if self.training and not self.said:
            self.said = True
            for line in (*lines(), *idle_number_lines(self.given), *self.idle_lines()):
                logger.warning(line)

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Averages over all workers; losses in nats, ``nll_loss`` in bits as in fairseq."""
        sums = Sums(logging_outputs)
        log_losses(sums, cls.name())
        cls.log_own_averages(sums)
        log_other_parts(sums)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All logged values are sums."""
        return True
