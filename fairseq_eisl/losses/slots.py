"""EISL on the output slots of a non-autoregressive model.

Such a model fills T slots at once, and its target has the same T tokens, special
symbols included. Some slots may be given (observed) rather than predicted, and
the slots of the special symbols mean something else in each model; both must
not disturb the words.
"""

from typing import NamedTuple, Tuple

import torch
from torch import Tensor

from .eisl import EISLOptions, EISLTerms, cost_sums, eisl_terms
from .masking import check_mask, checked_ids
from .random_numbers import Seeds, sentence_seeds
from .token_log_probs import token_log_probs
from .worker_threads import on_one_thread

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


def slot_terms(
    logits: Tensor,
    targets: Tensor,
    real: Tensor,
    predicted: Tensor,
    special: Tensor,
    specials: str,
    options: EISLOptions,
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
        targets: (B, T) int64; slot t is to hold ``targets[:, t]`` where it is observed.
        real: (B, T) bool, False for padding.
        predicted: (B, T) bool, the slots that the model fills; the other real ones
            are observed.
        special: (B, T) bool, the target tokens that mark start and end.
        specials: what becomes of special tokens that the model predicts: ``anchor``
            (cross entropy at their own slot; words are matched among the other
            slots), ``include`` (like any word), ``exclude`` (left out). Observed
            ones are pinned neighbours of the words, or left out by ``exclude``.
        options, generator: as for EISL.
        in_place: the backward may overwrite the logits.

    Raises:
        ValueError: wrong shapes, ids out of range or an unknown choice.

    bos and eos observed, two slots with probability 1/2 for each of two words:

    >>> logits, targets = torch.zeros(1, 4, 4), torch.tensor([[0, 1, 2, 3]])
    >>> logits[..., [0, 3]] = -99.0
    >>> ends = torch.tensor([[True, False, False, True]])
    >>> options = EISLOptions((2,), selection="softmax", normalize=False)
    >>> terms = slot_terms(logits, targets, ends | True, ~ends, ends, "anchor", options)
    >>> round(terms.total().item(), 4)
    0.9242
    """
    if specials not in SPECIALS:
        raise ValueError(f"specials={specials!r} is unknown; choose from {', '.join(SPECIALS)}")
    if logits.dim() != 3 or logits.shape[:2] != targets.shape:
        raise ValueError(
            f"logits must have shape (B, T, V) for targets of shape (B, T) = "
            f"{tuple(targets.shape)}, not {tuple(logits.shape)}"
        )
    batch = targets.size(0)
    targets, real = checked_ids("targets", targets, real, batch, logits.size(2))
    predicted = check_mask("predicted", predicted, tuple(targets.shape), logits.device) & real
    special = check_mask("special", special, tuple(targets.shape), logits.device) & real
    seeds = None
    if options.selection == "gumbel":
        seeds = sentence_seeds(generator, batch, logits.device)
    words = real
    if specials == "anchor":
        words = real & ~(special & predicted)
    elif specials == "exclude":
        words = real & ~special
    learned = predicted & words
    with torch.autocast(logits.device.type, enabled=False):
        log_probs = token_log_probs(logits, targets, predicted, in_place)

        def parts(log_probs: Tensor) -> Tuple[Tensor, ...]:
            cost = _pin(log_probs.clamp(min=options.floor), targets, predicted, options.floor)
            zero = log_probs[:, :0].sum((1, 2))
            sums = cost_sums(cost, options)
            eisl = eisl_terms(sums, zero, words, words, options, seeds, learned, targets)
            slots = learned.sum(1)
            nll = zero
            if specials == "anchor":
                anchored = special & predicted
                own = log_probs.diagonal(dim1=1, dim2=2)
                nll = zero - own.masked_fill(~anchored, 0.0).sum(1)
                slots = slots + anchored.sum(1)
            slots = slots.clamp(min=1).to(zero.dtype)
            return (*eisl, learned.sum(1) / slots, nll / slots)

        *eisl, share, anchors = on_one_thread(parts, log_probs)
        return SlotTerms(EISLTerms(*eisl), share, anchors)


def _pin(cost: Tensor, targets: Tensor, predicted: Tensor, floor: float) -> Tensor:
    """(B, T, T) log-probabilities with the rows of observed slots replaced by certainty."""
    same = targets.unsqueeze(2).eq(targets.unsqueeze(1))
    pinned = torch.zeros_like(cost).masked_fill(~same, floor)
    return torch.where(predicted.unsqueeze(2), cost, pinned)
