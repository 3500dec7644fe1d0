"""What a non-autoregressive decoder is shown of the target: masked or shortened copies."""

from random import Random
from typing import List, NamedTuple, Optional, Sequence

import torch
from fairseq.data import BaseWrapperDataset
from torch import Tensor

from ..decoding.fairseq.blanks import stretched
from .shared_number import SharedNumber


class Symbols(NamedTuple):
    """Ids of a dictionary's special symbols."""

    bos: int
    pad: int
    eos: int
    unk: int


def partial_target(
    ids: Sequence[int], kind: str, full_mask_prob: float, symbols: Symbols, rng: Random
) -> List[int]:
    """What the decoder sees of one target (ids with bos, eos and pad, which are never touched).

    ``random_delete`` (Levenshtein Transformer): a random share of the words is deleted.
    ``random_mask`` (CMLM): a random share, one word at least, becomes unk. ``full_mask``:
    all of them. ``no_noise``: the target itself. With ``full_mask_prob``, the first two
    show nothing at all, as the first pass of decoding does: all words are masked or deleted.

    >>> target, symbols = [0, 7, 8, 9, 2], Symbols(bos=0, pad=1, eos=2, unk=3)
    >>> partial_target(target, "full_mask", 0.0, symbols, Random(1))
    [0, 3, 3, 3, 2]
    >>> partial_target(target, "random_delete", 1.0, symbols, Random(1))
    [0, 2]
    """
    if kind == "no_noise":
        return list(ids)
    never = (symbols.bos, symbols.eos, symbols.pad)
    words = [i for i, token in enumerate(ids) if token not in never]
    whole = kind == "full_mask" or rng.random() < full_mask_prob
    share = rng.random()
    if kind == "random_delete":
        count = len(words) if whole else len(words) - int(len(words) * share)
        deleted = set(rng.sample(words, count))
        return [token for i, token in enumerate(ids) if i not in deleted]
    count = len(words) if whole else min(len(words), int(len(words) * share) + 1)
    masked = set(rng.sample(words, count))
    return [symbols.unk if i in masked else token for i, token in enumerate(ids)]


class PartialTargetDataset(BaseWrapperDataset):
    """``pairs`` whose batches also hold ``prev_target`` (B, T'), the decoder's input.

    It is drawn from (seed, epoch, example) alone, hence does not depend on how a batch
    is put together, on the number of workers or GPUs, or on an interrupted epoch.

    Args:
        repeatable: draw the same in every epoch, whatever the seed (validation).
        length_factor: slots for each word, rounded, in what shows no word (``full_mask``). Above 1,
            batches also say ``more_slots``: slots and target tokens do not belong together.
        max_length: most slots of a sentence, start and end included.
    """

    def __init__(
        self,
        pairs,
        kind: str,
        full_mask_prob: float,
        symbols: Symbols,
        repeatable: bool = False,
        length_factor: float = 1.0,
        max_length: Optional[int] = None,
    ):
        super().__init__(pairs)
        self.length_factor, self.max_length = length_factor, max_length
        self.kind, self.full_mask_prob, self.symbols = kind, full_mask_prob, symbols
        self.repeatable = repeatable
        # Batches are put together by workers that outlive an epoch.
        self._seed, self._epoch = SharedNumber(1), SharedNumber(1)

    @property
    def seed(self) -> int:
        """What the masks are drawn with, besides epoch and example (``--seed``)."""
        return self._seed.value

    @seed.setter
    def seed(self, seed: int):
        self._seed.value = seed

    def set_epoch(self, epoch):
        super().set_epoch(epoch)
        self._epoch.value = epoch

    def collater(self, samples):
        """The batch of ``pairs``, with ``prev_target``."""
        batch = super().collater(samples)
        if batch:
            batch["prev_target"] = self.partial_targets(batch["id"], batch["target"])
            if self.length_factor > 1:
                batch["more_slots"] = True
        return batch

    def partial_targets(self, ids: Tensor, targets: Tensor) -> Tensor:
        """(B,) example numbers and (B, T) padded targets to the (B, T') decoder input."""
        seed, epoch = (0, 0) if self.repeatable else (self.seed, self._epoch.value)
        pad, rows = self.symbols.pad, []
        for index, target in zip(ids.tolist(), targets.tolist()):
            rng = Random(f"fairseq_eisl partial target {seed} {index} {epoch}")
            length = len(target)
            while length and target[length - 1] == pad:
                length -= 1
            real = target[:length]
            row = partial_target(real, self.kind, self.full_mask_prob, self.symbols, rng)
            rows.append(row if self.length_factor == 1 else self._with_more_slots(row))
        # Masks keep places, so those rows must stay as wide as their targets.
        keeps_places = self.kind != "random_delete" and self.length_factor == 1
        width = targets.size(1) if keeps_places else max(map(len, rows))
        return torch.tensor([row + [pad] * (width - len(row)) for row in rows])

    def _with_more_slots(self, row: List[int]) -> List[int]:
        length = int(stretched(torch.tensor(len(row)), self.length_factor))
        if self.max_length:
            length = min(length, self.max_length)
        more = [self.symbols.unk] * (length - len(row))
        return row[:-1] + more + row[-1:]
