"""Denoising pretraining with noise on whole words beside fairseq's own."""

from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from fairseq.tasks.denoising import DenoisingConfig, DenoisingTask

from ..data.noisy_sources import NoisySourceDataset
from ..data.noisy_targets import TargetCorruption
from ..noise import SCHEMES, parse_noise
from .noise_flags import one_text, say_idle
from .word_units import word_units


@dataclass
class NoisyDenoisingConfig(DenoisingConfig):
    source_noise: Any = field(  # hydra and YAML have lists
        default="none",
        metadata={
            "help": "noise on the words of the sources, after fairseq's masks, e.g. "
            "shuffle:3,drop:0.1; new in every epoch"
        },
    )
    source_noise_seed: int = field(default=1, metadata={"help": "seed of the source noise"})
    source_noise_bpe: ChoiceEnum(("auto",) + SCHEMES) = field(  # type: ignore[valid-type]
        default="auto",
        metadata={"help": "how words are split into pieces; auto reads it off the dictionary"},
    )


@register_task("noisy_denoising", dataclass=NoisyDenoisingConfig)
class NoisyDenoisingTask(DenoisingTask):
    """Stock ``denoising``, whose sources may also lose the order of their words, or words.

    Masks and noise of a training are the same for any number of workers, and where it goes on
    after a kill; those of the validation set, in every validation.
    """

    def __init__(self, cfg, dictionary):
        super().__init__(cfg, dictionary)
        noise = parse_noise(one_text(cfg.source_noise, "--source-noise"), flag="--source-noise")
        self._corruption = None
        if not noise.operators:
            say_idle(cfg, NoisyDenoisingConfig, "--source-noise")
        else:
            units = word_units(
                dictionary, str(cfg.source_noise_bpe), cfg.data, prefix="--source-noise"
            )
            seed = cfg.source_noise_seed
            self._corruption = TargetCorruption(noise, units, dictionary.unk(), seed)

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load a split; its sources get the noise."""
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        stock = self.datasets[split]
        self.datasets[split] = NoisySourceDataset(stock, self._corruption, self.cfg.seed)
