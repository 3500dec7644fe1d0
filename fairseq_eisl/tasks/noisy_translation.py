"""Translation with corrupted training targets."""

from dataclasses import dataclass

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig

from .target_noise import TargetNoise, TargetNoiseConfig


@dataclass
class NoisyTranslationConfig(TargetNoiseConfig, TranslationConfig):
    pass


@register_task("noisy_translation", dataclass=NoisyTranslationConfig)
class NoisyTranslationTask(TargetNoise):
    """Stock ``translation`` whose training targets are corrupted on the fly."""

    cfg: NoisyTranslationConfig
