"""``--arch dag_transformer``: a directed acyclic decoder (Huang et al., ICML 2022)."""

import math

import torch
from fairseq.models import register_model, register_model_architecture
from fairseq.models.nat import nonautoregressive_transformer
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from torch import Tensor, nn

from ..decoding.latent import path_of
from ..losses import token_log_probs
from ..losses.latent import dag_best_alignment
from ..losses.token_log_probs import best_tokens
from .latent_alignment import LatentAlignmentDecoder, LatentAlignmentModel, Written


class Transitions(nn.Module):
    """Where a path goes on from each vertex: attention over later vertices, of several heads that
    are mixed by gates.

    Args:
        width: of the features, and of their positions.
        heads: how many; ``width`` is a multiple of it.
        jumps: up to which number of vertices that it goes on each head has a score of its own, one
            for all that is farther; 0 for none.
        usual: the number of vertices that these scores begin by preferring.
    """

    def __init__(self, width: int, heads: int, jumps: int = 0, usual: int = 1):
        super().__init__()
        self.heads = heads
        scores = -(torch.arange(1.0, jumps + 1) - usual).abs() / usual
        self.jump = nn.Parameter(scores.repeat(heads, 1)) if jumps else None
        self.query, self.key = nn.Linear(2 * width, width), nn.Linear(2 * width, width)
        self.gate = nn.Linear(2 * width, heads)

    def forward(self, features: Tensor, positions: Tensor, real: Tensor) -> Tensor:
        """(B, L, C) features and positions, (B, L) bool real vertices, to (B, L, L) float32:
        log-probabilities in nats, minus infinity where there is no transition."""
        both = torch.cat([features, positions.expand_as(features)], 2)
        batch, slots, width = features.shape
        shape = batch, slots, self.heads, width // self.heads
        # Before the product, which half precision could not hold.
        query = (self.query(both).view(shape) / math.sqrt(shape[3])).transpose(1, 2)
        key = self.key(both).view(shape).transpose(1, 2)
        scores = torch.matmul(query, key.transpose(2, 3)).float()  # (B, H, L, L)
        allowed = real.unsqueeze(2) & real.unsqueeze(1)
        allowed = allowed & torch.ones_like(allowed).triu(1)
        if self.jump is not None:
            place = torch.arange(slots, device=scores.device)
            further = (place - place.unsqueeze(1)).clamp(1, self.jump.size(1))
            scores = scores + self.jump.float()[:, further - 1]
        # The last vertex has no way on: finite numbers there, so that no gradient is NaN.
        scores = scores.masked_fill(~allowed.unsqueeze(1), -1e9).log_softmax(3)
        gates = self.gate(both).float().log_softmax(2).transpose(1, 2).unsqueeze(3)
        return (scores + gates).logsumexp(1).masked_fill(~allowed, -torch.inf)


class DAGTransformerDecoder(LatentAlignmentDecoder):
    """Vertices say words, and where a path goes on from them."""

    def __init__(self, args, dictionary, embed_tokens, no_encoder_attn=False):
        super().__init__(args, dictionary, embed_tokens, no_encoder_attn)
        if self.embed_positions is None:
            raise ValueError(
                "--no-token-positional-embeddings: transitions of --arch dag_transformer need them"
            )
        jumps = getattr(args, "jump_scores", 0)  # not there in older checkpoints
        self.transitions = Transitions(
            self.output_projection.weight.size(1),
            args.decoder_attention_heads,
            jumps,
            args.upsample_scale,
        )

    def written(self, slots, encoder_out):
        """The vertices are unknown words, or copies of the source (``--src-embedding-copy``)."""
        features, _ = self.extract_features(
            slots, encoder_out=encoder_out, embedding_copy=self.src_embedding_copy
        )
        real = slots.ne(self.padding_idx)
        links = self.transitions(features, self.embed_positions(slots), real)
        return Written(self.output_layer(features), real, links)


@register_model("dag_transformer")
class DAGTransformerModel(LatentAlignmentModel):
    """Vertices say words, and a path through some of them is the output; it begins at the first
    vertex with the start symbol and ends at the last one with the end."""

    alignment = "dag"

    @staticmethod
    def add_args(parser):
        """And what the vertices are before they are written."""
        LatentAlignmentModel.add_args(parser)
        parser.add_argument(
            "--src-embedding-copy",
            action="store_true",
            help="copy encoder word embeddings as the initial input of the decoder",
        )
        parser.add_argument(
            "--jump-scores",
            type=int,
            help="up to which number of vertices a transition has a learned score of how far it "
            "goes, which begins by preferring --upsample-scale; 0, as published, for none",
        )

    @classmethod
    def check_flags(cls, args):
        """And how far transitions are scored."""
        super().check_flags(args)
        if getattr(args, "jump_scores", 0) < 0:
            raise ValueError(f"--jump-scores must be 0 or more, not {args.jump_scores}")

    @classmethod
    def build_decoder(cls, args, tgt_dict, embed_tokens):
        """The decoder, initialised as that of vanilla NAT."""
        decoder = DAGTransformerDecoder(args, tgt_dict, embed_tokens)
        if getattr(args, "apply_bert_init", False):
            decoder.apply(init_bert_params)
        return decoder

    def alignment_output(self, found: Written):
        """The transitions."""
        return {"links": found.links}

    def best_alignment(self, found: Written, tgt_tokens: Tensor):
        """As for every model: the tokens on the best path."""
        assert found.links is not None
        vertices = dag_best_alignment(
            token_log_probs(found.logits, tgt_tokens, found.real),
            found.links,
            output_mask=found.real,
            target_mask=tgt_tokens.ne(self.pad),
        )
        slots = found.real.size(1)
        # One column more, for tokens without a vertex.
        expected = torch.full_like(tgt_tokens[:, :1], self.pad).repeat(1, slots + 1)
        expected.scatter_(1, torch.where(vertices.ge(0), vertices, slots), tgt_tokens)
        expected = expected[:, :slots]
        return expected, expected.ne(self.pad)

    def read(self, found: Written, search: str, length_penalty: float):
        """The most likely word of each vertex on the path that the search finds."""
        assert found.links is not None
        scores, tokens = best_tokens(found.logits)
        path = path_of(found.links, scores, found.real, search, length_penalty)
        return tokens, scores, path


@register_model_architecture("dag_transformer", "dag_transformer")
def base_architecture(args):
    """Base size, four vertices a source token."""
    args.upsample_scale = getattr(args, "upsample_scale", 4)
    args.glancing_ratio = getattr(args, "glancing_ratio", "0")
    args.jump_scores = getattr(args, "jump_scores", 0)
    nonautoregressive_transformer.base_architecture(args)
