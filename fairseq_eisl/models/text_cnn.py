"""A convolutional classifier of sentences (Kim, 2014, arXiv 1408.5882), of words or soft words."""

from typing import List, Sequence

import torch
from torch import Tensor, nn


def embedded(table: nn.Embedding, text: Tensor) -> Tensor:
    """(B, T, E) of a text: (B, T) int64 ids, or (B, T, V) weights of soft words."""
    return table(text) if text.dim() == 2 else text.to(table.weight.dtype) @ table.weight


class TextCNN(nn.Module):
    """Windows of words, their largest answers, and a linear layer to two styles.

    A window may hang over the ends of its sentence; one that touches no word of it never counts,
    so that padding changes nothing.

    Args:
        embedding: (V, E) table of words.
        channels: filters of each width.
        widths: words of a window.
        dropout: before the linear layer.
    """

    def __init__(
        self, embedding: nn.Embedding, channels: int, widths: Sequence[int], dropout: float
    ):
        super().__init__()
        self.embed_tokens, self.widths = embedding, tuple(widths)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(embedding.embedding_dim, channels, width, padding=width - 1)
            for width in widths
        )
        self.output = nn.Linear(channels * len(widths), 2)
        self.dropout = nn.Dropout(dropout)

    def forward(self, text: Tensor, mask: Tensor) -> Tensor:
        """(B, 2) logits of the styles.

        Args:
            text: (B, T) ids, or (B, T, V) weights of soft words.
            mask: (B, T) bool, the real positions, which come first; one at least.
        """
        words = embedded(self.embed_tokens, text).masked_fill(~mask.unsqueeze(2), 0.0)
        lengths = mask.sum(1, keepdim=True)
        found: List[Tensor] = []
        for convolution, width in zip(self.convolutions, self.widths):
            answers = convolution(words.transpose(1, 2)).relu()
            places = torch.arange(answers.size(2), device=mask.device)
            beyond = places >= lengths + width - 1
            # relu: what is left out counts as 0, the least that there is.
            found.append(answers.masked_fill(beyond.unsqueeze(1), 0.0).amax(2))
        return self.output(self.dropout(torch.cat(found, 1)))
