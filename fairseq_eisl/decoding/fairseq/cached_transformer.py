"""A Transformer decoder of fairseq, one token after another, without its overhead.

``decoder(..., incremental_state=...)`` copies its cache at every token, multiplies by queries,
keys and values apart, averages attention nobody asks for, and makes the host wait for a GPU to
see whether a token is padding. Here the cache is laid out once and nothing waits. Only decoders
whose every part is fairseq's own and untouched, with no option that this file does not know, are
taken over; everything else goes through the decoder itself.
"""

from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules import (
    LearnedPositionalEmbedding,
    MultiheadAttention,
    SinusoidalPositionalEmbedding,
    layer_norm,
)
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.layer_drop import LayerDropModuleList
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn
from torch.nn import functional as F

from .plain_modules import has_hooks, is_plain, is_untouched

# fairseq's norms; the fused one is there with apex alone.
_NORMS = (nn.LayerNorm, getattr(layer_norm, "FusedLayerNorm", nn.LayerNorm))
_POSITIONS = (SinusoidalPositionalEmbedding, LearnedPositionalEmbedding)


def _plain_linear(*linears: Any) -> bool:
    """Plain ones, and all of them with a bias or none: three products are one here."""
    return (
        all(is_plain(linear, nn.Linear) for linear in linears)
        and len({linear.bias is None for linear in linears}) == 1
    )


def _plain_norm(norm: Any) -> bool:
    return is_plain(norm, *_NORMS)


def _plain_dropout(dropout: Any) -> bool:
    """Off in evaluation mode (``--retain-dropout`` keeps it on)."""
    return is_plain(dropout, FairseqDropout) and not dropout.apply_during_inference


def _known_attention(attention: Any, kind: str) -> bool:
    return (
        is_plain(attention, MultiheadAttention)
        and _plain_linear(attention.q_proj, attention.k_proj, attention.v_proj)
        and _plain_linear(attention.out_proj)
        and _plain_dropout(attention.dropout_module)
        and getattr(attention, kind)
        and attention.scaling == attention.head_dim**-0.5
        and not (
            attention.bias_k is not None
            or attention.add_zero_attn
            or attention.use_xformers
            or attention.beam_size != 1
            or attention.skip_embed_dim_check
        )
    )


def _known_layer(layer: Any) -> bool:
    return (
        is_untouched(layer, TransformerDecoderLayerBase, "forward", "residual_connection")
        and all(
            getattr(layer, name) is None
            for name in ("attn_ln", "c_attn", "ffn_layernorm", "w_resid")
        )
        and layer.encoder_attn is not None
        and _known_attention(layer.self_attn, "self_attention")
        and _known_attention(layer.encoder_attn, "encoder_decoder_attention")
        and layer.self_attn.num_heads == layer.encoder_attn.num_heads
        and not layer.cross_self_attention
        and not isinstance(layer.activation_fn, nn.Module)
        and _plain_linear(layer.fc1)
        and _plain_linear(layer.fc2)
        and _plain_norm(layer.self_attn_layer_norm)
        and _plain_norm(layer.encoder_attn_layer_norm)
        and _plain_norm(layer.final_layer_norm)
        and _plain_dropout(layer.dropout_module)
        and _plain_dropout(layer.activation_dropout_module)
    )


def is_known(decoder: nn.Module) -> bool:
    """Whether :class:`CachedTransformer` computes what this decoder computes.

    Everything that it calls with other shapes than the decoder would, or not at all, must be
    fairseq's or torch's own and untouched.
    """
    methods = ("forward", "extract_features", "extract_features_scriptable", "output_layer")
    if not is_untouched(decoder, TransformerDecoderBase, *methods):
        return False
    parts: Any = decoder
    return (
        not parts.cross_self_attention
        and parts.quant_noise is None
        and parts.adaptive_softmax is None
        and is_plain(parts.embed_tokens, nn.Embedding)
        and (parts.embed_positions is None or is_plain(parts.embed_positions, *_POSITIONS))
        and (parts.layernorm_embedding is None or _plain_norm(parts.layernorm_embedding))
        and (parts.layer_norm is None or _plain_norm(parts.layer_norm))
        and (parts.project_in_dim is None or _plain_linear(parts.project_in_dim))
        and (parts.project_out_dim is None or _plain_linear(parts.project_out_dim))
        and _plain_linear(parts.output_projection)
        and _plain_dropout(parts.dropout_module)
        and type(parts.layers) in (nn.ModuleList, LayerDropModuleList)
        and not has_hooks(parts.layers)
        and all(_known_layer(layer) for layer in parts.layers)
    )


