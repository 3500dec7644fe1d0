"""Translation with non-autoregressive models, with noisy targets and BLEU in validation."""

import argparse
import logging
from dataclasses import dataclass, field
from typing import Optional

from fairseq.data import LanguagePairDataset
from fairseq.dataclass import ChoiceEnum
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.nat import FairseqNATModel, LevenshteinTransformerModel
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationTask
from fairseq.tasks.translation_lev import (
    TranslationLevenshteinConfig,
    TranslationLevenshteinTask,
)

from ..data.partial_targets import PartialTargetDataset, Symbols
from ..decoding.fairseq.blanks import check_predicts_length
from ..decoding.fairseq.refinement import (
    LENGTH_CANDIDATES,
    RefinementGenerator,
    is_one_pass,
    validation_iterations,
)
from . import blank_slots, latent_models
from .initial_weights import level_transitions, load_initial_weights
from .model_noise import without_noise
from .target_noise import TargetNoise, TargetNoiseConfig

logger = logging.getLogger(__name__)


@dataclass
class NoisyTranslationLevConfig(
    blank_slots.BlankSlotsConfig,
    latent_models.LatentModelsConfig,
    TargetNoiseConfig,
    TranslationLevenshteinConfig,
):
    # The default says what is done, as the configuration is logged and saved as it is here.
    left_pad_source: bool = field(
        default=False, metadata={"help": "no effect: sources are padded on the right"}
    )
    left_pad_target: bool = field(
        default=False, metadata={"help": "no effect: targets are padded on the right"}
    )
    full_mask_prob: float = field(
        default=0.0,
        metadata={
            "help": "share of examples whose words are all masked or deleted, as in the first "
            "pass of decoding; for --noise random_mask and random_delete"
        },
    )
    length_candidates: ChoiceEnum(LENGTH_CANDIDATES) = field(  # type: ignore[valid-type]
        default="contiguous",
        metadata={
            "help": "the lengths that --iter-decode-with-beam tries: around the most likely one, "
            "or the most likely ones"
        },
    )
    remove_repeats: bool = field(
        default=False,
        metadata={"help": "drop tokens that repeat the one before them, after decoding"},
    )
    init_weights: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoint, also of another architecture, whose parameters training begins "
            "with where the names agree (a checkpoint that training resumes from counts more)"
        },
    )


