"""Where EISL matches the target's n-grams: the weights q of Eq. 6, to be looked at."""

from typing import Optional

from torch import Tensor

from .eisl_options import DEFAULTS, EISLOptions
from .eisl_terms import NGramLogProbs, NGramPositions, Sentences, noise_seeds, select_for_order
from .ngrams import check_mask, checked_ids, longest_run, widen, window_mask
from .position_selection import COUNT, SELECTIONS
from .random_numbers import Seeds


def ngram_positions(
    log_probs: Tensor,
    targets: Tensor,
    n: int,
    *,
    output_mask: Optional[Tensor] = None,
    target_mask: Optional[Tensor] = None,
    options: EISLOptions = DEFAULTS,
    generator: Seeds = None,
) -> NGramPositions:
    """The position selection of one order, as the loss has it.

    Args:
        log_probs: (B, T, S) log-probability in nats of ``targets[b, s]`` at output position t.
        targets: (B, S) int64; only equality of tokens is looked at.
        n: the order, 1 or more; not one relative to the length. ``options.ngrams`` and their
            weights do not matter here.
        output_mask: as of :func:`eisl_from_log_probs`.
        target_mask: likewise.
        options: likewise.
        generator: likewise.

    Returns:
        Scores and weights (B, T - n + 1, S - n + 1) of the n-grams that begin at target position
        s, at output position t.

    Raises:
        ValueError: wrong shapes, an order that fits into no sentence, or ``selection="count"``.

    The second token is at the first position, where it is nine times as likely:

    >>> import torch
    >>> log_probs = torch.tensor([[[0.1, 0.9], [0.9, 0.1]]]).log()
    >>> options = EISLOptions(selection="softmax")
    >>> ngram_positions(log_probs, torch.tensor([[7, 8]]), 1, options=options).weights
    tensor([[[0.1000, 0.9000],
             [0.9000, 0.1000]]])
    """
    if options.selection == COUNT:
        choices = ", ".join(SELECTIONS)
        raise ValueError(f"selection={COUNT!r} chooses no positions; choose from {choices}")
    if log_probs.dim() != 3:
        raise ValueError(f"log_probs must be of shape (B, T, S), not {tuple(log_probs.shape)}")
    batch, positions, length = log_probs.shape
    if not 1 <= n <= min(positions, length):
        raise ValueError(
            f"n must be between 1 and {min(positions, length)}, the shorter of output and target, "
            f"not {n}"
        )
    output_mask = check_mask("output_mask", output_mask, (batch, positions), log_probs.device)
    targets, target_mask = checked_ids("targets", targets, target_mask, batch)
    if targets.size(1) != length:
        raise ValueError(
            f"targets must have shape (B, S) for log_probs of shape (B, T, S) = "
            f"{tuple(log_probs.shape)}, not {tuple(targets.shape)}"
        )
    floored = log_probs.clamp(min=options.floor)
    sums = floored
    for order in range(2, n + 1):
        sums = widen(sums, floored, order)
    sentences = Sentences(
        targets,
        target_mask,
        longest_run(output_mask),
        learned=None,
        seeds=noise_seeds(options, generator, batch, log_probs.device),
    )
    return select_for_order(NGramLogProbs(n, sums, window_mask(output_mask, n)), sentences, options)
