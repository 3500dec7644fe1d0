"""EISL of logits (Eq. 4, 6, 7 and 8), and the convolution of Eq. 7."""

from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor

from .sentence import (
    Counting,
    Options,
    log_softmax,
    noise_of,
    raised,
    sentence_loss,
    truth,
    weights_of,
)


def eisl_loss(
    logits: Tensor,
    targets: Tensor,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    *,
    noise: Optional[Dict[int, Tensor]] = None,
    word_starts: Optional[Tensor] = None,
    ngram_weights: Optional[Tuple[Tensor, Tensor]] = None,
    **options: Any,
) -> Tensor:
    """EISL of each sentence (Eq. 4, 6, 7 and 8); options as the implementation's.

    Args:
        logits: (B, T, V), any floating dtype; computed in float64.
        targets: (B, S) int64 ids, anything where ``target_mask`` is False.
        output_mask, target_mask: (B, T) and (B, S) bool, True for real tokens.
        options: of :class:`Options` by name.
        noise: for ``selection="gumbel"``: ``noise[n]`` of shape (B, T-n+1, S-n+1) is
            what order n adds to the logits of its selection.
        word_starts: (B, S) bool, the tokens that begin a word; n-grams that tear one do not count.
        ngram_weights: (B, S) of tokens and (B, S - 1) of pairs, how much n-grams count.

    Returns:
        (B,) float64 losses in nats, not reduced.

    >>> uniform = torch.zeros(1, 2, 2)  # both tokens have probability 1/2 everywhere
    >>> eisl_loss(uniform, torch.tensor([[0, 1]]), ngrams=(1,)).tolist()
    [0.6931471805599453]
    """
    logits, chosen = logits.double(), Options(**options)
    (size, positions, _), length = logits.shape, targets.size(1)
    losses = []
    for b in range(size):
        at, grams = truth(output_mask, b, positions), truth(target_mask, b, length)
        log_probs = {
            (t, s): raised(log_softmax(logits[b, t])[targets[b, s]], chosen.floor)
            for t in range(positions)
            for s in range(length)
            if at[t] and grams[s]
        }

        def window(n: int, t: int, s: int, log_probs: dict = log_probs) -> Tensor:
            return sum(log_probs[t + j, s + j] for j in range(n))

        starts = None if word_starts is None else word_starts[b].tolist()
        tokens, noises = targets[b].tolist(), noise_of(noise, b)
        counting = Counting(word_starts=starts, weights=weights_of(ngram_weights, b))
        loss = sentence_loss(window, at, grams, tokens, chosen, noises, counting)
        # Without a token the loss is an empty sum, still a function of the logits.
        losses.append(loss + logits[b, :0].sum())
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
