"""``--clean-text``: n-grams of the training targets weighed by a text without noise."""

import logging
import os
import time
from dataclasses import dataclass, field
from typing import Any, Iterator, Optional

import torch
from fairseq.data import BaseWrapperDataset, Dictionary, indexed_dataset
from fairseq.dataclass import FairseqDataclass
from torch import Tensor

from ..losses import CleanTextWeights, NGramWeights, count_ngrams
from ..losses.clean_text import NGramCounts, check_numbers
from .idle_flags import GivenFlags

logger = logging.getLogger(__name__)

_NUMBERS = ("clean_text_smoothing", "clean_text_cap")
FLAGS = ("clean_text", *_NUMBERS)
_ENDS = ("bin", "idx")
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
        metadata={
            "help": "occurrences, in the smaller text, that each n-gram is given beyond its own; "
            "above 0"
        },
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


def idle_number_lines(given: GivenFlags) -> Iterator[str]:
    """A line on numbers that are set where there is no text."""
    if "clean_text" in given.defaults and getattr(given.cfg, "clean_text", None) is None:
        yield from given.lines(_NUMBERS, "without --clean-text")


class TrainingWeights:
    """The weights of training targets.

    Counted at the first training batch, when the targets are there; validation needs neither them
    nor the text. Every worker counts all of them, so that all have the same weights.
    """

    def __init__(self, cfg: Any, task: Any):
        self.cfg, self.task = cfg, task
        self.dictionary: Dictionary = task.target_dictionary
        self._weights: Optional[CleanTextWeights] = None
        problem = _missing(str(cfg.clean_text))
        if problem:  # no error: fairseq-validate builds the criterion as well
            logger.warning(f"{problem}. No training can begin; validation needs no clean text")

    def __call__(self, targets: Tensor) -> NGramWeights:
        """Of (B, S) targets."""
        if self._weights is None:
            self._weights = self._count()
        return self._weights(targets)

    def _count(self) -> CleanTextWeights:
        start, cfg = time.monotonic(), self.cfg
        text = _load(str(cfg.clean_text), self.dictionary)
        targets = _training_targets(self.task)
        # Where targets begin with a symbol for that, sentences of the text are given one, too: else
        # no first word would have a pair that is known.
        begin = len(targets) > 0 and int(targets[0][0]) == self.dictionary.bos()
        # And what targets have behind EOS: a symbol of their language, for a pretrained BART.
        end = self._behind_eos(targets[0]) if len(targets) else None
        clean = self._counts(text, "sentences of the clean text", begin, end)
        noisy = self._counts(targets, "training targets", begin, None)
        weights = CleanTextWeights(clean, noisy, cfg.clean_text_smoothing, cfg.clean_text_cap)
        token, pair = weights.means()
        logger.info(
            f"clean text: counted {len(targets):,} training targets and {len(text):,} "
            f"clean sentences in {time.monotonic() - start:.0f} s; mean weight of a token "
            f"{token:.2f}, of a pair {pair:.2f}"
        )
        least = weights.least(_SHOWN)
        if least:
            shown = (f"{self.dictionary[i]} {w:.2f} ({s:.1%} of the targets)" for i, w, s in least)
            logger.info(f"clean text: tokens that lose most: {', '.join(shown)}")
        return weights

    def _behind_eos(self, target: Tensor) -> Optional[Tensor]:
        """The symbols behind the last EOS; None without one."""
        places = target.eq(self.dictionary.eos()).nonzero()
        return target[int(places[-1]) + 1 :] if len(places) else None

    def _counts(self, sentences: Any, what: str, begin: bool, end: Optional[Tensor]) -> NGramCounts:
        return count_ngrams(self._words(sentences, what, begin, end), len(self.dictionary))

    def _words(
        self, sentences: Any, what: str, begin: bool, end: Optional[Tensor]
    ) -> Iterator[Tensor]:
        """All sentences with a symbol at their start, or all without; up to EOS and on with
        ``end``, or as they end."""
        bos, said = self.dictionary.bos(), time.monotonic()
        for i in range(len(sentences)):
            ids = sentences[i]
            ids = ids[ids.ne(bos)]
            own = self._behind_eos(ids)
            if end is not None and own is not None:
                ids = torch.cat([ids[: len(ids) - len(own)], end])
            yield torch.cat([ids.new_tensor([bos]), ids]) if begin else ids
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                logger.info(f"clean text: counted {i + 1:,} of {len(sentences):,} {what}")


