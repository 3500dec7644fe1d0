"""EISL on the slots of a non-autoregressive model."""

from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor

from .sentence import Counting, Options, log_softmax, noise_of, raised, sentence_loss, weights_of


def slot_loss(
    logits: Tensor,
    targets: Tensor,
    real: Tensor,
    predicted: Tensor,
    special: Tensor,
    specials: str,
    *,
    noise: Optional[Dict[int, Tensor]] = None,
    counting: Tuple[Optional[Tensor], Optional[Tuple[Tensor, Tensor]]] = (None, None),
    **options: Any,
) -> Tensor:
    """The word loss of a non-autoregressive model's T slots, for each sentence.

    Observed slots (``real`` and not ``predicted``) hold their own token with
    probability 1 and others with the floor's; n-grams of observed tokens alone do
    not count. Predicted ``special`` tokens are treated as ``specials`` says:
    ``anchor`` (cross entropy at their own slot), ``include`` or ``exclude`` (which
    leaves observed ones out, too). Each predicted token that is left counts alike.
    ``counting``: the tokens that begin a word, which no n-gram may tear (special ones are
    words of their own), and how much n-grams count: (B, T) of tokens and (B, T - 1) of pairs.

    Shapes: logits (B, T, V), everything else (B, T); the result is (B,) in float64.

    >>> all_real = torch.ones(1, 2, dtype=torch.bool)
    >>> arguments = torch.zeros(1, 2, 2), torch.tensor([[0, 1]]), all_real, all_real, ~all_real
    >>> slot_loss(*arguments, "include", ngrams=(1,)).tolist()
    [0.6931471805599453]
    """
    logits, losses, chosen = logits.double(), [], Options(**options)
    word_starts, ngram_weights = counting
    for b in range(logits.size(0)):
        slots = [t for t in range(targets.size(1)) if real[b, t]]
        filled = [t for t in slots if predicted[b, t]]
        ends = [t for t in slots if special[b, t]]
        anchors = [t for t in filled if t in ends] if specials == "anchor" else []
        left_out = ends if specials == "exclude" else anchors
        words = [t for t in slots if t not in left_out]
        log_probs = {}
        for t in words:
            for s in words:
                if t in filled:
                    value = raised(log_softmax(logits[b, t])[targets[b, s]], chosen.floor)
                else:
                    value = torch.tensor(0.0 if targets[b, t] == targets[b, s] else chosen.floor)
                log_probs[t, s] = value.double()

        def window(n: int, t: int, s: int, log_probs: dict = log_probs) -> Tensor:
            return sum(log_probs[t + j, s + j] for j in range(n))

        places = [t in words for t in range(targets.size(1))]
        learned = [t in words and t in filled for t in range(targets.size(1))]
        starts = None
        if word_starts is not None:
            starts = [
                bool(word_starts[b, t]) or t in ends or t - 1 in ends
                for t in range(targets.size(1))
            ]
        tokens, noises = targets[b].tolist(), noise_of(noise, b)
        rest = Counting(learned, starts, weights_of(ngram_weights, b))
        eisl = sentence_loss(window, places, places, tokens, chosen, noises, rest)
        nll = sum(-log_softmax(logits[b, t])[targets[b, t]] for t in anchors)
        count = max(1, sum(learned) + len(anchors))
        losses.append((eisl * sum(learned) + nll) / count + logits[b, :0].sum())
    return torch.stack(losses) if losses else logits.sum((1, 2))
