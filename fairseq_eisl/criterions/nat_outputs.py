"""Outputs of a non-autoregressive model as a typed record, and losses of their entries."""

from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import torch
from fairseq.models.nat import CMLMNATransformerModel
from torch import Tensor
from torch.nn import functional as F

from ..decoding.fairseq.model_scores import Scores, unwrapped
from ..losses import NGramWeights, random_numbers
from .averages import candidate_statistics
from .sequence_output import Alignment, SequenceOutput, SlotKinds

WORDS = "word_ins"
"""The output that a sequence loss is for, in all of fairseq's models."""


class Symbols(NamedTuple):
    """Ids of the special symbols that matter here."""

    bos: int
    pad: int
    eos: int

    def special(self, tokens: Tensor) -> Tensor:
        """Which tokens mark start or end."""
        return tokens.eq(self.bos) | tokens.eq(self.eos)


class NATOutput(NamedTuple):
    """One output of a model, beside what it is to be."""

    logits: Tensor
    """(B, T, V), or whatever shape with the targets' first ones."""
    targets: Tensor
    """(B, S) int64; for models of slots S = T, with latent alignments it need not be."""
    mask: Optional[Tensor] = None
    """Like the targets (or the first sizes of the logits, where there are more slots than those),
    bool: the entries that count; all, if None."""
    label_smoothing: float = 0.0
    factor: float = 1.0
    """The model's own factor of this part of the loss."""
    output_mask: Optional[Tensor] = None
    """(B, T) bool, the positions that are real; those of the targets, if None and S = T."""
    links: Optional[Tensor] = None
    """(B, T, T) log-probabilities of transitions, of models that have some."""
    blank: Optional[int] = None
    """The id, behind the dictionary's last, of what CTC models say in slots without a word."""

    @property
    def latent(self) -> bool:
        """Whether the loss has to find out which position says which token."""
        return self.links is not None or self.blank is not None

    def target_mask(self, pad: int) -> Tensor:
        """(B, S) bool, the target tokens that the positions are to say."""
        real = self.targets.ne(pad)
        return real & self.mask if self.latent and self.mask is not None else real

    def rows(self, first: int, last: int) -> "NATOutput":
        """The entries of some rows."""
        if first == 0 and last == len(self.targets):
            return self  # a slice would copy its gradient
        parts = ("mask", "output_mask", "links")
        given = {name: getattr(self, name) for name in ("logits", "targets", *parts)}
        return self._replace(**{k: v[first:last] for k, v in given.items() if v is not None})


class ModelLoss(NamedTuple):
    """A part of the loss that the model has computed itself (NAT-CRF's likelihood)."""

    loss: Tensor
    """A scalar in nats, the mean over the batch."""
    factor: float = 1.0


class StateLoss(NamedTuple):
    """A part of the loss that is of the decoder's states, and not of its logits."""

    loss: Tensor
    """(B,), of each sentence."""
    factor: float


Part = Union[NATOutput, ModelLoss, StateLoss]


class NATOutputs(NamedTuple):
    """All outputs of a model for a batch of sentences."""

    words: NATOutput
    others: Dict[str, Part]
    """Lengths, insertions, deletions, the CRF, by the names that fairseq logs them under; and
    terms of the decoder's states."""
    batch: int
    """Sentences. Models that refine in training (iNAT) have the rows of one step after another,
    ``len(words.targets) == batch * steps``."""
    symbols: Symbols
    more_slots: Optional[Tensor] = None
    """(B, T) int64, what the decoder was shown in place of a target, where it was given more slots
    than target tokens, to leave room for blanks."""

    def has_own_slots(self) -> bool:
        """Whether every target token has a position of its own, at its own place."""
        if self.more_slots is not None or self.words.latent:
            return False
        return self.words.logits.size(1) == self.words.targets.size(1)

    def slots(self) -> Tensor:
        """What the slots hold where the model writes nothing: the targets, or what it was shown."""
        return self.words.targets if self.more_slots is None else self.more_slots

    def output_mask(self) -> Tensor:
        """The positions that are real, like the first sizes of the words' logits."""
        words = self.words
        if words.output_mask is not None:
            return words.output_mask
        if self.has_own_slots():
            return words.targets.ne(self.symbols.pad)
        return torch.ones(words.logits.shape[:2], dtype=torch.bool, device=words.logits.device)

    def predicted(self) -> Tensor:
        """The word slots that the model fills, like :meth:`slots`."""
        real = self.slots().ne(self.symbols.pad)
        return real if self.words.mask is None else self.words.mask & real

    def special(self) -> Tensor:
        """The word slots that mark start or end, like :meth:`slots`."""
        return self.symbols.special(self.slots())


