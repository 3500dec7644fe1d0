"""Slow, literal references of the losses, for tests and benchmarks only.

Python loops over float64 scalars, one sentence at a time, written from the
definitions in the paper (Liu et al., NAACL 2022, arXiv 2106.15078) and sharing no
code with the implementation. Everything is differentiable through autograd, so
that gradients can be compared as well as values.
"""

from typing import Callable, Dict, List, Optional, Sequence, Tuple

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


def eisl_loss(
    logits: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    *,
    ngrams: Sequence[int] = (2, 3, 4),
    weights: Optional[Sequence[float]] = None,
    selection: str = "softmax",
    temperature: float = 1.0,
    selection_on: str = "log_prob",
    floor: float = -20.0,
    normalize: bool = True,
    noise: Optional[Dict[int, Tensor]] = None,
) -> Tensor:
    """EISL of each sentence (Eq. 4, 6, 7 and 8); options as the implementation's.

    Args:
        logits: (B, T, V), any floating dtype; computed in float64.
        targets: (B, S) int64 ids, anything where ``target_mask`` is False.
        output_mask, target_mask: (B, T) and (B, S) bool, True for real tokens.
        noise: for ``selection="gumbel"``: ``noise[n]`` of shape (B, T-n+1, S-n+1) is
            what order n adds to the logits of its selection.

    Returns:
        (B,) float64 losses in nats, not reduced.

    >>> uniform = torch.zeros(1, 2, 2)  # both tokens have probability 1/2 everywhere
    >>> eisl_loss(uniform, torch.tensor([[0, 1]]), ngrams=(1,)).tolist()
    [0.6931471805599453]
    """
    logits = logits.double()
    (size, positions, _), length = logits.shape, targets.size(1)
    losses = []
    for b in range(size):
        at, grams = _reals(output_mask, b, positions), _reals(target_mask, b, length)
        cost = {
            (t, s): _raise(log_softmax(logits[b, t])[targets[b, s]], floor)
            for t in range(positions)
            for s in range(length)
            if at[t] and grams[s]
        }

        def window(n: int, t: int, s: int, cost: dict = cost) -> Tensor:
            return sum(cost[t + j, s + j] for j in range(n))

        loss = _sentence_loss(
            window,
            at,
            grams,
            ngrams,
            weights,
            selection,
            temperature,
            selection_on,
            normalize,
            {n: z[b].double() for n, z in (noise or {}).items()},
            targets[b].tolist(),
        )
        # Without a token the loss is an empty sum, still a function of the logits.
        losses.append(loss + logits[b, :0].sum())
    return torch.stack(losses) if losses else logits.sum((1, 2))


def exact_autoregressive_eisl(
    logits_of: Callable[[Tensor, Tensor], Tensor],
    candidates: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    *,
    ngrams: Sequence[int] = (2, 3, 4),
    weights: Optional[Sequence[float]] = None,
    selection: str = "softmax",
    temperature: float = 1.0,
    selection_on: str = "log_prob",
    floor: float = -20.0,
    normalize: bool = True,
    noise: Optional[Dict[int, Tensor]] = None,
) -> Tensor:
    """Exact EISL of an autoregressive model (App. A.7), one model call a token.

    The n-gram at s, placed at t, has the log-probability
    ``sum_j log p(y*_{s+j} | candidate_{<t}, y*_s .. y*_{s+j-1})``.

    Args:
        logits_of: ``(tokens (N, L), sentences (N,)) -> (N, L, V)``; position l
            predicts ``tokens[:, l]`` from ``tokens[:, :l]``.
        candidates: (B, T) int64, the prefixes.

    The others, and the result, are those of :func:`eisl_loss`.

    >>> logits_of = lambda tokens, sentences: torch.zeros(*tokens.shape, 2)
    >>> exact_autoregressive_eisl(logits_of, *torch.tensor([[[0, 1]], [[1, 1]]])).tolist()
    [0.6931471805599453]
    """
    (size, positions), length = candidates.shape, targets.size(1)
    losses = []
    for b in range(size):

        def window(n: int, t: int, s: int, b: int = b) -> Tensor:
            total = torch.zeros((), dtype=torch.float64)
            for j in range(n):
                tokens = torch.cat([candidates[b, :t], targets[b, s : s + j + 1]])
                logits = logits_of(tokens.unsqueeze(0), torch.tensor([b]))[0, t + j].double()
                total = total + _raise(log_softmax(logits)[targets[b, s + j]], floor)
            return total

        losses.append(
            _sentence_loss(
                window,
                _reals(output_mask, b, positions),
                _reals(target_mask, b, length),
                ngrams,
                weights,
                selection,
                temperature,
                selection_on,
                normalize,
                {n: z[b].double() for n, z in (noise or {}).items()},
                targets[b].tolist(),
            )
        )
    return torch.stack(losses)


