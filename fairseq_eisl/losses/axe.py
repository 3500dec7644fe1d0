"""Aligned cross entropy (AXE; Ghazvininejad et al., ICML 2020, arXiv 2004.01655).

The cross entropy of the best monotone alignment of the target's words to the slots of a model:
a slot that no word is aligned to says a blank, and several words may share a slot. The alignment is
found without gradient, by a dynamic programme along anti-diagonals for all sentences at once;
its terms are then picked from the log-probabilities, which has the gradient of the minimum.
"""

import math
from typing import NamedTuple, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .ngrams import check_mask

# The moves that lead to a cell of the table, in the order that ties prefer.
_ALIGN, _SKIP_SLOT, _SKIP_TOKEN = 0, 1, 2


class Alignment(NamedTuple):
    """Where the tokens of each sentence are."""

    slots: Tensor
    """(B, S) int64, the slot of each token; of no meaning for a token that is not real."""
    skipped: Tensor
    """(B, S) bool, the tokens that share the slot of another one, at the penalty."""
    blank: Tensor
    """(B, T) bool, the slots that are left to the blank."""


class AXETerms(NamedTuple):
    """AXE of each sentence before it is divided by its number of tokens."""

    total: Tensor
    """(B,) in nats; a zero of the graph for a sentence without tokens."""
    tokens: Tensor
    """(B,) int64, their number."""
    alignment: Alignment


def axe_loss(
    log_probs: Tensor,
    blank_log_probs: Tensor,
    target_mask: Tensor,
    slot_mask: Tensor,
    *,
    skip_penalty: float = 1.0,
) -> Tensor:
    """AXE of each sentence.

    Args:
        log_probs: (B, T, S) log-probability in nats of target token s at slot t, float32 or
            float64 (half precision is computed in float32).
        blank_log_probs: (B, T) those of the blank.
        target_mask: (B, S) bool, the tokens that count, in their order.
        slot_mask: (B, T) bool, the slots that there are for them; they may be more or fewer.
        skip_penalty: factor of the cost of a token that shares a slot (delta in the paper), 1 or
            above.

    Returns:
        (B,) in nats per target token: a zero of the graph where there are none, inf where there
        are tokens and no slot.

    Raises:
        ValueError: wrong shapes, or ``skip_penalty`` out of range.

    Two words and three slots, of which the first says the blank:

    >>> words = torch.tensor([[[0.1, 0.1], [0.7, 0.2], [0.2, 0.6]]])
    >>> blank, two, three = torch.tensor([[0.8, 0.1, 0.2]]), torch.ones(1, 2), torch.ones(1, 3)
    >>> loss = axe_loss(words.log(), blank.log(), two.bool(), three.bool())
    >>> round(loss.item(), 4)  # -(ln 0.8 + ln 0.7 + ln 0.6) / 2
    0.5453
    """
    terms = axe_terms(log_probs, blank_log_probs, target_mask, slot_mask, skip_penalty=skip_penalty)
    return terms.total / terms.tokens.clamp(min=1)


def axe_terms(
    log_probs: Tensor,
    blank_log_probs: Tensor,
    target_mask: Tensor,
    slot_mask: Tensor,
    *,
    skip_penalty: float = 1.0,
) -> AXETerms:
    """The parts of :func:`axe_loss`, with its arguments and errors."""
    log_probs, blank_log_probs = _checked(log_probs, blank_log_probs, skip_penalty)
    batch, slots, tokens = log_probs.shape
    target_mask = check_mask("target_mask", target_mask, (batch, tokens), log_probs.device)
    slot_mask = check_mask("slot_mask", slot_mask, (batch, slots), log_probs.device)
    zero = log_probs[:, :0].sum((1, 2)) + blank_log_probs[:, :0].sum(1)
    if slots == 0:  # one that is not there
        log_probs, slot_mask = F.pad(log_probs, (0, 0, 0, 1)), F.pad(slot_mask, (0, 1))
        blank_log_probs = F.pad(blank_log_probs, (0, 1))
    found = best_alignment(
        -log_probs, -blank_log_probs, target_mask, slot_mask, skip_penalty=skip_penalty
    )
    said = log_probs.gather(1, found.slots.unsqueeze(1)).squeeze(1)
    said = said.masked_fill(~slot_mask.any(1, keepdim=True), -math.inf)
    said = torch.where(found.skipped, skip_penalty * said, said)
    total = zero - torch.where(target_mask, said, 0.0).sum(1)
    total = total - torch.where(found.blank, blank_log_probs, 0.0).sum(1)
    return AXETerms(torch.where(target_mask.any(1), total, zero), target_mask.sum(1), found)


