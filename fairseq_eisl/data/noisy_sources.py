"""A denoising dataset whose masks can be had again, and whose sources get noise on whole words."""

import contextlib
from typing import Iterator, Optional

import torch
from fairseq.data import BaseWrapperDataset

from ..noise import example_rng
from .noisy_targets import TargetCorruption
from .shared_number import SharedNumber


class NoisySourceDataset(BaseWrapperDataset):
    """A dataset of ``{"id", "source", "target"}`` whose sources are masked, and corrupted, when
    they are read; masks are words. Both depend on (seed, index, epoch) alone, whoever reads what
    in which order, and are new in every epoch.

    Args:
        dataset: fairseq's ``DenoisingDataset``, which masks by torch's global generator.
        corruption: of the sources, if any.
        seed: of the masks.
    """

    def __init__(self, dataset, corruption: Optional[TargetCorruption], seed: int):
        super().__init__(dataset)
        self.corruption, self.seed = corruption, seed
        self._epoch = SharedNumber(1)  # read by workers that may outlive an epoch

    def __getitem__(self, index):
        epoch = self._epoch.value
        self.dataset.set_epoch(epoch)  # a worker's own copy of it has that of its start
        with _drawn_from(self.seed, int(index), epoch):
            item = self.dataset[index]
        if self.corruption is None:
            return item
        source = item["source"]
        noisy, _ = self.corruption(source.tolist(), int(index), epoch)
        return {**item, "source": torch.tensor(noisy, dtype=source.dtype)}

    def set_epoch(self, epoch):
        super().set_epoch(epoch)
        self._epoch.value = epoch


@contextlib.contextmanager
def _drawn_from(seed: int, index: int, epoch: int) -> Iterator[None]:
    """Within the block torch's generator of the CPU, and no other one, is that of an example."""
    generator = torch.default_generator
    before = generator.get_state()
    generator.manual_seed(example_rng(seed, index, epoch).getrandbits(63))
    try:
        yield
    finally:
        generator.set_state(before)
