"""A denoising dataset whose sources get noise on whole words as well."""

import torch
from fairseq.data import BaseWrapperDataset

from .noisy_targets import TargetCorruption
from .shared_number import SharedNumber


class NoisySourceDataset(BaseWrapperDataset):
    """A dataset of ``{"id", "source", "target"}`` whose sources are corrupted when they are read;
    masks that they have are words. Noise depends on (seed, index, epoch) alone, and is new in
    every epoch."""

    def __init__(self, dataset, corruption: TargetCorruption):
        super().__init__(dataset)
        self.corruption = corruption
        self._epoch = SharedNumber(1)  # read by workers that may outlive an epoch

    def __getitem__(self, index):
        item = self.dataset[index]
        source = item["source"]
        noisy, _ = self.corruption(source.tolist(), int(index), self._epoch.value)
        return {**item, "source": torch.tensor(noisy, dtype=source.dtype)}

    def set_epoch(self, epoch):
        super().set_epoch(epoch)
        self._epoch.value = epoch
