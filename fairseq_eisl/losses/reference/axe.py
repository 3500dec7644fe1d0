"""Aligned cross entropy, cell by cell."""

import math

import torch
from torch import Tensor

from .sentence import log_softmax


def axe_table(costs, blank_costs, skip_penalty: float = 1.0) -> list:
    """The paper's table A, (n + 1) x (m + 1) of scalars in nats, for one sentence.

    ``costs[i][j]`` is what word i costs at slot j, ``blank_costs[j]`` what the blank does.
    """
    n, m = len(costs), len(blank_costs)
    table = [[torch.zeros((), dtype=torch.float64)] * (m + 1) for _ in range(n + 1)]
    for j in range(1, m + 1):
        table[0][j] = table[0][j - 1] + blank_costs[j - 1]
    for i in range(1, n + 1):
        table[i][0] = table[i - 1][0] + skip_penalty * costs[i - 1][0]
        for j in range(1, m + 1):
            align = table[i - 1][j - 1] + costs[i - 1][j - 1]
            skip_slot = table[i][j - 1] + blank_costs[j - 1]
            skip_word = table[i - 1][j] + skip_penalty * costs[i - 1][j - 1]
            table[i][j] = min(align, skip_slot, skip_word, key=float)
    return table


def axe_loss(
    logits: Tensor,
    targets: Tensor,
    blank: int,
    target_mask: Tensor,
    slot_mask: Tensor,
    skip_penalty: float = 1.0,
) -> Tensor:
    """(B,) float64 nats per word: the last cell of the table; 0 without words, inf without slots.

    Shapes: logits (B, T, V), targets and target_mask (B, S), slot_mask (B, T). ``blank`` is an id.
    """
    losses = []
    for b in range(len(targets)):
        words = [int(targets[b, s]) for s in range(targets.size(1)) if target_mask[b, s]]
        slots = [t for t in range(logits.size(1)) if slot_mask[b, t]]
        loss = logits[b, :0].double().sum()
        if words and not slots:
            loss = loss + math.inf
        elif words:
            log_probs = [log_softmax(logits[b, t].double()) for t in slots]
            costs = [[-row[word] for row in log_probs] for word in words]
            table = axe_table(costs, [-row[blank] for row in log_probs], skip_penalty)
            loss = loss + table[-1][-1] / len(words)
        losses.append(loss)
    return torch.stack(losses)
