"""``--clean-text``: n-grams of the training targets weighed by a text without noise."""

import logging
import os
import time
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional

from fairseq.data import BaseWrapperDataset, Dictionary, data_utils
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

from ..losses import CleanTextWeights, NGramWeights, count_ngrams
from ..losses.clean_text import NGramCounts, check_numbers

logger = logging.getLogger(__name__)

IDLE_FLAGS = ("clean_text_smoothing", "clean_text_cap")
"""What has no effect without the text."""
FLAGS = ("clean_text", *IDLE_FLAGS)
_TRAINING_SET = "train"
_SHOWN = 5
_EVERY = 30.0  # seconds


@dataclass
class CleanTextConfig(FairseqDataclass):
    clean_text: Optional[str] = field(
        default=None,
        metadata={
            "help": "text of the target language without noise, as fairseq-preprocess writes it "
            "(its PREFIX.bin and PREFIX.idx, in the pieces and with the dictionary of the "
            "targets): n-grams that the training targets have more often count less"
        },
    )
    clean_text_smoothing: float = field(
        default=0.3,
        metadata={"help": "occurrences that each n-gram is given beyond its own, above 0"},
    )
    clean_text_cap: float = field(
        default=5.0, metadata={"help": "no n-gram counts more than this, 1 or above"}
    )


def check_clean_text_flags(cfg: Any):
    """Raise ValueError for a number that cannot be meant, which names the flag."""
    try:
        check_numbers(cfg.clean_text_smoothing, cfg.clean_text_cap)
    except ValueError as err:
        raise ValueError(f"--clean-text-{err}") from None


class TrainingWeights:
    """The weights of training targets. Counted at the first batch, when the targets are there;
    every worker counts all of them, so that all have the same weights."""

    def __init__(self, cfg: Any, task: Any):
        self.cfg, self.task = cfg, task
        self.dictionary: Dictionary = task.target_dictionary
        self.clean = _load(str(cfg.clean_text), self.dictionary)
        self._weights: Optional[CleanTextWeights] = None

    def __call__(self, targets: Tensor) -> NGramWeights:
        """Of (B, S) targets."""
        if self._weights is None:
            self._weights = self._count()
        return self._weights(targets)

    def _count(self) -> CleanTextWeights:
        start = time.monotonic()
        targets = _training_targets(self.task)
        clean = self._counts(self.clean, "sentences of the clean text")
        noisy = self._counts(targets, "training targets")
        cfg = self.cfg
        weights = CleanTextWeights(clean, noisy, cfg.clean_text_smoothing, cfg.clean_text_cap)
        token, pair = weights.means()
        logger.info(
            f"clean text: counted {len(targets):,} training targets and {len(self.clean):,} "
            f"clean sentences in {time.monotonic() - start:.0f} s; mean weight of a token "
            f"{token:.2f}, of a pair {pair:.2f}"
        )
        least = weights.least(_SHOWN)
        if least:
            shown = (f"{self.dictionary[i]} {w:.2f} ({s:.1%} of the targets)" for i, w, s in least)
            logger.info(f"clean text: tokens that lose most: {', '.join(shown)}")
        return weights

    def _counts(self, sentences: Any, what: str) -> NGramCounts:
        return count_ngrams(self._words(sentences, what), len(self.dictionary))

    def _words(self, sentences: Any, what: str) -> Iterator[Tensor]:
        """Without what marks the start: a text may or may not have it."""
        begin, said = self.dictionary.bos(), time.monotonic()
        for i in range(len(sentences)):
            ids = sentences[i]
            yield ids[ids.ne(begin)]
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                logger.info(f"clean text: counted {i + 1:,} of {len(sentences):,} {what}")


def _load(prefix: str, dictionary: Dictionary) -> Any:
    """The text, checked to have the ids of the targets."""
    text = data_utils.load_indexed_dataset(prefix, dictionary)
    if text is None:
        raise ValueError(
            f"--clean-text: there is no {prefix}.bin with {prefix}.idx; fairseq-preprocess "
            "--only-source --trainpref TEXT --srcdict DICT --destdir FOLDER writes FOLDER/train"
        )
    if not len(text):
        raise ValueError(f"--clean-text: {prefix} has no sentence")
    folder, name = os.path.split(prefix)
    language = name.rpartition(".")[2]
    for file in (f"dict.{language}.txt", "dict.txt"):
        path = os.path.join(folder, file)
        if os.path.isfile(path):
            _check_symbols(path, dictionary)
            break
    return text


def _check_symbols(path: str, dictionary: Dictionary):
    """Symbols behind those of the targets, as denoising's mask, are allowed."""
    own = Dictionary.load(path).symbols
    for i, (found, needed) in enumerate(zip(own, dictionary.symbols)):
        if found != needed:
            raise ValueError(
                f"--clean-text: {path} is not the dictionary of the targets: id {i} is {found!r} "
                f"there and {needed!r} here; binarise the text with that of the targets"
            )


def _training_targets(task: Any) -> Any:
    """The targets of the training set, with their noise."""
    loaded = getattr(task, "datasets", {})
    pairs = loaded.get(_TRAINING_SET)
    while isinstance(pairs, BaseWrapperDataset):
        pairs = pairs.dataset
    targets = getattr(pairs, "tgt", None)
    if targets is None:
        raise ValueError(
            f"--clean-text counts the targets of sentence pairs in --train-subset {_TRAINING_SET}, "
            f"which {type(task).__name__} has not loaded (loaded: {', '.join(loaded) or 'nothing'})"
        )
    return targets