def slot_loss(
    logits: Tensor,
    targets: Tensor,
    real: Tensor,
    predicted: Tensor,
    special: Tensor,
    specials: str,
    *,
    ngrams: Sequence[int] = (2, 3, 4),
    weights: Optional[Sequence[float]] = None,
    selection: str = "softmax",
    temperature: float = 1.0,
    selection_on: str = "log_prob",
    floor: float = -20.0,
    normalize: bool = True,
    noise: Optional[Dict[int, Tensor]] = None,
) -> Tensor:
    """The word loss of a non-autoregressive model's T slots, for each sentence.

    Observed slots (``real`` and not ``predicted``) hold their own token with
    probability 1 and others with the floor's; n-grams of observed tokens alone do
    not count. Predicted ``special`` tokens are treated as ``specials`` says:
    ``anchor`` (cross entropy at their own slot), ``include`` or ``exclude`` (which
    leaves observed ones out, too). Each predicted token that is left counts alike.

    Shapes: logits (B, T, V), everything else (B, T); the result is (B,) in float64.

    >>> all_real = torch.ones(1, 2, dtype=torch.bool)
    >>> arguments = torch.zeros(1, 2, 2), torch.tensor([[0, 1]]), all_real, all_real, ~all_real
    >>> slot_loss(*arguments, "include", ngrams=(1,)).tolist()
    [0.6931471805599453]
    """
    logits, losses = logits.double(), []
    for b in range(logits.size(0)):
        slots = [t for t in range(targets.size(1)) if real[b, t]]
        filled = [t for t in slots if predicted[b, t]]
        ends = [t for t in slots if special[b, t]]
        anchors = [t for t in filled if t in ends] if specials == "anchor" else []
        left_out = ends if specials == "exclude" else anchors
        words = [t for t in slots if t not in left_out]
        cost = {}
        for t in words:
            for s in words:
                if t in filled:
                    value = _raise(log_softmax(logits[b, t])[targets[b, s]], floor)
                else:
                    value = torch.tensor(0.0 if targets[b, t] == targets[b, s] else floor)
                cost[t, s] = value.double()

        def window(n: int, t: int, s: int, cost: dict = cost) -> Tensor:
            return sum(cost[t + j, s + j] for j in range(n))

        places = [t in words for t in range(targets.size(1))]
        learned = [t in words and t in filled for t in range(targets.size(1))]
        eisl = _sentence_loss(
            window,
            places,
            places,
            ngrams,
            weights,
            selection,
            temperature,
            selection_on,
            normalize,
            {n: z[b].double() for n, z in (noise or {}).items()},
            targets[b].tolist(),
            learned,
        )
        nll = sum(-log_softmax(logits[b, t])[targets[b, t]] for t in anchors)
        count = max(1, sum(learned) + len(anchors))
        losses.append((eisl * sum(learned) + nll) / count + logits[b, :0].sum())
    return torch.stack(losses) if losses else logits.sum((1, 2))


def one_hot_convolution_scores(logits: Tensor, targets: Tensor, n: int) -> Tensor:
    """Log-probabilities of the target's n-grams as the convolution of Eq. 7.

    The kernel of the n-gram at s is V x n, with a one in column j at token
    ``targets[b, s + j]``; it slides over the T x V log-probabilities.

    Shapes: logits (B, T, V), targets (B, S); result (B, T-n+1, S-n+1) float64, in nats.

    >>> one_hot_convolution_scores(torch.zeros(1, 2, 2), torch.tensor([[0, 1]]), 2).tolist()
    [[[-1.3862943611198906]]]
    """
    log_probs = torch.log_softmax(logits.double(), 2)
    vocabulary, length = logits.size(2), targets.size(1)
    scores = []
    for b in range(logits.size(0)):
        kernels = torch.zeros(length - n + 1, vocabulary, n, dtype=torch.float64)
        for s in range(length - n + 1):
            for j in range(n):
                kernels[s, targets[b, s + j], j] = 1.0
        scores.append(torch.nn.functional.conv1d(log_probs[b : b + 1].transpose(1, 2), kernels))
    return torch.cat(scores).transpose(1, 2)


def _sentence_loss(
    window: Callable[[int, int, int], Tensor],
    at: Sequence[bool],
    grams: Sequence[bool],
    ngrams: Sequence[int],
    weights: Optional[Sequence[float]],
    selection: str,
    temperature: float,
    selection_on: str,
    normalize: bool,
    noise: Dict[int, Tensor],
    tokens: Sequence[int],
    learned: Optional[Sequence[bool]] = None,
) -> Tensor:
    """L[b] of the design: ``window(n, t, s)`` is the log-probability of a placed n-gram.

    ``learned``: only n-grams that hold such a target token count.
    """
    weights = weights or [1.0 / len(ngrams)] * len(ngrams)
    total = torch.zeros((), dtype=torch.float64)
    for n, weight in sentence_orders(ngrams, weights, _longest_run(at), _longest_run(grams)):
        places, starts = _windows(at, n), _windows(grams, n)
        if learned is not None:
            starts = [s for s in starts if any(learned[s : s + n])]
        columns, logits_of = [], []
        for s in starts:
            scores = torch.stack([window(n, t, s) / (n if normalize else 1) for t in places])
            logits = scores.exp() if selection_on == "prob" else scores
            if selection == "gumbel":
                logits = logits + noise[n][places, s]
            columns.append(scores)
            logits_of.append(logits / temperature)
        if selection == "sinkhorn":
            weights_of = _sinkhorn(logits_of, [tuple(tokens[s : s + n]) for s in starts])
        else:
            weights_of = [_select(logits, selection) for logits in logits_of]
        for q, scores in zip(weights_of, columns):
            total = total - weight / len(starts) * (q * scores).sum()
    return total


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


def _raise(log_prob: Tensor, floor: float) -> Tensor:
    """The floor where the value lies below it: a constant. NaN stays NaN."""
    return torch.full_like(log_prob, floor) if log_prob < floor else log_prob


def _reals(mask: Optional[Tensor], b: int, length: int) -> List[bool]:
    return [True] * length if mask is None else mask[b].tolist()


def _windows(real: Sequence[bool], n: int) -> List[int]:
    """The places at which n real tokens follow one another."""
    return [i for i in range(len(real) - n + 1) if all(real[i : i + n])]


def _longest_run(real: Sequence[bool]) -> int:
    return max(n for n in range(len(real) + 1) if n == 0 or _windows(real, n))
