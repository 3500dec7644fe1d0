"""Where words begin in batches of piece ids."""

import torch
from torch import Tensor

from ..noise import WordUnits


class WordStarts:
    """Which pieces begin a word, as :meth:`WordUnits.split` finds words, without waiting for a
    GPU.

    >>> units = WordUnits(["<s>", "<pad>", "</s>", "<unk>", "al@@", "x", "b"], 4, 3, "subword_nmt")
    >>> WordStarts(units)(torch.tensor([[4, 5, 6, 2]])).tolist()
    [[True, False, True, True]]
    """

    def __init__(self, units: WordUnits):
        glued, opens, self._backwards = units.joints()
        self._glued, self._open = torch.tensor(glued), torch.tensor(opens)

    def __call__(self, tokens: Tensor) -> Tensor:
        """(B, S) int64 ids to (B, S) bool."""
        if self._glued.device != tokens.device:
            self._glued = self._glued.to(tokens.device)
            self._open = self._open.to(tokens.device)
        before, behind = tokens[:, :-1], tokens[:, 1:]
        if self._backwards:
            before, behind = behind, before
        joined = self._open[before] | self._glued[behind]
        return torch.cat([torch.ones_like(tokens[:, :1], dtype=torch.bool), ~joined], 1)
