"""What the literal references share: the loss of one sentence, from placed n-grams.

Python loops over float64 scalars, written from the definitions in the paper (Liu et al.,
NAACL 2022, arXiv 2106.15078).
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor


def log_softmax(scores: Tensor) -> Tensor:
    """(L,) scores to (L,) log-probabilities in nats: ``x - log sum exp x``.

    The maximum is taken out first: as a constant it changes neither value nor gradient.

    >>> log_softmax(torch.zeros(4, dtype=torch.float64)).exp().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    shifted = scores - scores.max().detach()
    return shifted - shifted.exp().sum().log()


def sentence_orders(
    ngrams: Sequence[int], weights: Sequence[float], output_length: int, target_length: int
) -> List[Tuple[int, float]]:
    """The pairs (n, weight) that a sentence of these lengths (in tokens) uses.

    An order n <= 0 is ``target_length + n``. Orders that do not fit are dropped and
    the weights of the others scaled to the sum of all; with none left, the longest
    order that fits takes that sum.

    >>> sentence_orders((1, 2, 0), (0.5, 0.25, 0.25), 2, 3)
    [(1, 0.6666666666666666), (2, 0.3333333333333333)]
    >>> sentence_orders((4, -3), (0.5, 0.5), 2, 3)
    [(2, 1.0)]
    """
    room, total = min(output_length, target_length), sum(weights)
    if room == 0:
        return []
    absolute = [n if n > 0 else target_length + n for n in ngrams]
    kept = [(n, w) for n, w in zip(absolute, weights) if 1 <= n <= room and w > 0]
    if not kept:
        return [(room, total)]
    share = sum(w for _, w in kept)
    return [(n, w * total / share) for n, w in kept]


class Options(NamedTuple):
    """The options of the losses, and what they are where nothing is said."""

    ngrams: Sequence[int] = (2, 3, 4)
    weights: Optional[Sequence[float]] = None
    selection: str = "softmax"
    temperature: float = 1.0
    selection_on: str = "log_prob"
    floor: float = -20.0
    normalize: bool = True


class Counting(NamedTuple):
    """Which n-grams of S target tokens count, and how much; all alike, where nothing is said."""

    learned: Optional[Sequence[bool]] = None
    """S truth values; only n-grams that hold such a token."""
    word_starts: Optional[Sequence[bool]] = None
    """S truth values; only n-grams that tear no word."""
    weights: Optional[Tuple[Sequence[float], Sequence[float]]] = None
    """S numbers of the tokens and S - 1 of their pairs; a longer n-gram has the least of its
    pairs'."""


ALL = Counting()


def sentence_loss(
    window: Callable[[int, int, int], Tensor],
    at: Sequence[bool],
    grams: Sequence[bool],
    tokens: Sequence[int],
    options: Options,
    noise: Dict[int, Tensor],
    counting: Counting = ALL,
) -> Tensor:
    """L of one sentence: ``window(n, t, s)`` is the log-probability in nats of the target's
    n-gram at s, placed at t.

    Args:
        at, grams: T and S truth values, the real positions and target tokens.
        tokens: the S target tokens.
        noise: ``noise[n]`` of shape (T-n+1, S-n+1), for ``selection="gumbel"``.
        counting: which n-grams count.
    """
    ngrams, selection = options.ngrams, options.selection
    weights = options.weights or [1.0 / len(ngrams)] * len(ngrams)
    total = torch.zeros((), dtype=torch.float64)
    for n, weight in sentence_orders(ngrams, weights, _longest_run(at), _longest_run(grams)):
        places, starts = _windows(at, n), _windows(grams, n)
        if counting.learned is not None:
            starts = [s for s in starts if any(counting.learned[s : s + n])]
        if counting.word_starts is not None:
            words = _words(grams, counting.word_starts)
            starts = [s for s in starts if _is_whole(set(range(s, s + n)), words)] or starts
        if selection == "count":
            placed = [tuple(tokens[s : s + n]) for s in starts]
            for s, gram in zip(starts, placed):
                expected = torch.stack([window(n, t, s).exp() for t in places]).sum()
                loss = -expected.clamp(max=placed.count(gram)).log()
                counts = _counts(counting.weights, n, s)
                loss = counts * loss / (n if options.normalize else 1)
                total = total + weight / len(starts) * loss
            continue
        columns, logits_of = [], []
        for s in starts:
            divisor = n if options.normalize else 1
            scores = torch.stack([window(n, t, s) / divisor for t in places])
            logits = scores.exp() if options.selection_on == "prob" else scores
            if selection == "gumbel":
                logits = logits + noise[n][places, s]
            columns.append(scores)
            logits_of.append(logits / options.temperature)
        if selection == "sinkhorn":
            weights_of = _sinkhorn(logits_of, [tuple(tokens[s : s + n]) for s in starts])
        else:
            weights_of = [_select(logits, selection) for logits in logits_of]
        for s, q, scores in zip(starts, weights_of, columns):
            counts = _counts(counting.weights, n, s)
            total = total - weight / len(starts) * counts * (q * scores).sum()
    return total


