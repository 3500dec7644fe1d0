"""What the trainers have in common, whatever the model is: loss, scaling, what is logged.

A trainer says how its batch becomes targets (``read_batch``), how the model scores a candidate
(``scores_on``) and how it says one (``candidate``).
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from ...decoding import candidate_statistics
from ...losses import IGNORE_INDEX, EISLTerms, NGramWeights, eisl_logit_terms
from .arguments import EISLArguments, loss_options
from .candidates import Candidate
from .loss_function import Items, cross_entropy, number_of_items, target_seeds
from .running_means import Pair, RunningMeans


class Batch(NamedTuple):
    """Targets (B, S) int64, which of them are real (B, S) bool, and what else a trainer keeps of
    the batch."""

    targets: Tensor
    mask: Tensor
    inputs: Dict[str, Any]

    @property
    def as_candidate(self) -> Candidate:
        """The target as the candidate: teacher forcing."""
        return Candidate(self.targets, self.mask)

    @property
    def lengths(self) -> Tensor:
        """(B,) the number of target tokens."""
        return self.mask.sum(1)


class Scored(NamedTuple):
    """A candidate, the (B, T, V) logits of its positions, and the model's whole output."""

    candidate: Candidate
    logits: Tensor
    outputs: Any


class EISLTraining:
    """A mix-in before a trainer, whose arguments hold :class:`EISLArguments`.

    It takes one argument more than the trainer does, ``ngram_weights``: gives how much the n-grams
    of (B, S) targets (-100 where there is none) count in training, in EISL and in the cross entropy
    beside it, as a :class:`fairseq_eisl.losses.CleanTextWeights` does. In evaluation all count
    alike.
    """

    # The sums of compute_loss are divided by the labels of the whole accumulated batch.
    loss_is_scaled_for_ga = True
    config_name = "EISLConfig"

    def __init__(
        self,
        *args: Any,
        ngram_weights: Optional[Callable[[Tensor], NGramWeights]] = None,
        **kwargs: Any,
    ):
        name = type(self).__name__
        if not (ngram_weights is None or callable(ngram_weights)):
            raise ValueError(
                f"ngram_weights: {name} calls it with targets, as a CleanTextWeights; it cannot "
                f"call a {type(ngram_weights).__name__}"
            )
        if kwargs.get("compute_loss_func") is not None:
            raise ValueError(f"compute_loss_func: {name} has a loss of its own; leave it away")
        super().__init__(*args, **kwargs)
        own: Any = self
        kind = type(own.args)
        if not issubclass(kind, EISLArguments):
            raise ValueError(f"args: {name} needs {self.config_name}, not {kind.__name__}")
        if own.args.n_gpu > 1:
            raise ValueError(
                f"{name} generates candidates, which nn.DataParallel cannot: start a process for "
                "each GPU with torchrun or accelerate launch, or show one with CUDA_VISIBLE_DEVICES"
            )
        # Then the trainer counts labels over the accumulated batch, whatever the model does.
        own.model_accepts_loss_kwargs = True
        self.ngram_weights = ngram_weights
        self.options = loss_options(own.args)
        orders = [f"eisl_{n}" for n in self.options.ngrams]
        rest = ("candidate_length", "target_length", "repetition", "selection_entropy")
        self.means = RunningMeans(["eisl", *orders, "eisl_short", "nll", *rest])
        self.evaluation_means = RunningMeans(self.means.names)

    # -- what a trainer says ---------------------------------------------------------------

    def read_batch(self, inputs: Dict[str, Any]) -> Batch:
        """The targets of what the collator made."""
        raise NotImplementedError

    def scores_on(self, model: Any, batch: Batch, candidate: Candidate) -> Scored:
        """A forward of the model with the candidate as what was said so far."""
        raise NotImplementedError

    def candidate(self, batch: Batch, sample: bool) -> Candidate:
        """What the model says itself, each as long as its target at most."""
        raise NotImplementedError

    # -- the loss --------------------------------------------------------------------------

    def compute_loss(
        self,
        model: Any,
        inputs: Dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Items = None,
    ) -> Any:
        """A scalar in nats per label of the accumulated batch, as the trainer divides no more; and
        the teacher-forced outputs, where they are asked for."""
        if inputs.get("labels") is None:
            raise ValueError(f"labels: {type(self).__name__} needs them, and the batch has none")
        own: Any = self
        batch = self.read_batch(inputs)
        decodes = self._decodes(model.training)
        forced = None
        if return_outputs or not decodes or not model.training or own.args.ce_factor > 0:
            forced = self.scores_on(model, batch, batch.as_candidate)
        total, means = self._sums(model, batch, forced, decodes)
        (self.means if model.training else self.evaluation_means).add(means)
        loss = total / number_of_items(num_items_in_batch, batch.mask)
        if own.args.average_tokens_across_devices and num_items_in_batch is not None:
            # These are the labels of all processes, whose gradients are averaged.
            loss = loss * (own.accelerator.num_processes // own.get_tp_size())
        return (loss, forced.outputs) if return_outputs and forced is not None else loss

    def _decodes(self, training: bool) -> bool:
        """Whether the candidate is the model's own output in this update; always in evaluation."""
        own: Any = self
        if own.args.train_decoding == "teacher-forcing" or own.args.ngram_factor == 0:
            return False
        return not training or own.state.global_step % own.args.decoding_interval == 0

    def _sums(
        self, model: Any, batch: Batch, forced: Optional[Scored], decodes: bool
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """The loss with its factors, summed over labels, and sums to log."""
        args: Any = getattr(self, "args")  # noqa: B009 (of the trainer that comes after this)
        lengths, total = batch.lengths, torch.zeros((), device=batch.mask.device)
        labels = batch.targets.masked_fill(~batch.mask, IGNORE_INDEX)
        weigh = self.ngram_weights if model.training else None
        weights = None if weigh is None else weigh(labels)
        means: Dict[str, Any] = {"target_length": (lengths.sum(), len(lengths))}
        if args.ngram_factor > 0:
            scored = forced
            if decodes or scored is None:
                sample = args.train_decoding == "sample" and model.training
                scored = self.scores_on(model, batch, self.candidate(batch, sample))
            terms = self._terms(model.training, batch, scored, weights)
            eisl = (terms.total() * lengths).sum()
            total = total + args.ngram_factor * eisl
            means["eisl"] = (eisl.detach(), lengths.sum())
            means.update(_statistics(terms, scored.candidate, self.options.ngrams))
        if forced is not None:
            smoothing = args.label_smoothing_factor
            ce, nll = cross_entropy(forced.logits, labels, smoothing, weights)
            if args.ce_factor > 0:
                total = total + args.ce_factor * ce.sum()
            means["nll"] = (nll.detach().sum(), lengths.sum())
        return total, means

    def _terms(
        self, training: bool, batch: Batch, scored: Scored, weights: Optional[NGramWeights]
    ) -> EISLTerms:
        own: Any = self
        return eisl_logit_terms(
            scored.logits,
            batch.targets,
            output_mask=scored.candidate.mask,
            target_mask=batch.mask,
            options=self.options if training else self.options.without_noise(),
            generator=target_seeds(batch.targets, batch.mask, own.args.seed, own.state.global_step),
            ngram_weights=weights,
        )

    # -- what is logged --------------------------------------------------------------------

    def log(self, logs: Dict[str, float], *args: Any, **kwargs: Any) -> None:
        """With the means of what training steps counted since the last time."""
        if "loss" in logs:
            logs.update(self._taken(self.means))
        super().log(logs, *args, **kwargs)  # type: ignore[misc]

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """With such means over the data among its metrics."""
        self.evaluation_means.forget()
        loop = super().evaluation_loop  # type: ignore[misc]
        output = loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        for name, value in self._taken(self.evaluation_means).items():
            output.metrics[f"{metric_key_prefix}_{name}"] = value
        return output

    def _taken(self, means: RunningMeans) -> Dict[str, float]:
        own: Any = self
        return means.taken(lambda sums: own.accelerator.reduce(sums, "sum"), own.args.device)


@torch.no_grad()
def _statistics(terms: EISLTerms, candidate: Candidate, ngrams: Any) -> Dict[str, Any]:
    """Sums over sentences and tokens."""
    sentences, used = len(terms.losses), terms.weights.gt(0)
    names: List[str] = [*(f"eisl_{n}" for n in ngrams), "eisl_short"]
    found: Dict[str, Pair] = {
        name: ((terms.losses[:, k] * used[:, k]).sum(), used[:, k].sum())
        for k, name in enumerate(names)
    }
    share = terms.weights / terms.weights.sum(1, keepdim=True).clamp(min=1e-12)
    counts = candidate_statistics(*candidate)
    tokens = counts["candidate_tokens"]
    found["selection_entropy"] = ((share * terms.entropy).sum(), sentences)
    found["candidate_length"] = (tokens, sentences)
    found["repetition"] = (100 * counts["candidate_repeats"], tokens)
    return found
