"""Candidates of a model: its own output, decoded without gradient as a training step needs it.

No beam and no search: one greedy or sampled output a sentence, as long as its target at most.
"""

from typing import Callable, Dict, NamedTuple, Optional

import torch
from torch import Tensor

from ..losses.random_numbers import fold, gumbel

# Looking whether all candidates have ended makes the host wait for a GPU: look rarely there.
_CUDA_STEPS_BETWEEN_LOOKS = 8
_CUDA_ITERATIONS_BETWEEN_LOOKS = 2

NextLogits = Callable[[int], Tensor]
AT_EOS = ("end", "go_on", "avoid")
"""What a candidate's own EOS does before the last position that it may have: the candidate ends
with it; decoding goes on after it, and the positions there are candidate positions as well; or none
is said before that position."""


class Candidates(NamedTuple):
    """Decoder input of one forward, and which of its outputs are candidate positions."""

    tokens: Tensor
    """(B, T) int64 the candidate, padded; ends with EOS unless it was cut."""
    prefix: Tensor
    """(B, T) int64 decoder input that predicts ``tokens``."""
    mask: Tensor
    """(B, T) bool, True for candidate positions."""


@torch.no_grad()
def candidate_statistics(tokens: Tensor, mask: Tensor) -> Dict[str, Tensor]:
    """Counts of (B, T) candidate tokens where the mask is True, and of those among them that
    repeat the one before."""
    same = tokens[:, 1:].eq(tokens[:, :-1]) & mask[:, 1:] & mask[:, :-1]
    return {"candidate_tokens": mask.sum(), "candidate_repeats": same.sum()}


@torch.no_grad()
def decode(
    begin: Callable[[Tensor], NextLogits],
    first: Tensor,
    limit: Tensor,
    length: int,
    *,
    pad: int,
    eos: int,
    seeds: Optional[Tensor] = None,
    at_eos: str = "end",
) -> Candidates:
    """Decode a candidate for each sentence, token by token.

    Args:
        begin: is handed the (B, ``length``) int64 decoder input, which is filled from the left
            in place, and gives ``next_logits(step)``: (B, V) scores of the token after
            ``prefix[:, : step + 1]``, asked for with steps 0, 1, 2, ...
        first: (B,) int64, the token that decoding starts from.
        limit: (B,) int64, the most tokens of each candidate, EOS included.
        length: the width of the result, ``limit.max()`` or more.
        pad: id of padding, which is never chosen.
        eos: id of the end.
        seeds: (B,) int64 seeds to sample with; None decodes greedily.
        at_eos: what the candidate's own EOS does, one of ``AT_EOS``.

    Raises:
        ValueError: an unknown choice.

    The model says token 3, 4 and the end (2) whatever came before:

    >>> table = torch.eye(5)[torch.tensor([3, 4, 2])]
    >>> first, limit = torch.tensor([2]), torch.tensor([4])
    >>> decode(lambda prefix: lambda step: table[step : step + 1], first, limit, 4, pad=1, eos=2)
    ... # doctest: +NORMALIZE_WHITESPACE
    Candidates(tokens=tensor([[3, 4, 2, 1]]), prefix=tensor([[2, 3, 4, 2]]),
        mask=tensor([[ True,  True,  True, False]]))
    """
    _check_choice(at_eos)
    tokens = first.new_full((len(first), length + 1), pad)
    tokens[:, 0] = first
    next_logits = begin(tokens[:, :-1])
    ended = limit.eq(0)
    for step in range(length):
        values = next_logits(step).float()
        if seeds is not None:
            step_seeds = fold(seeds, step)
            values = values + gumbel(step_seeds, values.size(1))
        values[:, pad].fill_(-float("inf"))
        if at_eos == "avoid":
            values[:, eos].masked_fill_(limit.gt(step + 1), -float("inf"))
        chosen = values.argmax(1).masked_fill(ended, pad)
        tokens[:, step + 1] = chosen
        ended = ended | limit.le(step + 1)
        if at_eos == "end":
            ended = ended | chosen.eq(eos)
        look = not ended.is_cuda or (step + 1) % _CUDA_STEPS_BETWEEN_LOOKS == 0
        if look and bool(ended.all()):
            break
    candidate = tokens[:, 1:]
    return Candidates(candidate, tokens[:, :-1], candidate.ne(pad))


@torch.no_grad()
def decode_in_parallel(
    all_logits: Callable[[Tensor], Tensor],
    first: Tensor,
    guess: Tensor,
    limit: Tensor,
    *,
    pad: int,
    eos: int,
    at_eos: str = "end",
) -> Candidates:
    """The greedy candidates of :func:`decode`, as a fixed point.

    All positions are predicted at once from a guess of the whole candidate, and again from
    what came out, until nothing changes (Jacobi iterations; Song et al., ICML 2021, Santilli
    et al., ACL 2023). A token is right once all before it are, so one more is right after each
    iteration, and far more where the guess was good.

    Args:
        all_logits: (B, T) decoder input to (B, T, V) scores of what follows each token.
        guess: (B, T) int64, what the candidates may be.

    The others are those of :func:`decode`.

    >>> table = torch.eye(5)[torch.tensor([3, 4, 2, 3])].unsqueeze(0)
    >>> first, limit = torch.tensor([2]), torch.tensor([4])
    >>> guess = torch.tensor([[0, 0, 0, 0]])
    >>> decode_in_parallel(lambda prefix: table.clone(), first, guess, limit, pad=1, eos=2).tokens
    tensor([[3, 4, 2, 1]])
    """
    _check_choice(at_eos)
    first, limit = first.unsqueeze(1), limit.unsqueeze(1)
    place = torch.arange(guess.size(1), device=guess.device)
    over = place.ge(limit)
    too_long, guess = over, guess.masked_fill(over, pad)
    for step in range(guess.size(1)):
        values = all_logits(torch.cat([first, guess[:, :-1]], 1)).float()
        values[:, :, pad].fill_(-float("inf"))
        if at_eos == "avoid":
            values[:, :, eos].masked_fill_(place.lt(limit - 1), -float("inf"))
        found = values.argmax(2)
        over = too_long
        if at_eos == "end":
            ends = found.eq(eos).long()
            over = over | (ends.cumsum(1) - ends).gt(0)
        # What comes after an end may still be of use, should that end vanish again.
        changed = found.ne(guess) & ~over
        guess = found
        look = not guess.is_cuda or (step + 1) % _CUDA_ITERATIONS_BETWEEN_LOOKS == 0
        if look and not bool(changed.any()):
            break
    candidate = guess.masked_fill(over, pad)
    return Candidates(candidate, torch.cat([first, candidate[:, :-1]], 1), candidate.ne(pad))


def _check_choice(at_eos: str):
    if at_eos not in AT_EOS:
        raise ValueError(f"at_eos={at_eos!r} is unknown; choose from {', '.join(AT_EOS)}")