def _counts(weights: Optional[Tuple[Sequence[float], Sequence[float]]], n: int, s: int) -> float:
    """How much the n-gram at s counts."""
    if weights is None:
        return 1.0
    tokens, pairs = weights
    return tokens[s] if n == 1 else min(pairs[s : s + n - 1])


def _sinkhorn(columns: Sequence[Tensor], grams: Sequence[tuple], rounds: int = 5) -> List[Tensor]:
    """(P,) selection logits of each n-gram to (P,) weights: softmax, then in turns no position
    gives more than 1 in all, equal n-grams counted as one, and each n-gram gets 1 in all."""
    q = [log_softmax(logits).exp() for logits in columns]
    for _ in range(rounds if q else 0):
        given = torch.stack([w / grams.count(gram) for w, gram in zip(q, grams)]).sum(0)
        q = [weights / given.clamp(min=1.0) for weights in q]
        q = [weights / weights.sum() for weights in q]
    return q


def _select(logits: Tensor, selection: str) -> Tensor:
    """(P,) selection logits over the possible positions to their (P,) weights."""
    if selection == "uniform":
        return torch.ones_like(logits) / len(logits)
    soft = log_softmax(logits).exp()
    if selection != "hard":
        return soft
    best = torch.zeros_like(soft)
    best[logits.argmax()] = 1.0
    return best + soft - soft.detach()  # straight through


def raised(log_prob: Tensor, floor: float) -> Tensor:
    """The floor where the value lies below it: a constant. NaN stays NaN."""
    return torch.full_like(log_prob, floor) if log_prob < floor else log_prob


def noise_of(noise: Optional[Dict[int, Tensor]], b: int) -> Dict[int, Tensor]:
    """The noise of sentence b by order, in float64."""
    return {n: z[b].double() for n, z in (noise or {}).items()}


def weights_of(weights: Optional[Tuple[Tensor, Tensor]], b: int) -> Optional[tuple]:
    """How much the tokens and the pairs of sentence b count, as lists."""
    return None if weights is None else tuple(kind[b].tolist() for kind in weights)


def truth(mask: Optional[Tensor], b: int, length: int) -> List[bool]:
    """Row b of a mask as a list; all True where there is no mask."""
    return [True] * length if mask is None else mask[b].tolist()


def _windows(real: Sequence[bool], n: int) -> List[int]:
    """The places at which n real tokens follow one another."""
    return [i for i in range(len(real) - n + 1) if all(real[i : i + n])]


def _words(real: Sequence[bool], starts: Sequence[bool]) -> List[set]:
    """The places of the tokens of each word."""
    words: List[set] = []
    for i in range(len(real)):
        if real[i] and (not words or starts[i] or not real[i - 1]):
            words.append(set())
        if real[i]:
            words[-1].add(i)
    return words


def _is_whole(window: set, words: Sequence[set]) -> bool:
    """Whether a window is a union of words, or lies within one."""
    touched = [word for word in words if word & window]
    return all(word <= window for word in touched) or len(touched) == 1


def _longest_run(real: Sequence[bool]) -> int:
    return max(n for n in range(len(real) + 1) if n == 0 or _windows(real, n))
