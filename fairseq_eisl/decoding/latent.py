"""What decoders with latent alignments say: CTC's slots read off, and paths through a graph."""

from typing import Optional, Tuple

import torch
from torch import Tensor

SEARCHES = ("greedy", "lookahead", "viterbi")
_LOW = -1e30


def ctc_ends(symbols: Tensor, blank: int, mask: Tensor) -> Tensor:
    """(B, L) bool, the slots that say a token: the last one of each run that is no blank.

    Args:
        symbols: (B, L) int64, the symbol of each slot.
        blank: its id.
        mask: (B, L) bool, True for real slots, which come first.

    >>> symbols = torch.tensor([[7, 7, 9, 7, 8, 8]])
    >>> ctc_ends(symbols, 9, symbols > 0).tolist()
    [[False, True, False, True, False, True]]
    """
    repeated = torch.zeros_like(mask)
    repeated[:, :-1] = symbols[:, 1:].eq(symbols[:, :-1]) & mask[:, 1:]
    return mask & symbols.ne(blank) & ~repeated


def path_of(
    links: Tensor,
    token_scores: Tensor,
    mask: Tensor,
    search: str = "lookahead",
    length_penalty: float = 1.0,
) -> Tensor:
    """(B, L) bool, the vertices of the path that a search finds.

    Args:
        links: (B, L, L) log-probabilities in nats of transitions, forward only; whatever there is
            no transition for is minus infinity or a large negative number.
        token_scores: (B, L) log-probability of the best token of each vertex.
        mask: (B, L) bool, True for real vertices, which come first.
        search: ``greedy`` takes the most likely transition at each vertex, ``lookahead`` the most
            likely transition and token together, ``viterbi`` the path with the highest sum over
            transitions and tokens, divided by the number of tokens to the power of
            ``length_penalty``.
        length_penalty: 0 for none, which prefers short paths; of ``viterbi`` alone.

    Raises:
        ValueError: an unknown search.

    From the first vertex the second is more likely, but its token is not:

    >>> links = torch.tensor([[[0, 0.6, 0.4], [0, 0, 1], [0, 0, 0]]]).log()
    >>> tokens = torch.tensor([[1, 0.1, 0.9]]).log()
    >>> mask = torch.ones(1, 3).bool()
    >>> [path_of(links, tokens, mask, search)[0].tolist() for search in ("greedy", "lookahead")]
    [[True, True, True], [True, False, True]]
    """
    if search not in SEARCHES:
        raise ValueError(f"search={search!r} is unknown; choose from {', '.join(SEARCHES)}")
    if links.size(1) == 0:
        return mask
    both = mask.unsqueeze(2) & mask.unsqueeze(1)
    forward = torch.ones_like(both).triu(1)
    links = links.float().clamp(min=_LOW).masked_fill(~(both & forward), _LOW)
    tokens = token_scores.float().clamp(min=_LOW)
    last = (mask.sum(1, keepdim=True) - 1).clamp(min=0)
    if search == "viterbi":
        return _best_path(links, tokens, last, length_penalty) & mask
    if search == "lookahead":
        links = links + tokens.unsqueeze(1).masked_fill(~both, 0.0)
    onward = links.argmax(2)
    place = torch.arange(links.size(1), device=links.device)
    onward = torch.where(place.ge(last), last, onward)
    vertex = torch.zeros_like(last)
    found = torch.zeros_like(mask).scatter(1, vertex, True)
    for _ in range(links.size(1) - 1):
        vertex = onward.gather(1, vertex)
        found.scatter_(1, vertex, True)
        if not vertex.is_cuda and bool(vertex.eq(last).all()):
            break  # on CUDA, looking would make the host wait
    return found & mask


def _best_path(links: Tensor, tokens: Tensor, last: Tensor, length_penalty: float) -> Tensor:
    """The best sum for every number of vertices, and the best of those."""
    batch, slots = tokens.shape
    best = torch.full_like(tokens, _LOW)
    best[:, 0] = tokens[:, 0]
    moves, ends = [], [best.gather(1, last)]
    for _ in range(1, slots):
        value, move = (best.unsqueeze(2) + links).max(1)
        best = value + tokens
        moves.append(move)
        ends.append(best.gather(1, last))
    totals = torch.cat(ends, 1)
    count = torch.arange(1, slots + 1, device=tokens.device)
    normalised = torch.where(totals > _LOW / 2, totals / count**length_penalty, -torch.inf)
    chosen = normalised.argmax(1, keepdim=True)  # vertices of the path, less one
    found = torch.zeros(batch, slots, dtype=torch.bool, device=tokens.device)
    vertex = last
    found.scatter_(1, vertex, True)
    for steps in reversed(range(1, slots)):
        vertex = torch.where(chosen >= steps, moves[steps - 1].gather(1, vertex), vertex)
        found.scatter_(1, vertex, True)
    return found


def packed(
    values: Tensor, keep: Tensor, fill: float, width: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    """(B, L) values that are kept, moved to the left, and (B, W) bool where they are.

    The width is that of the row that keeps most, if it is not given.

    >>> packed(torch.tensor([[7, 8, 9]]), torch.tensor([[False, True, True]]), fill=1)[0].tolist()
    [[8, 9]]
    """
    order = (~keep).byte().sort(dim=1, stable=True).indices
    if width is None:
        width = int(keep.sum(1).max()) if len(keep) else 0
    kept = keep.gather(1, order)[:, :width]
    return values.gather(1, order)[:, :width].masked_fill(~kept, fill), kept
