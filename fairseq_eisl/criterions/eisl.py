"""``--criterion eisl``: the Edit-Invariant Sequence Loss on fairseq models."""

from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from fairseq.criterions import register_criterion
from torch import Tensor

from ..losses import (
    EISLOptions,
    EISLTerms,
    Slots,
    SlotTerms,
    eisl_feature_terms,
    eisl_log_prob_terms,
    eisl_logit_terms,
    random_numbers,
    slot_terms,
)
from ..losses.latent import eisl_ctc_log_prob_terms, eisl_dag_log_prob_terms
from .averages import Sums
from .base import Log, SequenceCriterion
from .eisl_flags import FLAG_GROUPS, EISLCriterionConfig, check_flags, loss_options
from .nat_outputs import NATLosses, NATOutput, NATOutputs, entry_losses
from .sequence_output import SequenceOutput


@register_criterion("eisl", dataclass=EISLCriterionConfig)
class EISLCriterion(SequenceCriterion):
    """EISL on any stock encoder-decoder, autoregressive or not.

    Autoregressive: the target's n-grams are matched against the logits on the candidate (paper,
    "Efficient approximate computation"). Non-autoregressive: against the slots of the model.
    """

    flag_groups = FLAG_GROUPS
    own_averages = (r"eisl_\w+", "selection_entropy")
    takes_features = True

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.options = loss_options(cfg)
        self.specials, self.steps = str(cfg.eisl_special), str(cfg.eisl_steps)
        self.word_starts = _word_starts(task) if str(cfg.ngram_units) == "words" else None
        if str(cfg.eisl_compat) == "released":
            self.released = "--eisl-compat released"

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_flags(cfg)
        loss_options(cfg)

    def idle_lines(self):
        """What the position selection does not look at."""
        selection = str(self.cfg.position_selection)
        if selection in ("uniform", "count") and self.sequence_factor > 0:
            flags = ["gumbel_temperature", "selection_on"]
            yield from self.given.lines(flags, f"with --position-selection {selection}")

    def autoregressive(self, model, sample) -> Tuple[Tensor, Log]:
        """As every criterion's; the authors' code for the other models has nothing to say here."""
        if self.released:
            raise ValueError(f"{self.released} is for non-autoregressive models only")
        return super().autoregressive(model, sample)

    def sequence_losses(self, output: SequenceOutput) -> Tuple[Tensor, Log]:
        """EISL of each sentence in nats, and its orders."""
        if output.alignment is not None:
            terms = self._latent_terms(output)
            return terms.total(), self._statistics(terms, one_length=False)
        output.need_slots(self.name())
        options = self.options if self.training else self.options.without_noise()
        if output.slots is not None:
            slots = self._slot_terms(output, options)
            return slots.total(), self._statistics(slots.eisl, output.as_long_as_target)
        terms = self._candidate_terms(output, options)
        return terms.total(), self._statistics(terms, output.as_long_as_target)

    def _slot_terms(self, output: SequenceOutput, options: EISLOptions) -> SlotTerms:
        assert output.scores is not None and output.slots is not None
        return slot_terms(
            output.scores.values,
            Slots(
                output.targets,
                real=output.mask,
                predicted=output.slots.predicted,
                special=output.slots.special,
                word_starts=self._starts(output),
                ngram_weights=self.ngram_weights(output.targets),
            ),
            specials=self.specials,
            options=options,
            generator=output.seeds,
            in_place=output.overwritable,
        )

    def _latent_terms(self, output: SequenceOutput) -> EISLTerms:
        """Of the n-grams that all alignments together say. Start and end are words of the target,
        or left out; they have no slots of their own."""
        assert output.alignment is not None
        words = output.target_mask
        if self.specials == "exclude":
            words = words & ~self.symbols.special(output.targets)
        rest: Dict[str, Any] = {
            "output_mask": output.mask,
            "target_mask": words,
            "options": self.options if self.training else self.options.without_noise(),
            "generator": output.seeds,
            "word_starts": self._starts(output),
            "ngram_weights": self.ngram_weights(output.targets),
        }
        blank, links = output.alignment
        log_probs = output.target_log_probs()  # the likelihood's as well
        if blank is not None:
            return eisl_ctc_log_prob_terms(log_probs, output.targets, **rest)
        assert links is not None
        return eisl_dag_log_prob_terms(log_probs, links, output.targets, **rest)

    def _starts(self, output: SequenceOutput) -> Optional[Tensor]:
        """(B, S) bool, the tokens that begin a word; None where pieces are what counts."""
        if self.word_starts is None:
            return None
        return self.word_starts(output.targets.masked_fill(~output.target_mask, self.eos_idx))

    def _candidate_terms(self, output: SequenceOutput, options: EISLOptions) -> EISLTerms:
        rest: Dict[str, Any] = {
            "output_mask": output.mask,
            "target_mask": output.target_mask,
            "options": options,
            "generator": output.seeds,
            "word_starts": self._starts(output),
            "ngram_weights": self.ngram_weights(output.targets),
        }
        if output.features is not None:
            weight, bias = output.weight_and_bias()
            return eisl_feature_terms(output.features, weight, bias, output.targets, **rest)
        assert output.scores is not None
        values = output.scores.values
        if output.scores.normalized:
            return eisl_log_prob_terms(values, output.targets, **rest)
        return eisl_logit_terms(values, output.targets, **rest, in_place=output.overwritable)

    def nat_losses(self, outputs: NATOutputs, seeds: Tensor) -> NATLosses:
        """Of sentences; batch means with ``--eisl-compat released``."""
        if not self.released:
            return super().nat_losses(outputs, seeds)
        if outputs.words.latent:
            raise ValueError(f"{self.released} is for models with a slot for every target token")
        sequence, ce, terms = released_losses(outputs, self.options, seeds)
        log = self._statistics(terms, one_length=True)
        # The authors' code has the model's own factor on the cross entropy only.
        return NATLosses(sequence, ce, _batch_means(outputs), log, factor=1.0)

    @torch.no_grad()
    def _statistics(self, terms: EISLTerms, one_length: bool) -> Log:
        """Sums over sentences. ``one_length``: candidates are as long as targets."""
        used = terms.weights.gt(0)
        orders: List[Any] = [*self.options.ngrams, "short"]
        always = (0, 1) if one_length else (1,)  # orders that fit into every sentence
        pairs = zip(self.options.ngrams, self.options.order_weights)
        if any(n in always and weight > 0 for n, weight in pairs):
            orders.pop()
        log: Log = {}
        for column, n in enumerate(orders):
            log[f"order_{n}"] = terms.losses[:, column].sum()
            log[f"order_{n}_sentences"] = used[:, column].sum()
        share = terms.weights / terms.weights.sum(1, keepdim=True).clamp(min=1e-12)
        log["selection_entropy"] = (share * terms.entropy).sum()
        log["selection_rows"] = len(share)
        return log

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """The loss of each order, over the sentences that use it, and the selection's entropy."""
        for key in sums.keys("order_"):
            if not key.endswith("_sentences"):
                name = "eisl_" + key[len("order_") :]
                sums.average_if_any(name, sums.total(key), sums.total(f"{key}_sentences"))
        rows = sums.total("selection_rows")
        sums.average_if_any("selection_entropy", sums.total("selection_entropy"), rows)