def _missing(prefix: str) -> str:
    """What is wrong with a path; empty if there are such files."""
    lacking = [f"{prefix}.{end}" for end in _ENDS if not os.path.isfile(f"{prefix}.{end}")]
    if not lacking:
        return ""
    hint = (
        "fairseq-preprocess --only-source --trainpref TEXT --srcdict DICT --destdir FOLDER writes "
        "FOLDER/train"
    )
    stem, _, end = prefix.rpartition(".")
    if end in _ENDS and not _missing(stem):
        hint = f"the prefix of both is {stem}"
    elif os.path.isdir(prefix):
        names = {name.rpartition(".")[0] for name in os.listdir(prefix) if name.endswith(".idx")}
        found = ", ".join(os.path.join(prefix, name) for name in sorted(names))
        hint = f"{prefix} is a folder; the prefixes in it are {found or 'none'}"
    return f"--clean-text {prefix}: there is no {' and no '.join(lacking)} ({hint})"


def _load(prefix: str, dictionary: Dictionary) -> Any:
    """The text, checked to have the ids of the targets."""
    problem = _missing(prefix)
    if problem:
        raise ValueError(problem)
    try:
        kind = indexed_dataset.infer_dataset_impl(prefix)
        kind = "lazy" if kind == "cached" else kind  # which nobody has asked to read ahead
        # The older formats hold each id plus one.
        text = indexed_dataset.make_dataset(
            prefix, kind, fix_lua_indexing=True, dictionary=dictionary
        )
    except (AssertionError, OSError, ValueError, EOFError) as err:
        raise ValueError(f"--clean-text {prefix}: {str(err) or 'it cannot be read'}") from None
    if text is None:
        raise ValueError(f"--clean-text {prefix}: {prefix}.idx is no index of fairseq-preprocess")
    if not len(text):
        raise ValueError(f"--clean-text {prefix}: it has no sentence")
    folder, name = os.path.split(prefix)
    language = name.rpartition(".")[2]
    paths = [os.path.join(folder, file) for file in (f"dict.{language}.txt", "dict.txt")]
    path = next(filter(os.path.isfile, paths), None)
    if path is None:
        logger.warning(
            f"--clean-text {prefix}: no {' or '.join(paths)}, so that its ids cannot be checked "
            "against those of the targets"
        )
    else:
        _check_symbols(path, prefix, dictionary)
    return text


def _check_symbols(path: str, prefix: str, dictionary: Dictionary):
    """Symbols behind those of the targets, as denoising's mask, are allowed."""
    own = Dictionary.load(path).symbols
    for i, (found, needed) in enumerate(zip(own, dictionary.symbols)):
        if found != needed:
            raise ValueError(
                f"--clean-text {prefix}: {path} is not the dictionary of the targets: id {i} is "
                f"{found!r} there and {needed!r} here; binarise the text with that of the targets"
            )


def _training_targets(task: Any) -> Any:
    """The targets of the training set, with their noise."""
    cfg = getattr(task, "cfg", None)
    split = getattr(cfg, "train_subset", None) or "train"
    folders = str(getattr(cfg, "data", "")).split(os.pathsep)
    if len(folders) > 1:
        raise ValueError(
            f"--clean-text counts the targets of one data folder; {len(folders)} are given: "
            f"{os.pathsep.join(folders)}"
        )
    loaded = getattr(task, "datasets", {})
    if split not in loaded:
        shown = ", ".join(loaded) or "nothing"
        raise ValueError(f"--clean-text: --train-subset {split} is not loaded (loaded: {shown})")
    pairs = loaded[split]
    while isinstance(pairs, BaseWrapperDataset):
        pairs = pairs.dataset
    targets = getattr(pairs, "tgt", None)
    if targets is None:
        raise ValueError(
            f"--clean-text weighs the targets of sentence pairs; {type(task).__name__} has none"
        )
    return targets.of_no_epoch() if hasattr(targets, "of_no_epoch") else targets
