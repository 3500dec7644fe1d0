"""Teacher-forced cross entropy of sentences, beside a loss of another kind."""

from typing import Tuple

from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor

from ..decoding.fairseq.model_scores import Scores


def cross_entropy(
    scores: Scores, target: Tensor, label_smoothing: float, pad: int
) -> Tuple[Tensor, Tensor]:
    """Of each sentence, in nats.

    Args:
        scores: (B, T, V) with the target as the decoder's input.
        target: (B, T) int64.
        label_smoothing: share of the probability spread over all symbols, in [0, 1).
        pad: id of the padding.

    Returns:
        (B,) the label-smoothed cross entropy per token, and (B,) the sum of the NLL.
    """
    loss, nll = label_smoothed_nll_loss(
        scores.log_probs(), target, label_smoothing, ignore_index=pad, reduce=False
    )
    tokens = target.ne(pad).sum(1).clamp(min=1)
    return loss.squeeze(-1).sum(1) / tokens, nll.squeeze(-1).sum(1)
