"""``--arch ctc_transformer``: vanilla NAT with CTC (Libovický and Helcl, EMNLP 2018)."""

import math

import torch
from fairseq.models import register_model, register_model_architecture
from fairseq.models.nat import nonautoregressive_transformer
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from torch import Tensor, nn
from torch.nn import functional as F

from ..decoding.latent import ctc_ends
from ..losses import token_log_probs
from ..losses.latent import ctc_best_alignment
from ..losses.token_log_probs import best_tokens
from .latent_alignment import LatentAlignmentDecoder, LatentAlignmentModel, Written


class CTCTransformerDecoder(LatentAlignmentDecoder):
    """Slots say words or a blank, which is the symbol behind the dictionary's last.

    The blank has a bias, which begins at log V - 2: beside words that are all alike (no training
    yet) it has a probability of 0.12, beside those of a vanilla NAT, which knows no blank, less.
    Without it the best alignments have nothing but words at first.
    """

    def __init__(self, args, dictionary, embed_tokens, no_encoder_attn=False):
        super().__init__(args, dictionary, embed_tokens, no_encoder_attn)
        width = self.output_projection.weight.size(1)
        self.embed_blank = nn.Embedding(1, width)
        nn.init.normal_(self.embed_blank.weight, mean=0, std=width**-0.5)
        self.blank_bias = nn.Parameter(torch.tensor([math.log(len(dictionary)) - 2]))
        self.blank = len(dictionary)

    def output_layer(self, features):
        """(B, L, C) features to (B, L, V + 1) logits."""
        weight = torch.cat([self.output_projection.weight, self.embed_blank.weight])
        return F.linear(features, weight, F.pad(self.blank_bias, (self.blank, 0)))

    def upgrade_state_dict_named(self, state_dict, name):
        """Checkpoints from before there was a bias have one of zero."""
        super().upgrade_state_dict_named(state_dict, name)
        if f"{name}.embed_blank.weight" in state_dict:
            state_dict.setdefault(f"{name}.blank_bias", torch.zeros(1))
        return state_dict

    def written(self, slots, encoder_out):
        """The slots are filled with copies of the source's embeddings."""
        features, _ = self.extract_features(slots, encoder_out=encoder_out, embedding_copy=True)
        return Written(self.output_layer(features), slots.ne(self.padding_idx))


@register_model("ctc_transformer")
class CTCTransformerModel(LatentAlignmentModel):
    """The source's embeddings, each of them several times, become slots with words or blanks.

    Targets are what comes after the start symbol, the end included.
    """

    alignment = "ctc"

    @classmethod
    def build_decoder(cls, args, tgt_dict, embed_tokens):
        """The decoder, initialised as that of vanilla NAT."""
        decoder = CTCTransformerDecoder(args, tgt_dict, embed_tokens)
        if getattr(args, "apply_bert_init", False):
            decoder.apply(init_bert_params)
        return decoder

    def learned(self, tgt_tokens: Tensor) -> Tensor:
        """All but the start symbol, which would need a slot and say nothing."""
        return tgt_tokens.ne(self.pad) & tgt_tokens.ne(self.bos)

    def alignment_output(self, found: Written):
        """The blank."""
        return {"blank": self.decoder.blank}

    def best_alignment(self, found: Written, tgt_tokens: Tensor):
        """As for every model; the blanks are left out."""
        targets = tgt_tokens[:, 1:]
        columns = F.pad(targets, (0, 1), value=self.decoder.blank)
        log_probs = token_log_probs(found.logits, columns, found.real)
        places = ctc_best_alignment(
            log_probs[:, :, :-1],
            log_probs[:, :, -1],
            targets,
            output_mask=found.real,
            target_mask=targets.ne(self.pad),
        )
        return targets.gather(1, places.clamp(min=0)), places.ge(0)

    def read(self, found: Written, search: str, length_penalty: float):
        """The most likely symbol of each slot; repeats are merged, then blanks dropped."""
        scores, symbols = best_tokens(found.logits)
        return symbols, scores, ctc_ends(symbols, self.decoder.blank, found.real)


@register_model_architecture("ctc_transformer", "ctc_transformer")
def base_architecture(args):
    """Base size, two slots a source token."""
    args.upsample_scale = getattr(args, "upsample_scale", 2)
    args.glancing_ratio = getattr(args, "glancing_ratio", "0")
    nonautoregressive_transformer.base_architecture(args)
