"""Style transfer: two files of sentences a split, whose file is their style."""

import logging
import os
from dataclasses import dataclass, field
from typing import Any, List, Optional

import torch
from fairseq import utils
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask, register_task

from ..common.part_of_speech import check_tagger, nouns
from ..data.style_text import StyleTextDataset

logger = logging.getLogger(__name__)
CRITERIONS = ("style_transfer", "style_classification")
CONTENT_WORDS = ("none", "nouns")
OTHER, OWN = "other", "own"


@dataclass
class StyleTransferConfig(FairseqDataclass):
    data: Optional[str] = field(
        default=None,
        metadata={
            "help": "folder that fairseq-preprocess -s STYLE -t STYLE --joined-dictionary has made "
            "of one text a style; the two need not have the same number of lines"
        },
    )
    styles: Optional[str] = field(
        default=None,
        metadata={
            "help": "the two styles, as the files end: A,B (default: as the folder's files are "
            "named)"
        },
    )
    max_words: int = field(
        default=15,
        metadata={
            "help": "longer sentences are left out of training and validation, and counted; 0: none"
        },
    )
    content_words: ChoiceEnum(CONTENT_WORDS) = field(  # type: ignore[valid-type]
        default="none",
        metadata={"help": "words that --content-factor is for: nouns need textblob, English text"},
    )
    transfer_to: str = field(
        default=OTHER,
        metadata={
            "help": "style of what is generated: other (than that of the sentence, which the "
            "model's classifier guesses where no file says it), own, or the name of a style"
        },
    )
    # Those of the data, wherever they are given.
    dataset_impl: Optional[str] = "${dataset.dataset_impl}"
    train_subset: str = "${dataset.train_subset}"
    valid_subset: str = "${dataset.valid_subset}"