def _checked(log_probs: Tensor, blank_log_probs: Tensor, skip_penalty: float):
    if not (math.isfinite(skip_penalty) and skip_penalty >= 1):
        raise ValueError(f"skip_penalty must be a finite number, 1 or above, not {skip_penalty}")
    if log_probs.dim() != 3 or blank_log_probs.shape != log_probs.shape[:2]:
        raise ValueError(
            "log_probs (B, T, S) and blank_log_probs (B, T) are needed, not "
            f"{tuple(log_probs.shape)} and {tuple(blank_log_probs.shape)}"
        )
    dtype = torch.promote_types(log_probs.dtype, torch.float32)
    return log_probs.to(dtype), blank_log_probs.to(dtype)


@torch.no_grad()
def best_alignment(
    costs: Tensor,
    blank_costs: Tensor,
    target_mask: Tensor,
    slot_mask: Tensor,
    *,
    skip_penalty: float = 1.0,
) -> Alignment:
    """The alignment of least cost; of equal ones, that which aligns rather than skips.

    Args:
        costs: (B, T, S) negative log-probability in nats of token s at slot t, T above 0.
        blank_costs: (B, T) of the blank.
        target_mask: as for :func:`axe_loss`.
        slot_mask: likewise.
        skip_penalty: likewise.

    >>> costs = torch.tensor([[[9.0, 9.0], [1.0, 9.0], [9.0, 1.0]]])
    >>> masks = {"target_mask": torch.ones(1, 2).bool(), "slot_mask": torch.ones(1, 3).bool()}
    >>> found = best_alignment(costs, torch.tensor([[1.0, 9.0, 9.0]]), **masks)
    >>> found.slots.tolist(), found.blank.tolist()
    ([[1, 2]], [[True, False, False]])
    """
    token_order, slot_order = _front(target_mask), _front(slot_mask)
    costs = costs.gather(1, slot_order.unsqueeze(2).expand(costs.shape))
    costs = costs.gather(2, token_order.unsqueeze(1).expand(costs.shape)).transpose(1, 2)
    moves = _moves(costs, blank_costs.gather(1, slot_order), skip_penalty)
    found = _traced(moves, target_mask.sum(1), slot_mask.sum(1))
    # Back to the places that the tokens and slots had.
    slots = torch.zeros_like(found.slots)
    skipped, blank = torch.zeros_like(found.skipped), torch.zeros_like(found.blank)
    slots.scatter_(1, token_order, slot_order.gather(1, found.slots))
    skipped.scatter_(1, token_order, found.skipped)
    return Alignment(slots, skipped, blank.scatter_(1, slot_order, found.blank))


def _front(mask: Tensor) -> Tensor:
    """(B, L) the places where the mask is True in their order, then the others."""
    return (~mask).byte().sort(dim=1, stable=True).indices