@register_task("noisy_translation_lev", dataclass=NoisyTranslationLevConfig)
class NoisyTranslationLevTask(TargetNoise, TranslationLevenshteinTask):
    """Stock ``translation_lev`` with target noise, masks that do not depend on batches,
    ``--eval-bleu``, and decoding that respects the position table.

    Sources are padded on the right, whatever the flags say: ``--src-embedding-copy``
    counts positions from the left edge of the batch.
    """

    cfg: NoisyTranslationLevConfig
    autoregressive = False

    @classmethod
    def add_args(cls, parser):
        super().add_args(parser)
        for action in parser._actions:
            # fairseq's flags turn a default round. The flag for sources used to turn padding on
            # the left off; both may be given still.
            if action.dest in ("left_pad_source", "left_pad_target"):
                action.const = False

    def __init__(self, cfg: NoisyTranslationLevConfig, src_dict, tgt_dict):
        # That of a checkpoint, or one written by hand, may say otherwise.
        cfg.left_pad_source = cfg.left_pad_target = False
        super().__init__(cfg, src_dict, tgt_dict)
        if not 0 <= cfg.full_mask_prob <= 1:
            raise ValueError(f"--full-mask-prob must be in [0, 1], not {cfg.full_mask_prob}")
        partial = ("random_mask", "random_delete")
        if cfg.full_mask_prob > 0 and str(cfg.noise) not in partial:
            raise ValueError(
                f"--full-mask-prob {cfg.full_mask_prob} goes with --noise {' or '.join(partial)}, "
                f"not with {cfg.noise}"
            )
        blank_slots.check_flags(cfg)
        latent_models.check_flags(cfg)
        self._alignment: Optional[str] = None  # of the model, once there is one
        self.blank = blank_slots.blank_of(cfg, tgt_dict)
        self.symbols = Symbols(tgt_dict.bos(), tgt_dict.pad(), tgt_dict.eos(), tgt_dict.unk())

    def build_model(self, cfg, from_checkpoint=False):
        name = getattr(cfg, "_name", None)
        kind = ARCH_MODEL_REGISTRY.get(name)
        from_hydra = not isinstance(cfg, argparse.Namespace)
        if from_hydra and kind is not None and issubclass(kind, FairseqNATModel):
            raise ValueError(
                f"model._name={name}: fairseq has the options of non-autoregressive models on the "
                f"command line only; train with fairseq-train --arch {name}, not with hydra"
            )
        model = super().build_model(cfg, from_checkpoint)
        inserts = isinstance(model, LevenshteinTransformerModel)
        # Decoding needs no --noise; only training looks at it.
        if not from_checkpoint and inserts != (str(self.cfg.noise) == "random_delete"):
            fitting = "random_delete" if inserts else "full_mask (or random_mask, for CMLM)"
            raise ValueError(
                f"--noise {self.cfg.noise} does not fit {type(model).__name__}; it needs "
                f"--noise {fitting}"
            )
        if isinstance(model, FairseqNATModel):  # a reranker is none
            check_predicts_length(model, self.cfg.length_factor)
        if not from_checkpoint:
            blank_slots.check_trained_model(self.cfg, model)
            level_transitions(model)
            latent_models.check_trained_model(self.cfg, model)
            self._alignment = latent_models.kind_of(model)
        if self.cfg.init_weights and not from_checkpoint:
            load_initial_weights(model, self.cfg.init_weights)
        return model

    def build_criterion(self, cfg, from_checkpoint=False):
        criterion = super().build_criterion(cfg, from_checkpoint)
        blank_slots.check_criterion(self.cfg, cfg)
        if self._alignment is not None:
            latent_models.check_criterion(self._alignment, cfg._name)
        return criterion

    def validation_data(self, pairs):
        return self._with_decoder_input(super().validation_data(pairs), repeatable=True)

    def training_data(self, pairs):
        return self._with_decoder_input(super().training_data(pairs), repeatable=False)

    def _with_decoder_input(self, pairs, repeatable: bool):
        kind, share = str(self.cfg.noise), self.cfg.full_mask_prob
        return PartialTargetDataset(
            pairs,
            kind,
            share,
            self.symbols,
            repeatable,
            length_factor=self.cfg.axe_length_factor,
            max_length=self.most_target_tokens(),
        )

    def get_batch_iterator(self, dataset, *args, seed=1, **kwargs):
        """As fairseq's; ``seed`` (``--seed``) also draws the masks."""
        if isinstance(dataset, PartialTargetDataset):
            dataset.seed = seed
        return super().get_batch_iterator(dataset, *args, seed=seed, **kwargs)

    def inference_pairs(self, src_tokens, src_lengths, constraints):
        if constraints is not None:
            raise ValueError("--constraints: only autoregressive models decode with constraints")
        return LanguagePairDataset(
            src_tokens,
            src_lengths,
            self.source_dictionary,
            left_pad_source=False,
            append_bos=True,
        )

    def build_generator(self, models, args, **unused):
        model = models[0]
        iterations = getattr(args, "iter_decode_max_iter", None)
        if iterations is None:  # validation, unless --eval-bleu-args says more
            iterations = validation_iterations(model)
        elif iterations > 0 and is_one_pass(model):
            logger.warning(
                f"--iter-decode-max-iter {iterations}: {type(model).__name__} is made for one "
                "pass, and refinement makes its output worse; pass --iter-decode-max-iter 0"
            )
        return RefinementGenerator(
            self.target_dictionary,
            eos_penalty=getattr(args, "iter_decode_eos_penalty", 0.0),
            max_iter=iterations,
            beam_size=getattr(args, "iter_decode_with_beam", 1),
            reranking=getattr(args, "iter_decode_with_external_reranker", False),
            decoding_format=getattr(args, "decoding_format", None),
            adaptive=not getattr(args, "iter_decode_force_max_iter", False),
            retain_history=getattr(args, "retain_iter_history", False),
            length_candidates=str(self.cfg.length_candidates),
            remove_repeats=self.cfg.remove_repeats,
            max_length=self.cfg.max_target_positions,
            length_factor=self.cfg.length_factor,
            blank=self.blank,
            search=latent_models.search_of(self.cfg, model),
        )

    def decoding(self, generator) -> str:
        count = generator.beam_size
        lengths = f"{count} length candidates ({generator.length_candidates})"
        factor = generator.length_factor
        return (
            f"{generator.max_iter} refinement iterations, "
            f"{'1 length candidate' if count == 1 else lengths}"
            f"{'' if factor == 1 else f', {factor} slots a word'}"
            f"{', repeats removed' if generator.remove_repeats else ''}"
            f"{', ' + generator.search['search'] if generator.search else ''}"
        )

    def train_step(self, sample, model, criterion, optimizer, update_num, ignore_grad=False):
        # Past translation_lev, whose step would draw other masks from the global random state.
        return TranslationTask.train_step(
            self, sample, model, criterion, optimizer, update_num, ignore_grad
        )

    def valid_step(self, sample, model, criterion):
        with without_noise(model):
            return TranslationTask.valid_step(self, sample, model, criterion)
