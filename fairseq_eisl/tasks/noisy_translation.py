"""Translation with corrupted training targets."""

from dataclasses import dataclass

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig

from ._target_noise import TargetNoise, TargetNoiseConfig


@dataclass
class NoisyTranslationConfig(TargetNoiseConfig, TranslationConfig):
    pass


@register_task("noisy_translation", dataclass=NoisyTranslationConfig)
class NoisyTranslationTask(TargetNoise):
    """Stock ``translation`` whose training targets are corrupted on the fly."""

    cfg: NoisyTranslationConfig

    def build_criterion(self, cfg, from_checkpoint=False):
        if cfg._name == "nat_loss":
            raise ValueError(
                "--criterion nat_loss trains non-autoregressive models; it needs "
                "--task noisy_translation_lev (or translation_lev)"
            )
        return super().build_criterion(cfg, from_checkpoint)
