"""What the translation tasks with noisy targets share: flags, word units, the noisy split."""

import copy
import logging
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.models.nat import FairseqNATModel
from fairseq.tasks.translation import TranslationTask

from ..data.literal_padding import LiteralPaddingDataset, as_unknown
from ..data.noisy_targets import NoisyTargetDataset, TargetCorruption
from ..noise import SCHEMES, WordUnits, parse_noise
from .criterion_kinds import check_criterion
from .noise_flags import one_text, say_idle
from .word_starts import WordStarts
from .word_units import word_units

logger = logging.getLogger(__name__)


@dataclass
class TargetNoiseConfig(FairseqDataclass):
    target_noise: Any = field(  # hydra and YAML have lists
        default="none",
        metadata={
            "help": "noise on the targets of the training split, e.g. repeat:0.5, shuffle:3, "
            "shuffle:all, blank:0.2, synthetic:5, or several joined by commas"
        },
    )
    target_noise_seed: int = field(
        default=1, metadata={"help": "seed of the target noise (--seed does not change it)"}
    )
    target_noise_resample: bool = field(
        default=False, metadata={"help": "draw new noise in every epoch (default: noise once)"}
    )
    target_noise_bpe: ChoiceEnum(("auto",) + SCHEMES) = field(  # type: ignore[valid-type]
        default="auto",
        metadata={
            "help": "how target words are split into pieces, so that noise acts on whole words; "
            "auto reads it off the dictionary"
        },
    )
    target_noise_blank: str = field(
        default="<unk>", metadata={"help": "dictionary symbol that stands for a blanked word"}
    )
    target_noise_gpt2_encoder: Optional[str] = field(
        default=None,
        metadata={
            "help": "GPT-2's encoder.json, for dictionaries of GPT-2 piece numbers such as BART's "
            "(default: encoder.json in the data folder)"
        },
    )


