"""Rows of a prompt and its completion, taken apart."""

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from ...losses import IGNORE_INDEX


class Prompted(NamedTuple):
    """A batch whose prompts end in one column, and completions begin in one."""

    prompts: Tensor
    """(B, P) int64, padded on the left with the row's first token."""
    prompt_mask: Tensor
    """(B, P) bool, True for real tokens."""
    targets: Tensor
    """(B, S) int64 the completions, padded on the right with 0."""
    target_mask: Tensor
    """(B, S) bool."""


def prompted(ids: Tensor, labels: Tensor, attention_mask: Optional[Tensor] = None) -> Prompted:
    """Take rows apart at their first label.

    Args:
        ids: (B, L) int64, padded on either side.
        labels: (B, L) int64, not shifted: the id where a token is to be learnt, else -100. The
            first real token of a row has nothing before it, so its label does not count.
        attention_mask: (B, L), 0 for padding; no padding, if None.

    Raises:
        ValueError: a row with several runs of labels, as of several turns.

    >>> ids = torch.tensor([[5, 6, 7, 8], [5, 9, 0, 0]])
    >>> labels = torch.tensor([[-100, -100, 7, 8], [-100, 9, -100, -100]])
    >>> parts = prompted(ids, labels, ids.ne(0))
    >>> parts.prompts.tolist(), parts.targets.tolist()
    ([[5, 6], [5, 5]], [[7, 8], [9, 0]])
    """
    real = torch.ones_like(ids, dtype=torch.bool) if attention_mask is None else attention_mask > 0
    place = torch.arange(ids.size(1), device=ids.device)
    begins = real.long().argmax(1)
    learnt = labels.ne(IGNORE_INDEX) & real & place.gt(begins.unsqueeze(1))
    number = learnt.sum(1)
    # A row that learns nothing is a prompt as a whole.
    after_last = place.gt(begins.unsqueeze(1) + real.sum(1, keepdim=True) - 1).long().argmax(1)
    end = torch.where(after_last.gt(0), after_last, ids.size(1))
    first = torch.where(number.gt(0), learnt.long().argmax(1), end)
    within = place.ge(first.unsqueeze(1)) & place.lt((first + number).unsqueeze(1))
    if bool((within & ~learnt).any()):
        row = int((within & ~learnt).any(1).long().argmax())
        raise ValueError(
            f"labels: row {row} of the batch has several runs of them; one completion after one "
            "prompt is needed (of a chat, its last turn)"
        )
    width, length = int((first - begins).max()), int(number.max())
    column = torch.arange(width, device=ids.device) - width + first.unsqueeze(1)
    prompt_mask = column.ge(begins.unsqueeze(1))
    prompts = ids.gather(1, torch.maximum(column, begins.unsqueeze(1)))
    column = torch.arange(length, device=ids.device) + first.unsqueeze(1)
    target_mask = column.lt((first + number).unsqueeze(1))
    targets = ids.gather(1, column.clamp(max=ids.size(1) - 1)).masked_fill(~target_mask, 0)
    return Prompted(prompts, prompt_mask, targets, target_mask)
