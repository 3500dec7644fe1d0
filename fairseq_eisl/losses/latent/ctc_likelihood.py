"""The likelihood of CTC (Graves et al., ICML 2006), and the most likely way to say a target.

Of all V symbols only the S tokens of the target and the blank are in any way to say it. torch's
``ctc_loss``, whose work and gradient grow with the symbols that it is given, gets these S + 1.
"""

from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from ..token_log_probs import token_log_probs
from ..worker_threads import differentiable_once


def check_columns(log_probs: Tensor, targets: Tensor):
    """ValueError where there is not one column a target token and one of the blank."""
    wanted = (len(targets), targets.size(1) + 1)
    if log_probs.dim() != 3 or (len(log_probs), log_probs.size(2)) != wanted:
        raise ValueError(
            f"log_probs must have shape (B, L, S + 1) = ({wanted[0]}, L, {wanted[1]}), not "
            f"{tuple(log_probs.shape)}"
        )


def ctc_needed_slots(targets: Tensor, target_mask: Tensor) -> Tensor:
    """(B,) the fewest slots that can say each target: a token each, and a blank between equal
    neighbours.

    >>> ctc_needed_slots(torch.tensor([[5, 5, 6]]), torch.tensor([[True, True, True]])).tolist()
    [4]
    """
    both = target_mask[:, 1:] & target_mask[:, :-1]
    return target_mask.sum(1) + (targets[:, 1:].eq(targets[:, :-1]) & both).sum(1)


def ctc_log_likelihood(
    logits: Tensor,
    targets: Tensor,
    blank: int,
    *,
    output_mask: Tensor,
    target_mask: Tensor,
    in_place: bool = False,
) -> Tensor:
    """(B,) log-likelihood of each target in nats.

    Args:
        logits: (B, L, V) of the slots, any floating dtype.
        targets: (B, S) int64; real tokens stand together.
        blank: the id of the blank, in [0, V).
        output_mask: (B, L) bool, True for real slots, which come first.
        target_mask: (B, S) bool, True for real tokens.
        in_place: the backward may overwrite the logits.

    Returns:
        Minus infinity where a target needs more slots than there are, then without a gradient.
        Differentiable once.

    >>> even, mask = torch.zeros(1, 2, 2), torch.tensor([[True, True]])
    >>> round(ctc_log_likelihood(even, torch.tensor([[0]]), 1, output_mask=mask,
    ...                          target_mask=mask[:, :1]).exp().item(), 4)
    0.75
    """
    targets = targets.masked_fill(~target_mask, 0)
    with torch.autocast(logits.device.type, enabled=False):
        columns = F.pad(targets, (0, 1), value=blank)
        found = token_log_probs(logits, columns, output_mask, in_place)
        return ctc_log_prob_likelihood(
            found, targets, output_mask=output_mask, target_mask=target_mask
        )


def ctc_log_prob_likelihood(
    log_probs: Tensor, targets: Tensor, *, output_mask: Tensor, target_mask: Tensor
) -> Tensor:
    """(B,) the same from log-probabilities of the target's tokens and the blank.

    Args:
        log_probs: (B, L, S + 1) log-probability in nats of ``targets[b, s]`` at slot t, and behind
            them of the blank, float32 or float64. Slots that are not real may hold anything.

    The others are those of :func:`ctc_log_likelihood`.

    Raises:
        ValueError: wrong shape of ``log_probs``.

    >>> half, mask = torch.full((1, 2, 2), 0.5).log(), torch.tensor([[True, True]])
    >>> ctc_log_prob_likelihood(half, torch.tensor([[7]]), output_mask=mask,
    ...                         target_mask=mask[:, :1]).exp().item()
    0.75
    """
    check_columns(log_probs, targets)
    slots, lengths = output_mask.sum(1), target_mask.sum(1)
    fits = ctc_needed_slots(targets, target_mask) <= slots
    # Those that do not fit would make their gradients NaN; without tokens they make none.
    lengths = torch.where(fits, lengths, 0)
    # Equal tokens are one symbol, the first column of theirs.
    same = targets.unsqueeze(2).eq(targets.unsqueeze(1)) & target_mask.unsqueeze(1)
    first = same.byte().argmax(2) if targets.size(1) else targets
    symbols = first.gather(1, (~target_mask).byte().sort(dim=1, stable=True).indices)
    nll = _NegativeLogLikelihood.apply(log_probs, symbols, output_mask, slots, lengths)
    return torch.where(fits, -nll, -torch.inf)


