"""EISL of a stock ``Trainer``, as its ``compute_loss_func``, and what the trainers here share."""

from typing import Any, Callable, Optional, Tuple, Union

import torch
from torch import Tensor
from torch.nn import functional

from ...losses import IGNORE_INDEX, EISLOptions, NGramWeights, eisl_logit_terms
from ...losses.random_numbers import Seeds, fold

Items = Union[Tensor, int, None]


def eisl_compute_loss(
    outputs: Any,
    labels: Tensor,
    num_items_in_batch: Items = None,
    *,
    ce_factor: float = 0.0,
    label_smoothing: float = 0.0,
    shift: Optional[bool] = None,
    generator: Seeds = None,
    ngram_weights: Optional[Callable[[Tensor], NGramWeights]] = None,
    **options: Any,
) -> Tensor:
    """EISL with the target as the candidate: teacher forcing.

    For ``Trainer(compute_loss_func=...)``. A loss function sees neither the model nor its inputs,
    so it cannot decode a candidate; :class:`EISLTrainer` does. Options go in with
    ``functools.partial(eisl_compute_loss, ngrams=(1, 2), weights=(0.8, 0.2))``.
    A ``label_smoothing_factor`` of the training arguments does nothing beside a loss function;
    ``label_smoothing`` here does.

    Args:
        outputs: of the model, with ``logits`` (B, L, V).
        labels: (B, L) int64, not shifted, -100 where there is none, as the trainer has them.
        num_items_in_batch: the number of labels of the whole accumulated batch on all processes;
            of this batch, if None.
        ce_factor: factor of the cross entropy that is added to EISL.
        label_smoothing: of the cross entropy.
        shift: whether position t has the scores of label t + 1, as in decoder-only models; if
            None, it does where the outputs have none of an encoder.
        generator: of the Gumbel noise, as of ``eisl_loss``. Without gradient (evaluation) there
            is none.
        ngram_weights: gives how much n-grams of the labels count, in EISL and in the cross
            entropy, as a ``CleanTextWeights`` does. Without gradient all count alike.
        options: of ``EISLOptions``: ``ngrams``, ``weights``, ``selection``, ...

    Returns:
        A scalar in nats: the sum over sentences of their loss per token times their number of
        labels, divided by ``num_items_in_batch``. What a trainer accumulates from several batches
        is the mean over all their labels.

    Raises:
        ValueError: no logits or labels, unknown options, or several GPUs of one process
            (``nn.DataParallel``), whose number the trainer would multiply the loss by.

    >>> from types import SimpleNamespace
    >>> outputs = SimpleNamespace(logits=torch.zeros(2, 3, 5), encoder_last_hidden_state=None)
    >>> labels = torch.tensor([[1, 2, 3], [4, -100, -100]])
    >>> round(eisl_compute_loss(outputs, labels, ngrams=(1,)).item(), 4)  # log 5
    1.6094
    """
    logits = (
        outputs.get("logits") if isinstance(outputs, dict) else getattr(outputs, "logits", None)
    )
    if logits is None or labels is None:
        missing = "outputs have no logits" if logits is None else "there are no labels"
        raise ValueError(f"eisl_compute_loss: {missing}")
    if isinstance(num_items_in_batch, Tensor) and num_items_in_batch.numel() > 1:
        raise ValueError(
            "eisl_compute_loss: several GPUs of one process (nn.DataParallel) would make the loss "
            "as many times as large: start a process for each GPU with torchrun or accelerate "
            "launch, or show one with CUDA_VISIBLE_DEVICES"
        )
    if shift is None:
        shift = not hasattr(outputs, "encoder_last_hidden_state")
    if shift:
        logits, labels = logits[:, :-1], labels[:, 1:]
    chosen = EISLOptions(**options)
    mask = labels.ne(IGNORE_INDEX)
    weigh = ngram_weights if torch.is_grad_enabled() else None
    weights = None if weigh is None else weigh(labels)
    terms = eisl_logit_terms(
        logits,
        labels,
        output_mask=mask,
        target_mask=mask,
        options=chosen if torch.is_grad_enabled() else chosen.without_noise(),
        generator=generator,
        ngram_weights=weights,
    )
    total = (terms.total() * mask.sum(1)).sum()
    if ce_factor > 0:
        smoothed, _ = cross_entropy(logits, labels, label_smoothing, weights)
        total = total + ce_factor * smoothed.sum()
    return total / number_of_items(num_items_in_batch, mask)


def number_of_items(num_items_in_batch: Items, mask: Tensor) -> Tensor:
    """What a sum over labels is divided by, 1 or more: the labels of the whole batch, or of this
    one, which the mask is of."""
    number = mask.sum() if num_items_in_batch is None else num_items_in_batch
    return torch.as_tensor(number, device=mask.device).clamp(min=1)


def cross_entropy(
    logits: Tensor, labels: Tensor, smoothing: float, weights: Optional[NGramWeights] = None
) -> Tuple[Tensor, Tensor]:
    """(B,) label-smoothed cross entropy and (B,) negative log-likelihood in nats, summed over the
    labels of a sentence; logits (B, L, V) of labels (B, L), -100 where there is none. ``weights``
    say how much each label counts, behind the one before it, in the cross entropy.

    >>> cross_entropy(torch.zeros(1, 2, 2), torch.tensor([[1, -100]]), 0.0)[1]
    tensor([0.6931])
    """
    by_position = logits.float().transpose(1, 2)
    nll = functional.cross_entropy(by_position, labels, ignore_index=IGNORE_INDEX, reduction="none")
    smoothed = nll
    if smoothing:
        smoothed = functional.cross_entropy(
            by_position,
            labels,
            ignore_index=IGNORE_INDEX,
            reduction="none",
            label_smoothing=smoothing,
        )
    if weights is not None:
        smoothed = smoothed * weights.of_tokens(labels.ne(IGNORE_INDEX))
    return smoothed.sum(1), nll.sum(1)


def target_seeds(targets: Tensor, mask: Tensor, *salt: int) -> Tensor:
    """(B,) int64 seeds of sentences that nothing else of their batch changes.

    A trainer does not say which example a sentence is, so the seed is a hash of the target. The
    noise therefore is the same however a batch is split over updates or processes.

    >>> two = torch.tensor([[5, 6, 7], [6, 5, 0]])
    >>> mask = torch.tensor([[True, True, True], [True, True, False]])
    >>> torch.equal(target_seeds(two, mask, 1)[1:], target_seeds(two[1:, :2], mask[1:, :2], 1))
    True
    """
    # Labels are padded on either side, and stand behind a prompt or not.
    place = (mask.long().cumsum(1) - 1).clamp(min=0) << 32
    mixed = fold(targets.masked_fill(~mask, 0) + place).masked_fill(~mask, 0)
    return fold(mixed.sum(1), *salt)
