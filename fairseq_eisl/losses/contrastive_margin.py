"""The best of several outputs against the worst, as the released code of EISL has it."""

import torch
from torch import Tensor


def contrastive_margin_loss(
    nll_best: Tensor, nll_worst: Tensor, rewards: Tensor, *, margin: float = 10.0
) -> Tensor:
    """The output of the highest reward is to be likelier than that of the lowest, by as much as
    their rewards differ.

    ``max(0, 10 (l+ - l-) + margin (R+ - R-))``, Shu, Yoo and Ha (2021) as the authors of EISL
    have it in their code (``--proxyloss2``), which has rewards of 0 to 100 and divides by 100.

    Args:
        nll_best: (B,) mean NLL of a token of the best output, in nats.
        nll_worst: (B,) of the worst.
        rewards: (B, 2) of the best and of the worst, 0 to 1; constants to the gradient.
        margin: per unit of the rewards.

    Returns:
        (B,).

    Raises:
        ValueError: wrong shapes.

    >>> rewards = torch.tensor([[0.6, 0.4]])
    >>> loss = contrastive_margin_loss(torch.tensor([0.5]), torch.tensor([0.6]), rewards)
    >>> round(loss.item(), 4)
    1.0
    """
    if nll_best.shape != nll_worst.shape or rewards.shape != (*nll_best.shape, 2):
        raise ValueError(
            f"nll_best and nll_worst (B,) and rewards (B, 2) are needed, not "
            f"{tuple(nll_best.shape)}, {tuple(nll_worst.shape)} and {tuple(rewards.shape)}"
        )
    apart = rewards.detach().to(nll_best.dtype)
    return torch.relu(10.0 * (nll_best - nll_worst) + margin * (apart[:, 0] - apart[:, 1]))