class _NegativeLogLikelihood(torch.autograd.Function):
    """torch's ``ctc_loss`` of log-probabilities of some symbols.

    Its own gradient takes for granted that the log-probabilities are of all symbols, out of a
    softmax, and is what that makes of it: exp(log p) minus the probability that a symbol is said at
    a slot, given the target. The latter is what is wanted.
    """

    @staticmethod
    def forward(ctx, log_probs: Tensor, symbols: Tensor, real: Tensor, slots, lengths):
        needed = ctx.needs_input_grad[0]
        with torch.enable_grad():
            given = log_probs.detach().masked_fill(~real.unsqueeze(2), 0.0).transpose(0, 1)
            given.requires_grad_(needed)
            blank = log_probs.size(2) - 1
            nll = F.ctc_loss(given, symbols, slots, lengths, blank=blank, reduction="none")
            found = log_probs
            if needed:
                (gradient,) = torch.autograd.grad(nll.sum(), given)
                said = given.detach().exp() - gradient
                found = said.transpose(0, 1).masked_fill(~real.unsqueeze(2), 0.0)
        ctx.save_for_backward(log_probs, found)
        return nll.detach()

    @staticmethod
    def backward(ctx, grad: Tensor):
        log_probs, said = ctx.saved_tensors
        gradient = -said * grad.view(-1, 1, 1)
        found = differentiable_once("ctc_log_likelihood", gradient, log_probs)
        return found, None, None, None, None


@torch.no_grad()
def ctc_best_alignment(
    log_probs: Tensor,
    blank_log_probs: Tensor,
    targets: Tensor,
    *,
    output_mask: Tensor,
    target_mask: Optional[Tensor] = None,
) -> Tensor:
    """(B, L) int64: the place s of the target token that each slot says in the most likely way to
    say the target; -1 for the blank, and for slots that are not real.

    Shapes as of :func:`ctc_ngram_log_probs`; real tokens come first. Where a target needs more
    slots than there are, all of them are -1.

    >>> slots = torch.tensor([[[0.1], [0.8]]]).log()
    >>> mask = torch.tensor([[True, True]])
    >>> ctc_best_alignment(slots, (1 - slots.exp()[:, :, 0]).log(), torch.tensor([[7]]),
    ...                    output_mask=mask).tolist()
    [[-1, 0]]
    """
    batch, slots, length = log_probs.shape
    if target_mask is None:
        target_mask = output_mask.new_ones(batch, length)
    device, low = log_probs.device, -1e30
    # States: blank, token 0, blank, token 1, ..., blank.
    states = torch.arange(2 * length + 1, device=device)
    token = states.div(2, rounding_mode="floor").clamp(max=max(0, length - 1))
    is_token = states.remainder(2).eq(1)
    emitted = blank_log_probs.unsqueeze(2).expand(-1, -1, len(states)).float()
    skips = torch.zeros(batch, len(states), dtype=torch.bool, device=device)
    if length:
        emitted = torch.where(is_token, log_probs.float()[:, :, token], emitted)
        skips[:, 3::2] = targets[:, 1:].ne(targets[:, :-1])
    best = torch.full((batch, len(states)), low, device=device)
    best[:, 0] = 0.0  # before the first slot
    moves = []
    for t in range(slots):
        one, two = F.pad(best, (1, 0), value=low)[:, :-1], F.pad(best, (2, 0), value=low)[:, :-2]
        two = torch.where(skips, two, low)
        value, move = torch.stack([best, one, two]).max(0)
        real = output_mask[:, t : t + 1]
        best = torch.where(real, (value + emitted[:, t]).clamp(min=low), best)
        moves.append(torch.where(real, move, 0))
    count = target_mask.sum(1, keepdim=True)
    last = torch.cat([2 * count, (2 * count - 1).clamp(min=0)], 1)
    ends = best.gather(1, last)
    state = last.gather(1, ends.argmax(1, keepdim=True))
    possible = ends.amax(1, keepdim=True) > low / 2
    found = []
    for t in reversed(range(slots)):
        said = is_token[state] & possible & output_mask[:, t : t + 1]
        found.append(torch.where(said, token[state], -1))
        state = state - moves[t].gather(1, state)
    return torch.cat(found[::-1], 1) if found else targets.new_zeros(batch, 0)
