"""The encoder of the style transfer model: its state is a part for style and one for content."""

from typing import Any, Dict, Optional

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Encoded = Dict[str, Tensor]
"""states (B, S, H) of the GRU, mask (B, S) bool of the real ones, content (B, H - K), state (B, H):
the embedding of the wanted style, then the content."""


class StyleEncoder(FairseqEncoder):
    """A GRU over the sentence; the last K numbers of its final state are the content.

    What its first numbers say of the style is thrown away: the decoder begins with an embedding of
    the wanted style in their place (Tian, Hu and Yu, 2018: two linear layers on the label, which
    are the same functions of two labels as an embedding).

    Args:
        dictionary: of the words.
        embedding: (V, E) table of words.
        hidden_size: H, numbers of the state.
        style_size: K of them are for the style, 0 < K < H.
        dropout: on the embedded words.
    """

    def __init__(
        self, dictionary, embedding: nn.Embedding, hidden_size: int, style_size: int, dropout: float
    ):
        super().__init__(dictionary)
        self.embed_tokens = embedding
        self.pad = dictionary.pad()
        self.style_size = style_size
        self.gru = nn.GRU(embedding.embedding_dim, hidden_size, batch_first=True)
        self.embed_style = nn.Embedding(2, style_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor], styles: Tensor) -> Encoded:
        """Encode (B, S) sentences, padded on the right, for a decoder of the (B,) ``styles``."""
        return self.with_style(self.encode(src_tokens), styles)

    def encode(self, src_tokens: Tensor) -> Encoded:
        """All but the state, which depends on the wanted style."""
        mask = src_tokens.ne(self.pad)
        words = self.dropout(self.embed_tokens(src_tokens))
        # Packed: padding is never read, so the final state is that of the sentence alone.
        packed = pack_padded_sequence(
            words, mask.sum(1).clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, final = self.gru(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=mask.size(1))
        return {"states": states, "mask": mask, "content": final[0][:, self.style_size :]}

    def with_style(self, encoded: Encoded, styles: Tensor) -> Encoded:
        """The same sentences, to be said in the (B,) int64 ``styles``."""
        state = torch.cat([self.embed_style(styles), encoded["content"]], 1)
        return {**encoded, "state": state}

    def reorder_encoder_out(self, encoder_out: Encoded, new_order: Tensor) -> Encoded:
        """Sentences in another order, or several times, for beam search."""
        return {name: each.index_select(0, new_order) for name, each in encoder_out.items()}

    def max_positions(self) -> Any:
        """A GRU reads sentences of any length."""
        return 100_000