def _word_starts(task) -> Callable[[Tensor], Tensor]:
    """What the task knows of words."""
    if not hasattr(task, "word_starts"):
        raise ValueError(
            "--ngram-units words: the task must know where words begin, as noisy_translation and "
            f"noisy_translation_lev do; --task is {type(task).__name__}"
        )
    return task.word_starts


def released_losses(
    outputs: NATOutputs, options: EISLOptions, seeds: Tensor
) -> Tuple[Tensor, Tensor, EISLTerms]:
    """EISL and cross entropy of the words as the authors' code takes them: batch means.

    Padding counts as target tokens and as slots, observed slots are trained, special
    symbols are words; only the cross entropy knows the model's mask. Orders are read off the
    padded length, see :func:`_released_orders`.
    """
    words = outputs.words
    steps = len(words.targets) // outputs.batch
    seeds = torch.cat([random_numbers.fold(seeds, step) for step in range(steps)])
    options = _released_orders(options, words.targets.size(1))
    terms = eisl_logit_terms(words.logits, words.targets, options=options, generator=seeds)
    return terms.total().mean(), _entry_mean(*entry_losses(words)), terms


def _batch_means(outputs: NATOutputs) -> Dict[str, Tensor]:
    """Scalars of everything but the words."""
    return {
        name: _entry_mean(*entry_losses(output))
        if isinstance(output, NATOutput)
        else output.loss.mean()
        for name, output in outputs.others.items()
    }


def _entry_mean(losses: Tensor, mask: Tensor) -> Tensor:
    return losses.sum() / mask.sum().clamp(min=1)


def _released_orders(options: EISLOptions, length: int) -> EISLOptions:
    """The options with what the authors' code makes of the orders for a padded length.

    Orders that come to the same n are one; where some are merged or do not fit, those that are
    left have equal weights.
    """
    found = [n if n > 0 else length + n for n in options.ngrams]
    first = [1 <= n <= length and n not in found[:i] for i, n in enumerate(found)]
    if all(first) or not any(first):  # none fits: the whole length, as without this
        return options
    share = sum(options.order_weights) / sum(first)
    return replace(options, weights=[share if used else 0.0 for used in first])