@register_task("style_transfer", dataclass=StyleTransferConfig)
class StyleTransferTask(FairseqTask):
    """Rewriting sentences in another style, learnt without pairs of sentences.

    Sentences are numbered through: those of the first style come first.
    """

    cfg: StyleTransferConfig
    autoregressive = True

    def __init__(self, cfg: StyleTransferConfig, dictionary: Dictionary, styles: List[str]):
        super().__init__(cfg)
        self.dictionary, self.styles = dictionary, styles
        if cfg.max_words < 0:
            raise ValueError(f"--max-words must be 0 or more, not {cfg.max_words}")
        if str(cfg.content_words) not in CONTENT_WORDS:
            raise ValueError(
                f"--content-words: {str(cfg.content_words)!r} is unknown; choose from "
                f"{', '.join(CONTENT_WORDS)}"
            )
        if str(cfg.content_words) == "nouns":
            try:
                check_tagger()
            except ValueError as err:
                raise ValueError(f"--content-words nouns: {err}") from None
        choices = [OTHER, OWN, *styles]
        if cfg.transfer_to not in choices:
            raise ValueError(
                f"--transfer-to: {cfg.transfer_to!r} is unknown; choose from {', '.join(choices)}"
            )

    @classmethod
    def setup_task(cls, cfg: StyleTransferConfig, **kwargs):
        """Raises ValueError: a folder without the dictionaries of two styles, or with two
        different ones; the message names the flag or the file."""
        folder = utils.split_paths(cfg.data or "")[0]
        styles = _styles(cfg, folder)
        found = []
        for style in styles:
            path = os.path.join(folder, f"dict.{style}.txt")
            if not os.path.isfile(path):
                raise ValueError(f"{path}: there is no such dictionary (style {style})")
            found.append(Dictionary.load(path))
        if found[0].indices != found[1].indices:
            raise ValueError(
                f"{folder}: the dictionaries of {' and '.join(styles)} differ; preprocess both "
                "with --joined-dictionary"
            )
        logger.info(f"[{', '.join(styles)}] dictionary: {len(found[0])} types")
        return cls(cfg, found[0], styles)

    def load_dataset(self, split, epoch=1, combine=False, **kwargs):
        """Load both files of a split.

        Raises:
            ValueError: one of them is missing or empty, or no sentence is short enough.
        """
        paths = utils.split_paths(self.cfg.data)
        folder = paths[(epoch - 1) % len(paths)]
        texts = [self._text(folder, split, style) for style in self.styles]
        trains = split in (self.cfg.train_subset, *str(self.cfg.valid_subset).split(","))
        longest = self.cfg.max_words + 1 if trains and self.cfg.max_words else None
        content = self._nouns if str(self.cfg.content_words) == "nouns" else None
        sizes = [text.sizes for text in texts]
        found = StyleTextDataset(texts, sizes, self.dictionary, longest, content)
        if not len(found):
            raise ValueError(
                f"--max-words {self.cfg.max_words}: every sentence of {split} is longer"
            )
        counts = [int((found.styles == style).sum()) for style in (0, 1)]
        told = ", ".join(f"{count:,} {style}" for count, style in zip(counts, self.styles))
        left = f"; {found.left_out:,} longer than --max-words {self.cfg.max_words} are left out"
        logger.info(f"{split}: {told} sentences{left if found.left_out else ''}")
        self.datasets[split] = found

    def _text(self, folder: str, split: str, style: str):
        path = os.path.join(folder, f"{split}.{'-'.join(self.styles)}.{style}")
        try:
            found = data_utils.load_indexed_dataset(path, self.dictionary, self.cfg.dataset_impl)
        except (ValueError, OSError) as err:  # a file of nothing cannot be mapped into memory
            if os.path.isfile(f"{path}.bin") and not os.path.getsize(f"{path}.bin"):
                raise ValueError(f"{path}: there is no sentence of style {style} in it") from None
            raise ValueError(f"{path}: {err}") from None
        if found is None:
            raise ValueError(f"{path}.idx: there is no such file (split {split}, style {style})")
        if not len(found):
            raise ValueError(f"{path}: there is no sentence of style {style} in it")
        return found

    def _nouns(self, tokens: torch.Tensor) -> torch.Tensor:
        """(S,) bool of (S,) ids; the end symbol and unknown words are none."""
        words = [self.dictionary[token] for token in tokens.tolist()]
        mask = torch.tensor(nouns(words), dtype=torch.bool)
        return mask & tokens.ne(self.dictionary.unk()) & tokens.ne(self.dictionary.eos())

    def build_criterion(self, cfg, from_checkpoint=False):
        if cfg._name not in CRITERIONS:
            raise ValueError(
                f"--criterion {cfg._name} does not train --task style_transfer; choose from "
                f"{', '.join(CRITERIONS)}"
            )
        return super().build_criterion(cfg, from_checkpoint)

    def build_dataset_for_inference(self, src_tokens, src_lengths, constraints=None, **kwargs):
        """Sentences that a user types; nobody says what their style is."""
        if constraints is not None:
            raise ValueError("--constraints: --task style_transfer knows none")
        return StyleTextDataset([src_tokens], [src_lengths], self.dictionary, styled=False)

    def inference_step(
        self, generator, models, sample, prefix_tokens=None, constraints=None
    ) -> List[Any]:
        """Generate in the style that ``--transfer-to`` says."""
        wanted = self.wanted_styles(models, sample["net_input"])
        sample = {**sample, "net_input": {**sample["net_input"], "styles": wanted}}
        return super().inference_step(generator, models, sample, prefix_tokens, constraints)

    @torch.no_grad()
    def wanted_styles(self, models, net_input) -> torch.Tensor:
        """(B,) the styles in which sentences are generated."""
        tokens = net_input["src_tokens"]
        if self.cfg.transfer_to in self.styles:
            return tokens.new_full((len(tokens),), self.styles.index(self.cfg.transfer_to))
        own = net_input.get("styles")
        if own is None:
            own = models[0].classifier(tokens, tokens.ne(self.dictionary.pad())).argmax(1)
        return own if self.cfg.transfer_to == OWN else 1 - own

    def max_positions(self):
        """No limit of its own: ``--max-words`` has one for training."""
        return None

    @property
    def source_dictionary(self):
        return self.dictionary

    @property
    def target_dictionary(self):
        return self.dictionary


def _styles(cfg: StyleTransferConfig, folder: str) -> List[str]:
    """The names of the two styles."""
    if not os.path.isdir(folder):
        raise ValueError(f"{folder}: there is no such folder of data")
    pair = data_utils.infer_language_pair(folder)
    named = cfg.styles.split(",") if cfg.styles else list(pair)
    if len(named) != 2 or None in named or named[0] == named[1] or "" in named:
        if cfg.styles:
            raise ValueError(
                f"--styles {cfg.styles}: two names are needed, as in negative,positive"
            )
        raise ValueError(
            f"{folder}: there are no files SPLIT.A-B.A.idx of two styles A and B; make them with "
            "fairseq-preprocess -s A -t B --joined-dictionary"
        )
    if None not in pair and named != list(pair):
        raise ValueError(f"--styles {cfg.styles}: the files of {folder} are of {','.join(pair)}")
    return named