def _moves(costs: Tensor, blank_costs: Tensor, skip_penalty: float) -> Tensor:
    """(S + T + 1, B, S + 1) uint8, the best move to cell (i, j) of each table, at [i + j, :, i].

    Cell (i, j): i tokens are placed and j slots are done with. The tokens that come before any
    slot is done with go to the first. Costs (B, S, T), those of the blank (B, T).
    """
    batch, tokens, slots = costs.shape
    row = torch.arange(tokens + 1, device=costs.device)
    outside = costs.new_full((batch, 1), math.inf)

    def below(diagonal: Tensor) -> Tensor:
        """From the cells with i - 1 tokens to those with i."""
        return torch.cat([outside, diagonal[:, :-1]], 1)

    moves = torch.zeros(tokens + slots + 1, batch, tokens + 1, dtype=torch.uint8, device=row.device)
    before = costs.new_full((batch, tokens + 1), math.inf)
    last = F.pad(before[:, 1:], (1, 0))  # only (0, 0) is a cell
    for diagonal in range(1, tokens + slots + 1):
        column = diagonal - row
        slot = column.clamp(min=1, max=slots) - 1
        token = torch.cat([outside, costs[:, row[:-1], slot[1:]]], 1)
        best = below(before) + token
        for move, cost in (
            (_SKIP_SLOT, last + blank_costs[:, slot]),
            (_SKIP_TOKEN, below(last) + skip_penalty * token),
        ):
            better = cost < best
            best = torch.where(better, cost, best)
            moves[diagonal].masked_fill_(better, move)
        inside = (column >= 0) & (column <= slots)
        before, last = last, best.masked_fill(~inside, math.inf)
    return moves


def _traced(moves: Tensor, tokens: Tensor, slots: Tensor) -> Alignment:
    """The alignment that moves from (0, 0) to the (B,) numbers of tokens and slots."""
    steps, batch, width = moves.shape
    sentence = torch.arange(batch, device=moves.device)
    # The last column of each takes what is not to be written.
    none = {"slots": width - 1, "blank": steps - width}
    found = Alignment(
        slots=tokens.new_zeros(batch, width),
        skipped=torch.zeros(batch, width, dtype=torch.bool, device=moves.device),
        blank=torch.zeros(batch, none["blank"] + 1, dtype=torch.bool, device=moves.device),
    )
    i, j = tokens, slots
    for _ in range(steps - 1):
        move = moves[i + j, sentence, i]
        # On the borders there is one move, also where costs of NaN have no order.
        move = torch.where(i == 0, _SKIP_SLOT, torch.where(j == 0, _SKIP_TOKEN, move.long()))
        begun = i + j == 0
        places = (move != _SKIP_SLOT) & ~begun
        leaves = (move == _SKIP_SLOT) & ~begun
        at = torch.where(places, i - 1, none["slots"]).unsqueeze(1)
        found.slots.scatter_(1, at, (j.clamp(min=1) - 1).unsqueeze(1))
        found.skipped.scatter_(1, at, (move == _SKIP_TOKEN).unsqueeze(1))
        empty = torch.where(leaves, j - 1, none["blank"]).unsqueeze(1)
        found.blank.scatter_(1, empty, torch.ones_like(empty, dtype=torch.bool))
        i = i - places.long()
        j = j - ((move != _SKIP_TOKEN) & ~begun).long()
    return Alignment(*(part[:, :-1] for part in found))


def pin_in_place(
    log_probs: Tensor, blank_log_probs: Tensor, observed: Tensor
) -> Tuple[Tensor, Tensor]:
    """What :func:`axe_loss` is to be given where some slots show their own token already.

    Such a token is aligned to its slot for nothing, and nothing else is; the tokens on either side
    are aligned to the slots of that side.

    Args:
        log_probs: (B, T, T), where token t belongs to slot t.
        blank_log_probs: (B, T).
        observed: (B, T) bool, the slots that are given.

    Returns:
        Both, with 0 for what is given and -inf for what it excludes, without gradient.

    >>> half, seen = torch.full((1, 2, 2), 0.5).log(), torch.tensor([[True, False]])
    >>> log_probs, blank = pin_in_place(half, half[..., 0], seen)
    >>> log_probs.exp().tolist(), blank.exp().tolist()
    ([[[1.0, 0.0], [0.0, 0.5]]], [[0.0, 0.5]])
    """
    own = torch.eye(observed.size(1), device=log_probs.device, dtype=log_probs.dtype).log()
    concerned = observed.unsqueeze(2) | observed.unsqueeze(1)
    return torch.where(concerned, own, log_probs), blank_log_probs.masked_fill(observed, -math.inf)