class NATLosses(NamedTuple):
    """Losses of a non-autoregressive model in nats, before their factors: (B,), or scalars."""

    sequence: Tensor
    ce: Optional[Tensor]
    """Cross entropy of the words, if it was asked for."""
    others: Dict[str, Tensor]
    """Every output but the words, by name."""
    log: Dict[str, Any]
    factor: float
    """The model's own factor of the words, as far as the sequence loss has it."""


def nat_outputs(model, sample, vocabulary: int, symbols: Symbols) -> NATOutputs:
    """The outputs of one forward, checked.

    Raises:
        ValueError: the batch holds no decoder input, or the model has no words.
    """
    name = type(unwrapped(model)).__name__
    if "prev_target" not in sample:
        raise ValueError(
            f"{name} is not autoregressive; it needs --task noisy_translation_lev (or "
            "translation_lev), whose batches hold the decoder's input"
        )
    net_input, batch = sample["net_input"], sample["target"].size(0)
    outputs = model(
        net_input["src_tokens"], net_input["src_lengths"], sample["prev_target"], sample["target"]
    )
    given = outputs.get(WORDS, {})
    for key, what in (("out", "(B, T, V), logits of words"), ("tgt", "(B, S), their targets")):
        if given.get(key) is None:
            raise ValueError(f"the outputs of {name} lack {WORDS}: {key} {what}")
    words = _typed(given)
    symbols_said = vocabulary + (words.blank is not None)
    if (
        words.logits.dim() != 3
        or words.logits.size(2) != symbols_said
        or len(words.logits) != len(words.targets)
        or words.targets.shape[1:] != sample["target"].shape[1:]
        or len(words.targets) % batch
    ):
        raise ValueError(
            f"{name} gives {WORDS}: out {tuple(words.logits.shape)} beside tgt "
            f"{tuple(words.targets.shape)}; (B, T, {symbols_said}) and (B, S) are needed, for "
            f"targets of shape {tuple(sample['target'].shape)}"
        )
    others: Dict[str, Part] = {}
    for key, output in outputs.items():
        if output.get("loss") is not None:
            others[key] = ModelLoss(output["loss"].float(), output.get("factor", 1.0))
        elif key != WORDS:
            others[key] = _typed(output)
    if not sample.get("more_slots", False):
        return NATOutputs(words, others, batch, symbols)
    shown = sample["prev_target"]
    real = shown.ne(symbols.pad)
    # The other models overwrite the marks of start and end.
    fixed = isinstance(unwrapped(model), CMLMNATransformerModel)
    mask = real & ~symbols.special(shown) if fixed else real
    words = words._replace(mask=mask, output_mask=real)
    return NATOutputs(words, others, batch, symbols, more_slots=shown)


def _typed(output: Dict[str, Any]) -> NATOutput:
    return NATOutput(
        output["out"],
        output["tgt"],
        output.get("mask"),
        label_smoothing=output.get("ls", 0.0),
        factor=output.get("factor", 1.0),
        output_mask=output.get("output_mask"),
        links=output.get("links"),
        blank=output.get("blank"),
    )