class _Layer:
    """A layer, its keys and values of the source, and room for those of the candidate."""

    def __init__(self, layer, source: Tensor, steps: int):
        self.layer, self.steps = layer, steps
        own = layer.self_attn
        self.heads = own.num_heads
        projections = own.q_proj, own.k_proj, own.v_proj
        self.weight = torch.cat([p.weight for p in projections])
        biases = [p.bias for p in projections]
        self.bias = None if biases[0] is None else torch.cat(biases)
        cross = layer.encoder_attn
        self.source = [
            # S x B x C -> B x heads x S x C / heads
            self._by_head(projection(source)).permute(1, 2, 0, 3).contiguous()
            for projection in (cross.k_proj, cross.v_proj)
        ]
        self.past: Optional[Tuple[Tensor, Tensor]] = None

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1))

    def _self_attention(self, x: Tensor, step: int) -> Tensor:
        query, key, value = F.linear(x, self.weight, self.bias).chunk(3, dim=1)
        key, value = self._by_head(key), self._by_head(value)
        if self.past is None:
            batch, heads, width = key.shape
            room = (batch, heads, self.steps, width)
            self.past = key.new_empty(room), value.new_empty(room)
        for past, new in zip(self.past, (key, value)):
            past[:, :, step] = new
        keys, values = (past[:, :, : step + 1] for past in self.past)
        return self.layer.self_attn.out_proj(self._attend(query, keys, values))

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, mask=None) -> Tensor:
        query = self._by_head(query).unsqueeze(2)
        return F.scaled_dot_product_attention(query, keys, values, mask).flatten(1)

    def _source_attention(self, x: Tensor, mask: Optional[Tensor]) -> Tensor:
        cross, (keys, values) = self.layer.encoder_attn, self.source
        return cross.out_proj(self._attend(cross.q_proj(x), keys, values, mask))

    def __call__(self, x: Tensor, step: int, mask: Optional[Tensor]) -> Tensor:
        layer = self.layer
        for norm, part in (
            (layer.self_attn_layer_norm, lambda x: self._self_attention(x, step)),
            (layer.encoder_attn_layer_norm, lambda x: self._source_attention(x, mask)),
            (layer.final_layer_norm, lambda x: layer.fc2(layer.activation_fn(layer.fc1(x)))),
        ):
            if layer.normalize_before:
                x = x + part(norm(x))
            else:
                x = norm(x + part(x))
        return x


class CachedTransformer:
    """Greedy or sampled decoding of one token a step with a known decoder, in evaluation mode.

    Args:
        decoder: one that :func:`is_known`.
        encoder_out: of its encoder.
        tokens: (B, T) int64, of which the first ``step + 1`` are read at a step. None of them
            is padding, as long as what follows is of any use.
    """

    def __init__(self, decoder, encoder_out: Dict[str, List[Tensor]], tokens: Tensor):
        self.decoder, self.tokens = decoder, tokens
        steps = tokens.size(1)
        source = encoder_out["encoder_out"][0]
        self.mask: Optional[Tensor] = None
        padding = encoder_out["encoder_padding_mask"]
        if padding and (padding[0].is_cuda or padding[0].any()):  # asking costs a GPU more
            self.mask = ~padding[0].bool()[:, None, None]
        self.positions: Optional[Tensor] = None
        if decoder.embed_positions is not None:
            real = tokens.new_full((1, steps), decoder.padding_idx + 1)
            self.positions = decoder.embed_positions(real)[0]
        self.layers = [_Layer(layer, source, steps) for layer in decoder.layers]

    def logits(self, step: int) -> Tensor:
        """(B, V) scores of the token after ``tokens[:, step]``."""
        decoder = self.decoder
        x = decoder.embed_scale * decoder.embed_tokens(self.tokens[:, step])
        if decoder.project_in_dim is not None:
            x = decoder.project_in_dim(x)
        if self.positions is not None:
            x = x + self.positions[step]
        if decoder.layernorm_embedding is not None:
            x = decoder.layernorm_embedding(x)
        for layer in self.layers:
            x = layer(x, step, self.mask)
        if decoder.layer_norm is not None:
            x = decoder.layer_norm(x)
        if decoder.project_out_dim is not None:
            x = decoder.project_out_dim(x)
        return decoder.output_layer(x)
