"""How much each n-gram of a target counts in EISL."""

from typing import NamedTuple, Optional, Sequence

import torch
from torch import Tensor


class NGramWeights(NamedTuple):
    """How much the n-grams of (B, S) targets count in EISL; numbers, 0 or above.

    A token alone has its own weight, a longer n-gram the least weight of its pairs.
    """

    tokens: Tensor
    """(B, S) of the tokens."""
    pairs: Tensor
    """(B, S - 1) of the tokens at s and s + 1."""

    def rows(self, rows: slice) -> "NGramWeights":
        """Those of some sentences."""
        return NGramWeights(self.tokens[rows], self.pairs[rows])

    def of_tokens(self, real: Optional[Tensor] = None) -> Tensor:
        """(B, S) of each token behind the one before it; its own where there is none before.

        ``real``: (B, S) bool, False at padding, which may stand before the first token.

        >>> NGramWeights(torch.tensor([[2.0, 1.0]]), torch.tensor([[0.5]])).of_tokens().tolist()
        [[2.0, 0.5]]
        """
        behind = torch.cat([self.tokens[:, :1], self.pairs], 1)
        if real is None:
            return behind
        begins = torch.nn.functional.pad(real[:, :-1], (1, 0)).logical_not()
        return torch.where(begins, self.tokens, behind)

    def of_order(self, n: int) -> Tensor:
        """(B, S - n + 1) of the n-grams that start at each token.

        >>> weights = NGramWeights(torch.ones(1, 4), torch.tensor([[0.5, 0.25, 1.0]]))
        >>> weights.of_order(3).tolist()
        [[0.25, 0.25]]
        """
        if n == 1:
            return self.tokens
        length = self.tokens.size(1) - n + 1
        least = self.pairs[:, :length]
        for j in range(1, n - 1):
            least = torch.minimum(least, self.pairs[:, j : j + length])
        return least


def check_ngram_weights(
    weights: Optional[NGramWeights], shape: Sequence[int], device
) -> Optional[NGramWeights]:
    """Weights for targets of this shape (B, S), without gradient.

    Raises:
        ValueError: wrong shapes.
    """
    if weights is None:
        return None
    batch, length = shape
    shape = batch, length
    needed = {"tokens": shape, "pairs": (batch, max(0, length - 1))}
    for (name, size), given in zip(needed.items(), weights):
        if tuple(given.shape) != size:
            raise ValueError(
                f"ngram_weights.{name} must have shape {size} for targets of shape {shape}, "
                f"not {tuple(given.shape)}"
            )
    tokens, pairs = (given.detach().to(device) for given in weights)
    return NGramWeights(tokens, pairs)