def sequence_output(
    outputs: NATOutputs, rows: int, seeds: Tensor, overwritable: bool
) -> SequenceOutput:
    """The words of the first rows, as sequence losses take them.

    Args:
        rows: a multiple of the number of sentences.
        seeds: (B,) of the random choices of each sentence; every refinement step has its own.
        overwritable: whether nobody else needs the logits, as far as the criterion can see.
    """
    words, symbols = outputs.words, outputs.symbols
    part, latent = words.rows(0, rows), words.latent
    steps = range(rows // outputs.batch)
    return SequenceOutput(
        targets=part.targets,
        target_mask=part.target_mask(symbols.pad),
        mask=outputs.output_mask()[:rows],
        seeds=torch.cat([random_numbers.fold(seeds, step) for step in steps]),
        scores=Scores(part.logits, normalized=False),
        slots=SlotKinds(predicted=outputs.predicted()[:rows], special=outputs.special()[:rows]),
        alignment=Alignment(part.blank, part.links) if latent else None,
        overwritable=overwritable
        and not any(isinstance(other, ModelLoss) for other in outputs.others.values()),
        as_long_as_target=outputs.has_own_slots(),
    )


def entry_losses(
    output: NATOutput, weights: Optional[NGramWeights] = None
) -> Tuple[Tensor, Tensor]:
    """Label-smoothed cross entropy in nats of every entry of an output, and which of them count;
    both like its targets. Where there are ``weights``, times those of the targets' tokens."""
    targets, mask = output.targets, output.mask
    mask = torch.ones_like(targets, dtype=torch.bool) if mask is None else mask
    losses = F.cross_entropy(
        output.logits.float().flatten(0, -2),
        targets.masked_fill(~mask, 0).flatten(),
        reduction="none",
        label_smoothing=output.label_smoothing,
    )
    losses = losses.view(targets.shape)
    if weights is not None:
        losses = losses * weights.of_tokens()
    return losses.masked_fill(~mask, 0.0), mask


def row_means(losses: Tensor, mask: Tensor) -> Tensor:
    """(B, ...) entries to the (B,) means of those that count; zero where there are none."""
    losses, mask = losses.view(len(losses), -1), mask.view(len(mask), -1)
    return losses.sum(1) / mask.sum(1).clamp(min=1)


def other_losses(outputs: NATOutputs) -> Dict[str, Tensor]:
    """(B,) losses in nats of everything but the words, before any factor."""
    return {
        # NAT-CRF's likelihood is a mean over sentences.
        name: row_means(*entry_losses(output))
        if isinstance(output, NATOutput)
        else output.loss.expand(outputs.batch)
        for name, output in outputs.others.items()
    }


@torch.no_grad()
def first_pass(outputs: NATOutputs, blank: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    """(B, T) what the first pass writes into the slots, and which of them hold words.

    Slots that say the ``blank`` hold none, and come after those that do.
    """
    batch = outputs.batch
    slots = outputs.slots()[:batch]
    predicted = outputs.predicted()[:batch]
    tokens = torch.where(predicted, outputs.words.logits[:batch].argmax(2), slots)
    mask = slots.ne(outputs.symbols.pad) & ~outputs.special()[:batch]
    if blank is None:
        return tokens, mask
    mask = mask & tokens.ne(blank)
    order = (~mask).byte().sort(dim=1, stable=True).indices
    return tokens.gather(1, order), mask.gather(1, order)


def statistics(outputs: NATOutputs, validation: bool, blank: Optional[int]) -> Dict[str, Tensor]:
    """Sums to log: of the words that the first pass writes, and in validation their likelihood."""
    log: Dict[str, Tensor] = {}
    if validation and outputs.has_own_slots():
        log["nll"], log["nll_tokens"] = likelihood(outputs)
    if outputs.has_own_slots() or outputs.more_slots is not None:
        log.update(candidate_statistics(*first_pass(outputs, blank)))
    return log


@torch.no_grad()
def likelihood(outputs: NATOutputs) -> Tuple[Tensor, Tensor]:
    """NLL in nats of the tokens that the first pass predicts, and their number."""
    words = outputs.words._replace(mask=outputs.predicted(), label_smoothing=0.0)
    losses, mask = entry_losses(words.rows(0, outputs.batch))
    return losses.sum(), mask.sum()
