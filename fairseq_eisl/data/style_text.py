"""Sentences of two styles, none of which is the translation of another."""

from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np
import torch
from fairseq.data import FairseqDataset, data_utils
from torch import Tensor

ContentWords = Callable[[Tensor], Tensor]
"""(S,) ids of a sentence to (S,) bool, its content words."""


class StyleTextDataset(FairseqDataset):
    """The sentences of the first style, then those of the second; each is its own target.

    Args:
        texts: one sequence of (S,) int64 sentences, with their end symbols, for each style; one
            alone where the styles are not known (``styled=False``).
        sizes: the lengths of the sentences, for each style.
        dictionary: of the words.
        longest: longer sentences (end symbol included) are left out, and counted in ``left_out``;
            all stay, if None.
        content_words: marks the content words of a sentence.
        styled: whether the styles are known.
    """

    def __init__(
        self,
        texts: Sequence[Any],
        sizes: Sequence[Sequence[int]],
        dictionary,
        longest: Optional[int] = None,
        content_words: Optional[ContentWords] = None,
        styled: bool = True,
    ):
        self.texts, self.pad, self.eos = texts, dictionary.pad(), dictionary.eos()
        self.content_words, self.styled = content_words, styled
        styles = [np.full(len(text), style) for style, text in enumerate(texts)]
        places = [np.arange(len(text)) for text in texts]
        lengths = [np.asarray(size, dtype=np.int64)[: len(t)] for t, size in zip(texts, sizes)]
        every = np.concatenate(lengths)
        kept = np.ones(len(every), bool) if longest is None else every <= longest
        self.left_out = int((~kept).sum())
        self.styles, self.places = np.concatenate(styles)[kept], np.concatenate(places)[kept]
        self.sizes = every[kept]

    def __getitem__(self, index: int) -> Dict[str, Any]:
        style = int(self.styles[index])
        tokens = self.texts[style][int(self.places[index])].long()
        item = {"id": index, "tokens": tokens, "style": style}
        if self.content_words is not None:
            item["content"] = self.content_words(tokens)
        return item

    def __len__(self) -> int:
        return len(self.sizes)

    def collater(self, samples: List[Dict[str, Any]]) -> Dict[str, Any]:
        """A batch, padded on the right: ``net_input`` (with ``styles``, where they are known),
        ``target`` and, where there are content words, ``content_mask`` (B, S) bool."""
        if not samples:
            return {}
        tokens = [sample["tokens"] for sample in samples]
        target = data_utils.collate_tokens(tokens, self.pad)
        previous = data_utils.collate_tokens(tokens, self.pad, self.eos, move_eos_to_beginning=True)
        lengths = torch.tensor([len(each) for each in tokens])
        net_input = {"src_tokens": target, "src_lengths": lengths, "prev_output_tokens": previous}
        if self.styled:
            net_input["styles"] = torch.tensor([sample["style"] for sample in samples])
        batch = {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": net_input,
            "target": target,
        }
        if self.content_words is not None:
            masks = [sample["content"].long() for sample in samples]
            batch["content_mask"] = data_utils.collate_tokens(masks, 0).bool()
        return batch

    def num_tokens(self, index: int) -> int:
        """Of a sentence, its end symbol among them."""
        return int(self.sizes[index])

    def num_tokens_vec(self, indices) -> np.ndarray:
        """The same of several sentences."""
        return self.sizes[indices]

    def size(self, index: int):
        """Of a sentence, as source and as target."""
        return int(self.sizes[index]), int(self.sizes[index])

    def ordered_indices(self) -> np.ndarray:
        """Sentences of like length beside each other, in random order among them."""
        indices = np.random.permutation(len(self))
        return indices[np.argsort(self.sizes[indices], kind="mergesort")]
