"""EISL on the output slots of a non-autoregressive model.

Such a model fills T slots at once, and its target has the same T tokens, special
symbols included. Some slots may be given (observed) rather than predicted, and
the slots of the special symbols mean something else in each model; both must
not disturb the words.
"""

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from .eisl_options import DEFAULTS, EISLOptions
from .eisl_terms import EISLTerms, Sentences, noise_seeds, token_terms
from .ngram_weights import NGramWeights, check_ngram_weights
from .ngrams import check_mask, checked_ids, longest_run, word_beginnings
from .random_numbers import Seeds
from .token_log_probs import token_log_probs
from .worker_threads import over_sentences

SPECIALS = ("anchor", "include", "exclude")


class SlotTerms(NamedTuple):
    """The word loss of each sentence: EISL of the words, NLL of the anchored symbols."""

    eisl: EISLTerms
    share: Tensor
    """(B,) the part of the predicted tokens that EISL is responsible for, in [0, 1]."""
    anchors: Tensor
    """(B,) NLL of the predicted special symbols in nats, over all predicted tokens."""

    def total(self) -> Tensor:
        """(B,) the loss of each sentence, in nats: every predicted token counts alike."""
        return self.eisl.total() * self.share + self.anchors


class Slots(NamedTuple):
    """What stands beside the (B, T, V) logits of T slots, all (B, T)."""

    targets: Tensor
    """int64; slot t is to hold ``targets[:, t]`` where it is observed."""
    real: Tensor
    """bool, False for padding."""
    predicted: Tensor
    """bool, the slots that the model fills; the other real ones are observed."""
    special: Tensor
    """bool, the target tokens that mark start and end."""
    word_starts: Optional[Tensor] = None
    """bool, the target tokens that begin a word: only n-grams that tear no word count."""
    ngram_weights: Optional[NGramWeights] = None
    """How much n-grams count; all alike, if None."""


def slot_terms(
    logits: Tensor,
    slots: Slots,
    *,
    specials: str = "anchor",
    options: EISLOptions = DEFAULTS,
    generator: Seeds = None,
    in_place: bool = False,
) -> SlotTerms:
    """EISL of slots that stand beside their target tokens.

    An observed slot is pinned: its own token has probability 1 and every other one
    the floor, without gradient. Only n-grams with at least one predicted token count:
    a wholly observed one has its place already, and noise in the position selection
    would pull it into other slots, which teaches duplication.

    Args:
        logits: (B, T, V) of the slots, unnormalised.
        slots: their targets, and what they are.
        specials: what becomes of special tokens that the model predicts: ``anchor``
            (cross entropy at their own slot; words are matched among the other
            slots), ``include`` (like any word), ``exclude`` (left out). Observed
            ones are pinned neighbours of the words, or left out by ``exclude``.
        options: of EISL, see :class:`EISLOptions`.
        generator: of the Gumbel noise, as for EISL.
        in_place: the backward may overwrite the logits.

    Raises:
        ValueError: wrong shapes, ids out of range or an unknown choice.

    bos and eos observed, two slots with probability 1/2 for each of two words:

    >>> logits, targets = torch.zeros(1, 4, 4), torch.tensor([[0, 1, 2, 3]])
    >>> logits[..., [0, 3]] = -99.0
    >>> ends = torch.tensor([[True, False, False, True]])
    >>> options = EISLOptions((2,), selection="softmax", normalize=False)
    >>> slots = Slots(targets, real=ends | True, predicted=~ends, special=ends)
    >>> terms = slot_terms(logits, slots, options=options)
    >>> round(terms.total().item(), 4)
    0.9242
    """
    if specials not in SPECIALS:
        raise ValueError(f"specials={specials!r} is unknown; choose from {', '.join(SPECIALS)}")
    slots = _checked(logits, slots)
    targets, real, predicted, special, starts, weights = slots
    words = real
    if specials == "anchor":
        words = real & ~(special & predicted)
    elif specials == "exclude":
        words = real & ~special
    learned = predicted & words
    sentences = Sentences(
        targets,
        target_mask=words,
        output_length=longest_run(words),
        learned=learned,
        seeds=noise_seeds(options, generator, len(targets), logits.device),
        word_starts=starts,
        ngram_weights=weights,
    )

    def parts(log_probs: Tensor, rows: slice) -> Tuple[Tensor, ...]:
        floored = log_probs.clamp(min=options.floor)
        pinned = pin_observed(floored, targets[rows], predicted[rows], options.floor)
        eisl = token_terms(pinned, words[rows], sentences.rows(rows), options)
        learned_count, nll = learned[rows].sum(1), log_probs[:, :0].sum((1, 2))
        count = learned_count
        if specials == "anchor":
            anchored = (special & predicted)[rows]
            own = log_probs.diagonal(dim1=1, dim2=2)
            nll = nll - own.masked_fill(~anchored, 0.0).sum(1)
            count = count + anchored.sum(1)
        count = count.clamp(min=1).to(nll.dtype)
        return (*eisl, learned_count / count, nll / count)

    with torch.autocast(logits.device.type, enabled=False):
        log_probs = token_log_probs(logits, targets, predicted, in_place)
        *eisl, share, anchors = over_sentences(parts, log_probs)
        return SlotTerms(EISLTerms(*eisl), share, anchors)


def _checked(logits: Tensor, slots: Slots) -> Slots:
    if logits.dim() != 3 or logits.shape[:2] != slots.targets.shape:
        raise ValueError(
            f"logits must have shape (B, T, V) for targets of shape (B, T) = "
            f"{tuple(slots.targets.shape)}, not {tuple(logits.shape)}"
        )
    shape = tuple(slots.targets.shape)
    targets, real = checked_ids("targets", slots.targets, slots.real, shape[0], logits.size(2))
    predicted = check_mask("predicted", slots.predicted, shape, logits.device) & real
    special = check_mask("special", slots.special, shape, logits.device) & real
    starts = slots.word_starts
    if starts is not None:
        starts = check_mask("word_starts", starts, shape, logits.device)
        starts = word_beginnings(starts, ~real | special)
    weights = check_ngram_weights(slots.ngram_weights, shape, logits.device)
    return Slots(targets, real, predicted, special, starts, weights)


def pin_observed(log_probs: Tensor, targets: Tensor, predicted: Tensor, floor: float) -> Tensor:
    """(B, T, T) log-probabilities with the rows of observed slots replaced by certainty."""
    same = targets.unsqueeze(2).eq(targets.unsqueeze(1))
    pinned = torch.zeros_like(log_probs).masked_fill(~same, floor)
    return torch.where(predicted.unsqueeze(2), log_probs, pinned)
