"""Teacher-forced cross entropy of sentences, beside a loss of another kind."""

from typing import Optional, Tuple

from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor

from ..decoding.fairseq.model_scores import Scores
from ..losses import NGramWeights
from ..losses.token_weights import own_log_probs


def cross_entropy(
    scores: Scores,
    target: Tensor,
    label_smoothing: float,
    pad: int,
    weights: Optional[NGramWeights] = None,
) -> Tuple[Tensor, Tensor]:
    """Of each sentence, in nats.

    Args:
        scores: (B, T, V) with the target as the decoder's input.
        target: (B, T) int64.
        label_smoothing: share of the probability spread over all symbols, in [0, 1).
        pad: id of the padding.
        weights: how much each token counts, behind the one before it, in the cross entropy; all
            alike, if None. They count nothing in the NLL.

    Returns:
        (B,) the label-smoothed cross entropy per token, and (B,) the sum of the NLL.
    """
    loss, nll = label_smoothed_nll_loss(
        scores.log_probs(), target, label_smoothing, ignore_index=pad, reduce=False
    )
    loss, nll = loss.squeeze(-1), nll.squeeze(-1)
    if weights is not None:
        loss = loss * weights.of_tokens(target.ne(pad))
    tokens = target.ne(pad).sum(1).clamp(min=1)
    return loss.sum(1) / tokens, nll.sum(1)


def own_log_probs_of(scores: Scores, targets: Tensor, mask: Tensor) -> Tensor:
    """(B, T) log-probability in nats of the target at each position, 0 where the mask is False.

    Args:
        scores: (B, T, V), of which position t predicts ``targets[:, t]``.
        targets: (B, T) int64; anything where the mask is False.
        mask: (B, T) bool.
    """
    if not scores.normalized:
        return own_log_probs(scores.values, targets, mask)
    index = targets.masked_fill(~mask, 0).unsqueeze(2)
    return scores.values.gather(2, index).squeeze(2).masked_fill(~mask, 0.0)
