"""A parallel dataset whose targets are corrupted on the fly."""

import logging
import time
from typing import List, Optional, Tuple

import numpy as np
import torch
from fairseq.data import LanguagePairDataset

from ..noise import Context, NoiseSpec, WordUnits, example_rng
from .shared_number import SharedNumber

logger = logging.getLogger(__name__)


class TargetCorruption:
    """Corrupts single targets, each from ``(seed, index[, epoch])`` alone.

    Args:
        noise: the parsed noise specification.
        units: word units of the target dictionary.
        blank: id of the blank symbol.
        seed: seed of the corruption.
        max_length: targets that noise makes longer than this many tokens
            (special symbols included) lose their last words. A target that is
            too long without noise is left alone, for fairseq to treat as always.
        shard: which shard of the data the examples are of, from 0 on.
    """

    def __init__(
        self,
        noise: NoiseSpec,
        units: WordUnits,
        blank: int,
        seed: int,
        max_length: Optional[int] = None,
        shard: int = 0,
    ):
        if units.special(blank):
            raise ValueError(
                f"--target-noise-blank: symbol {blank} of the dictionary marks the start or end "
                "of a sentence or padding; choose a word, such as <unk>"
            )
        self.noise, self.units, self.seed, self.max_length = noise, units, seed, max_length
        self.shard = shard
        word = units.blank(blank)
        vocabulary = units.vocabulary() if noise.needs_vocabulary else ()
        # A blank with a place in the dictionary is still no word to put in for another.
        self._context = Context(word, [other for other in vocabulary if other != word])

    def __call__(self, ids: List[int], index: int, epoch: int = 0) -> Tuple[List[int], bool]:
        """The corrupted target of example ``index`` as ids, and whether it was cut."""
        start, end = 0, len(ids)
        # Special symbols at both ends (bos, eos) stay where they are.
        while start < end and self.units.special(ids[start]):
            start += 1
        while end > start and self.units.special(ids[end - 1]):
            end -= 1
        rng = example_rng(self.seed, index, epoch, self.shard)
        clean = ids[start:end]
        words = self.noise(self.units.split(clean), rng, self._context)
        blank = self._context.blank
        noisy, cut = self.units.join(words, clean, blank), False
        if self.max_length and len(ids) <= self.max_length:
            room = self.max_length - start - (len(ids) - end)
            while len(noisy) > room:
                words.pop()
                noisy, cut = self.units.join(words, clean, blank), True
        return ids[:start] + noisy + ids[end:], cut


class _NoisyTargets:
    """The targets of a dataset, corrupted when they are read."""

    def __init__(self, clean, corruption: TargetCorruption, resample: bool):
        self.clean, self.corruption, self.resample = clean, corruption, resample
        self._epoch = SharedNumber(1)  # targets are read by workers that may outlive an epoch

    @property
    def epoch(self) -> int:
        return self._epoch.value

    @epoch.setter
    def epoch(self, epoch: int):
        self._epoch.value = epoch

    def of_no_epoch(self) -> "_NoisyTargets":
        """The same, with noise that is another one than any epoch's where it is drawn anew, and
        stays: so that what is counted is the same whenever a training begins or goes on."""
        return _NoisyTargets(self.clean, self.corruption, resample=False)

    def __len__(self):
        return len(self.clean)

    def corrupt(self, index: int):
        epoch = self.epoch if self.resample else 0
        return self.corruption(self.clean[index].tolist(), int(index), epoch)

    def __getitem__(self, index):
        # Three times as fast as torch.tensor(list).
        return torch.from_numpy(np.array(self.corrupt(index)[0], dtype=np.int64))

    @property
    def supports_prefetch(self):
        return getattr(self.clean, "supports_prefetch", False)

    def prefetch(self, indices):
        self.clean.prefetch(indices)


class NoisyTargetDataset(LanguagePairDataset):
    """``pairs`` with corrupted targets; sources, ids and options stay the same.

    By default an example has the same noise in every epoch (the corpus is
    corrupted once, as in the paper); with ``resample`` the noise also depends
    on the epoch. The lengths used for batching are those of the noisy targets.
    """

    tgt_sizes: np.ndarray

    def __init__(
        self, pairs: LanguagePairDataset, corruption: TargetCorruption, resample: bool = False
    ):
        super().__init__(
            pairs.src,
            pairs.src_sizes,
            pairs.src_dict,
            _NoisyTargets(pairs.tgt, corruption, resample),
            pairs.tgt_sizes,
            pairs.tgt_dict,
            left_pad_source=pairs.left_pad_source,
            left_pad_target=pairs.left_pad_target,
            shuffle=pairs.shuffle,
            input_feeding=pairs.input_feeding,
            remove_eos_from_source=pairs.remove_eos_from_source,
            append_eos_to_target=pairs.append_eos_to_target,
            constraints=pairs.constraints,
            append_bos=pairs.append_bos,
            eos=pairs.eos,
            src_lang_id=pairs.src_lang_id,
            tgt_lang_id=pairs.tgt_lang_id,
            pad_to_multiple=pairs.pad_to_multiple,
        )
        self._clean_sizes = self.tgt_sizes
        self._measure()

    @property
    def can_reuse_epoch_itr_across_epochs(self):
        # Resampled targets have other lengths in every epoch, hence other batches.
        return not self.tgt.resample

    def set_epoch(self, epoch):
        super().set_epoch(epoch)
        if self.tgt.resample and epoch != self.tgt.epoch:
            self.tgt.epoch = epoch
            self._measure()

    def _measure(self):
        """Set the target lengths to those of the noisy targets."""
        corruption = self.tgt.corruption
        title = f"target noise {corruption.noise.text}, seed {corruption.seed}"
        if corruption.noise.keeps_words and corruption.units.keeps_length:
            logger.info(f"{title}: the lengths of the targets stay the same")
            return
        start, cut = time.time(), 0
        sizes = np.array(self._clean_sizes)
        for index in range(len(sizes)):
            ids, was_cut = self.tgt.corrupt(index)
            sizes[index] = len(ids)
            cut += was_cut
            if (index + 1) % 500_000 == 0:
                logger.info(f"measured {index + 1:,} of {len(sizes):,} noisy targets")
        self.tgt_sizes = sizes
        self.sizes = np.vstack((self.src_sizes, sizes)).T
        logger.info(
            f"{title}: {self._clean_sizes.sum():,} -> {sizes.sum():,} target tokens in "
            f"{len(sizes):,} examples ({time.time() - start:.1f} s)"
        )
        if cut:
            logger.warning(
                f"{cut:,} targets outgrew {corruption.max_length} tokens under noise and lost "
                "their last words (raise --max-target-positions to keep them)"
            )
