"""Sentence pairs of a split, clean or with noise on their targets, in batches."""

from typing import Any, Dict, Iterator, List, Optional

import torch

from ..data.noisy_targets import TargetCorruption
from ..noise import parse_noise
from ..tasks.word_units import word_units

Sample = Dict[str, Any]


class SentencePairs:
    """The first pairs of a split, in batches of pairs of like length.

    Args:
        task: a translation task of fairseq, noisy_translation or another.
        subset: the split, such as ``valid``.
        most: so many pairs at most.
        batch: pairs a batch.

    Raises:
        OSError, ValueError: there is no such split, or it has no targets.
    """

    def __init__(self, task, subset: str, most: int, batch: int):
        task.load_dataset(subset)
        self.task, self.batch = task, batch
        self.pairs = task.dataset(subset)
        if getattr(self.pairs, "tgt", None) is None:
            raise ValueError(f"split {subset} has no targets")
        items = [self.pairs[index] for index in range(min(len(self.pairs), most))]
        self.items = sorted(items, key=lambda item: (len(item["target"]), item["id"]))
        self._units: Any = None

    def __len__(self) -> int:
        return len(self.items)

    def clean(self) -> Iterator[Sample]:
        """Batches as the split has them."""
        return self._batches(self.items)

    def noisy(self, noise: str, seed: int) -> Iterator[Sample]:
        """Batches of the same pairs with noise on the targets, as in a training on this split."""
        return self._batches(self.corrupted(noise, seed))

    def corrupted(self, noise: str, seed: int) -> List[Sample]:
        """The pairs of :meth:`noisy` one by one, in the order of ``items``."""
        if not parse_noise(noise).operators:
            return self.items
        corrupt = self.corruption(noise, seed)
        changed = []
        for item in self.items:
            ids, _ = corrupt(item["target"].tolist(), int(item["id"]))
            changed.append({**item, "target": torch.tensor(ids)})
        return changed

    def unrelated(self) -> Iterator[Sample]:
        """Batches in which each source has the target of another pair, of about its length.

        Raises:
            ValueError: there is one pair only.
        """
        if len(self.items) < 2:
            raise ValueError("2 pairs or more are needed, to compare with another's target")
        others = self.items[1:] + self.items[:1]
        return self._batches(
            [{**item, "target": other["target"]} for item, other in zip(self.items, others)]
        )

    def _batches(self, items: List[Sample]) -> Iterator[Sample]:
        for start in range(0, len(items), self.batch):
            # A copy: collating sorts, and some datasets write into what they are given.
            yield self.pairs.collater([dict(item) for item in items[start : start + self.batch]])

    def corruption(self, noise: str, seed: int) -> TargetCorruption:
        cfg, dictionary = self.task.cfg, self.task.target_dictionary
        if self._units is None:
            scheme = str(getattr(cfg, "target_noise_bpe", "auto"))
            encoder: Optional[str] = getattr(cfg, "target_noise_gpt2_encoder", None)
            self._units = word_units(dictionary, scheme, cfg.data, encoder)
        symbol = getattr(cfg, "target_noise_blank", dictionary.unk_word)
        blank = dictionary.index(symbol)
        most = getattr(cfg, "max_target_positions", None)
        return TargetCorruption(parse_noise(noise), self._units, blank, seed, max_length=most)
