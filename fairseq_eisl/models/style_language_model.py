"""A language model of one style: it tells a fluent sentence from one that is none."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .text_cnn import embedded


class StyleLanguageModel(nn.Module):
    """A GRU whose first state is made of the style and of the mean of the content words.

    Args:
        embedding: (V, E) table of words.
        hidden_size: numbers of the state.
        start: id of the symbol that it reads first.
        dropout: on the embedded words and before the output layer.
    """

    def __init__(self, embedding: nn.Embedding, hidden_size: int, start: int, dropout: float):
        super().__init__()
        self.embed_tokens = embedding
        self.start = start
        self.first = nn.Linear(2 + embedding.embedding_dim, hidden_size)
        self.gru = nn.GRU(embedding.embedding_dim, hidden_size, batch_first=True)
        self.output = nn.Linear(hidden_size, embedding.num_embeddings)
        self.dropout = nn.Dropout(dropout)

    def forward(self, text: Tensor, styles: Tensor, tokens: Tensor, content_mask: Tensor) -> Tensor:
        """(B, T, V) logits of each word after those before it.

        Args:
            text: (B, T) ids, or (B, T, V) weights of soft words.
            styles: (B,) int64, the style that the text should have.
            tokens: (B, S) ids of the sentence that has the content.
            content_mask: (B, S) bool, its content words; there may be none.
        """
        content = self.embed_tokens(tokens).masked_fill(~content_mask.unsqueeze(2), 0.0).sum(1)
        content = content / content_mask.sum(1, keepdim=True).clamp(min=1)
        style = F.one_hot(styles, 2).to(content.dtype)
        first = self.first(torch.cat([style, content], 1)).tanh()
        start = self.embed_tokens(styles.new_full((len(styles), 1), self.start))
        words = torch.cat([start, embedded(self.embed_tokens, text)[:, :-1]], 1)
        states, _ = self.gru(self.dropout(words), first.unsqueeze(0))
        return self.output(self.dropout(states))