class TargetNoise(TranslationTask):
    """A translation task whose training targets are corrupted on the fly.

    Validation, test and generation never see noise, whatever the flags say.
    """

    autoregressive = True
    """Whether the models of the task are; the others have a task of their own."""

    def __init__(self, cfg, src_dict, tgt_dict):
        super().__init__(cfg, src_dict, tgt_dict)
        self.noise = parse_noise(
            one_text(cfg.target_noise, "--target-noise"), flag="--target-noise"
        )
        if not self.noise.operators:
            say_idle(cfg, TargetNoiseConfig, "--target-noise")
        # Here, not when data are loaded: fairseq loads validation data first, and its buckets
        # die on today's numpy with a message of their own.
        for flag, value in (
            ("--load-alignments", cfg.load_alignments),
            ("--num-batch-buckets", cfg.num_batch_buckets),
        ):
            if value and self.noise.operators:
                raise ValueError(f"{flag} {value} cannot be combined with --target-noise")
        self._blank = tgt_dict.index(cfg.target_noise_blank)
        unknown = self._blank == tgt_dict.unk() and cfg.target_noise_blank != tgt_dict.unk_word
        if unknown:
            raise ValueError(
                f"--target-noise-blank: {cfg.target_noise_blank!r} is not in the target "
                f"dictionary of {len(tgt_dict)} symbols; choose one of its symbols, such as "
                f"{tgt_dict.unk_word}"
            )
        self._units = self._word_units() if self.noise.operators else None
        self._starts: Optional[WordStarts] = None
        self._model_max_target = None
        # The training split as validation sees it, and whether a trainer has loaded it to train.
        self._train_as_validation, self._trains = None, False
        self._shard = 0  # of several data folders, that which is trained on

    def _word_units(self) -> WordUnits:
        cfg = self.cfg
        encoder = cfg.target_noise_gpt2_encoder
        return word_units(self.tgt_dict, str(cfg.target_noise_bpe), cfg.data, encoder)

    def word_starts(self, tokens):
        """(B, S) ids of the target dictionary to (B, S) bool: which pieces begin a word."""
        if self._starts is None:
            self._starts = WordStarts(self._units or self._word_units())
        return self._starts(tokens)

    def build_criterion(self, cfg, from_checkpoint=False):
        check_criterion(cfg._name, self.autoregressive)
        return super().build_criterion(cfg, from_checkpoint)

    def build_model(self, cfg, from_checkpoint=False):
        model = super().build_model(cfg, from_checkpoint)
        name = type(model).__name__
        # The other task decodes with autoregressive models, too: they rerank.
        reranker = from_checkpoint and not self.autoregressive
        if isinstance(model, FairseqNATModel) == self.autoregressive and not reranker:
            kind, task = (
                ("is not autoregressive", "noisy_translation_lev (or translation_lev)")
                if self.autoregressive
                else ("is autoregressive", "noisy_translation (or translation)")
            )
            raise ValueError(f"--task: {name} {kind}; it needs --task {task}")
        if self.cfg.eval_bleu:
            logger.info(f"validation decodes with {self.decoding(self.sequence_generator)}")
        positions = model.max_positions()
        if isinstance(positions, (tuple, list)):
            self._model_max_target = positions[-1]
        return model

    def decoding(self, generator) -> str:
        """What a generator of the task does, in words for the log."""
        length = f"{generator.max_len_a} x source + {generator.max_len_b} tokens at most"
        search = type(generator.search).__name__
        plain = search == "BeamSearch"
        return (
            f"beam {generator.beam_size}{'' if plain else f' ({search})'}, "
            f"length penalty {generator.len_penalty}, {length}"
        )

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load a split; the training split gets noisy targets."""
        super().load_dataset(split, epoch=epoch, combine=combine, **kwargs)
        pairs = self.datasets[split]
        if not self.cfg.num_batch_buckets:  # which pad sentences before they are batched
            pairs.src = self._words_only(pairs.src, self.src_dict)
            pairs.tgt = self._words_only(pairs.tgt, self.tgt_dict)
        # fairseq-generate and fairseq-validate pass the checkpoint's task; training does not.
        if split != self.cfg.train_subset or "task_cfg" in kwargs:
            self.datasets[split] = self.validation_data(pairs)
            return
        self._shard = (epoch - 1) % len(utils.split_paths(self.cfg.data))
        if "data_selector" in kwargs:  # the trainer loads what it trains on with one
            self._trains = True
        else:  # before that, fairseq-train loads what it validates on (--valid-subset train)
            self._train_as_validation = self.validation_data(copy.copy(pairs))
        self.datasets[split] = self.training_data(pairs)

    @staticmethod
    def _words_only(side, dictionary):
        if side is None:  # there may be no targets
            return None
        return LiteralPaddingDataset(side, dictionary.pad(), dictionary.unk())

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None):
        """Sentences to translate, read as those of a corpus are."""
        pad, unk = self.src_dict.pad(), self.src_dict.unk()
        src_tokens = [as_unknown(tokens, pad, unk) for tokens in src_tokens]
        return self.inference_pairs(src_tokens, src_lengths, constraints)

    def inference_pairs(self, src_tokens, src_lengths, constraints):
        """The dataset of :meth:`build_dataset_for_inference`."""
        return super().build_dataset_for_inference(src_tokens, src_lengths, constraints)

    def validation_data(self, pairs):
        """What is validated, tested or translated, of the ``pairs`` of a split."""
        return pairs

    def training_data(self, pairs):
        """What is trained on, of the ``pairs`` of the training split."""
        return self._noisy(pairs) if self.noise.operators else pairs

    def get_batch_iterator(self, dataset, *args, **kwargs):
        """As fairseq's; validation on the training split gets a dataset of its own.

        fairseq asks for both by the name of the split. The one dataset would be noisy in
        validation, too, and as fairseq keeps one iterator a dataset, each validation would
        end the epoch that is being trained.
        """
        own = self._train_as_validation
        # Only the trainer's iterator for training says how it groups batches.
        if own is not None and self._trains and "grouped_shuffling" not in kwargs:
            if dataset is self.datasets.get(self.cfg.train_subset):
                dataset = own
        return super().get_batch_iterator(dataset, *args, **kwargs)

    def most_target_tokens(self) -> Optional[int]:
        """What the task, and the model if there is one yet, have positions for."""
        limits = (self.cfg.max_target_positions, self._model_max_target)
        return min((limit for limit in limits if limit), default=None)

    def _noisy(self, pairs):
        assert self._units is not None
        corruption = TargetCorruption(
            self.noise,
            self._units,
            self._blank,
            self.cfg.target_noise_seed,
            max_length=self.most_target_tokens(),
            shard=self._shard,
        )
        return NoisyTargetDataset(pairs, corruption, self.cfg.target_noise_resample)

    def reduce_metrics(self, logging_outputs, criterion):
        """Stock metrics; BLEU is there from the first validation on, as 0 for empty output.

        fairseq logs none while no hypothesis has a word, and then dies looking for it
        (``--best-checkpoint-metric bleu``).
        """
        if self.cfg.eval_bleu and any("_bleu_sys_len" in log for log in logging_outputs):
            metrics.log_derived("bleu", _bleu)
        super().reduce_metrics(logging_outputs, criterion)


def _bleu(meters) -> float:
    """BLEU of the sufficient statistics that stock validation sums."""
    from sacrebleu.metrics import BLEU

    if "_bleu_counts" not in meters:
        return 0.0
    score = BLEU.compute_bleu(
        correct=meters["_bleu_counts"].sum.tolist(),
        total=meters["_bleu_totals"].sum.tolist(),
        sys_len=int(meters["_bleu_sys_len"].sum),
        ref_len=int(meters["_bleu_ref_len"].sum),
        smooth_method="exp",
    )
    return round(score.score, 2)
