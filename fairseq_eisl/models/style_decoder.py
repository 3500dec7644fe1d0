"""The decoder of the style transfer model: a GRU with attention, teacher-forced, step by step for
generation, or in soft words for training on its own output."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from ..losses import random_numbers
from ..losses.soft_tokens import FEEDBACKS, soft_tokens
from .style_encoder import Encoded

_STATE = "hidden"


class SoftText(NamedTuple):
    """What a decoder says on its own, with a gradient."""

    logits: Tensor
    """(B, T, V) scores of the words, before noise and temperature."""
    weights: Tensor
    """(B, T, V) the soft words: the Gumbel-softmax of the logits."""
    tokens: Tensor
    """(B, T) the words of the largest weight."""
    mask: Tensor
    """(B, T) bool, the positions of a sentence: up to its first end symbol and its limit."""


class StyleDecoder(FairseqIncrementalDecoder):
    """GRU [word; context] with additive attention on the encoder's states (Bahdanau et al., 2015).

    Args:
        dictionary: of the words.
        embedding: (V, E) table of words.
        hidden_size: H, numbers of the state.
        dropout: on the embedded words and before the output layer.
    """

    def __init__(self, dictionary, embedding: nn.Embedding, hidden_size: int, dropout: float):
        super().__init__(dictionary)
        self.embed_tokens = embedding
        self.eos = dictionary.eos()
        self.bridge = nn.Linear(hidden_size, hidden_size)
        self.query = nn.Linear(hidden_size, hidden_size, bias=False)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.energy = nn.Linear(hidden_size, 1, bias=False)
        self.cell = nn.GRUCell(embedding.embedding_dim + hidden_size, hidden_size)
        self.output = nn.Linear(hidden_size, len(dictionary))
        self.dropout = nn.Dropout(dropout)

    # -- one step ------------------------------------------------------------------------------

    def _attend(self, state: Tensor, encoded: Encoded, keys: Tensor) -> Tuple[Tensor, Tensor]:
        """(B, H) context and (B, S) weights of the source's words."""
        energy = self.energy((self.query(state).unsqueeze(1) + keys).tanh()).squeeze(2)
        energy = energy.masked_fill(~encoded["mask"], torch.finfo(energy.dtype).min)
        weights = energy.softmax(1)
        return torch.bmm(weights.unsqueeze(1), encoded["states"]).squeeze(1), weights

    def _step(
        self, word: Tensor, state: Tensor, encoded: Encoded, keys: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """(B, H) next state after the (B, E) embedded word, and the attention that it had."""
        context, weights = self._attend(state, encoded, keys)
        return self.cell(torch.cat([word, context], 1), state), weights

    # -- what fairseq calls --------------------------------------------------------------------

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Optional[Encoded] = None,
        incremental_state: Optional[Dict[str, Dict[str, Optional[Tensor]]]] = None,
        features_only: bool = False,
        **unused: Any,
    ) -> Tuple[Tensor, Dict[str, List[Tensor]]]:
        """(B, T, V) logits after each of the (B, T) words (the last one alone with an
        ``incremental_state``), and the attention (B, T, S)."""
        assert encoder_out is not None
        states, attention = self._features(prev_output_tokens, encoder_out, incremental_state)
        out = states if features_only else self.output_layer(states)
        return out, {"attn": [attention]}

    def _features(self, tokens, encoded: Encoded, incremental_state) -> Tuple[Tensor, Tensor]:
        keys = self.key(encoded["states"])
        state = self.bridge(encoded["state"])
        if incremental_state is not None:
            tokens = tokens[:, -1:]
            saved = self.get_incremental_state(incremental_state, _STATE)
            if saved is not None:
                state = saved["state"]
        words = self.dropout(self.embed_tokens(tokens))
        states, attention = [], []
        for word in words.unbind(1):
            state, weights = self._step(word, state, encoded, keys)
            states.append(state)
            attention.append(weights)
        if incremental_state is not None:
            self.set_incremental_state(incremental_state, _STATE, {"state": state})
        return torch.stack(states, 1), torch.stack(attention, 1)

    def output_layer(self, features: Tensor, **unused: Any) -> Tensor:
        """(..., V) logits of (..., H) states."""
        return self.output(self.dropout(features))

    def reorder_incremental_state_scripting(self, incremental_state, new_order):
        """Beams in another order; this decoder is the one module that keeps a state."""
        saved = self.get_incremental_state(incremental_state, _STATE)
        if saved is not None:
            kept = {name: each.index_select(0, new_order) for name, each in saved.items()}
            self.set_incremental_state(incremental_state, _STATE, kept)

    def max_positions(self) -> Any:
        """A GRU says sentences of any length."""
        return 100_000

    # -- its own output, with a gradient -------------------------------------------------------

    def soft_decode(
        self,
        encoded: Encoded,
        limits: Tensor,
        temperature: float,
        seeds: Optional[Tensor],
        feedback: str = "straight-through",
    ) -> SoftText:
        """Say a sentence in soft words, T = the largest limit of them.

        Args:
            encoded: of the encoder, B sentences with their wanted styles.
            limits: (B,) int64, the most words of each sentence, its end symbol among them.
            temperature: of the Gumbel-softmax, above 0.
            seeds: (B,) int64 of the Gumbel noise; none, if None: then the words are the
                likeliest ones.
            feedback: what is read at the next step: ``straight-through`` (the word of the largest
                weight, as in generation, with the gradient of the soft word), ``soft`` (the soft
                word itself) or ``argmax`` (the word of the largest weight, without gradient).

        Raises:
            ValueError: another feedback, or a temperature that is not above 0.
        """
        if feedback not in FEEDBACKS:
            raise ValueError(
                f"feedback={feedback!r} is unknown; choose from {', '.join(FEEDBACKS)}"
            )
        keys, state = self.key(encoded["states"]), self.bridge(encoded["state"])
        table = self.embed_tokens.weight
        batch = len(limits)
        word = self.embed_tokens(limits.new_full((batch,), self.eos))
        real = torch.ones(batch, dtype=torch.bool, device=limits.device)
        found: List[Tuple[Tensor, ...]] = []
        for step in range(int(limits.max())):
            state, _ = self._step(self.dropout(word), state, encoded, keys)
            logits = self.output_layer(state)
            noise = None
            if seeds is not None:
                noise = random_numbers.gumbel(random_numbers.fold(seeds, step), logits.size(1))
            weights = soft_tokens(logits, temperature, noise)
            token = weights.argmax(1)
            real = real & (limits > step)
            found.append((logits, weights, token, real))
            real = real & token.ne(self.eos)
            word = self.embed_tokens(token)
            if feedback != "argmax":
                soft = weights.to(table.dtype) @ table
                word = soft if feedback == "soft" else word + soft - soft.detach()
        return SoftText(*(torch.stack(each, 1) for each in zip(*found)))
