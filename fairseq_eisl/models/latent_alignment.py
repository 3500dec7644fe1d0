"""What models with latent alignments share: slots by the source's length, glancing, reading off.

Their decoder has several slots for each source token, so that no length is predicted, and its
targets are matched to slots by the loss. Everything else is fairseq's vanilla NAT, by the names of
its parameters, too, so that training can begin with one (``--init-weights``).
"""

from typing import Any, Dict, NamedTuple, Optional

import torch
from fairseq.iterative_refinement_generator import DecoderOut
from fairseq.models.nat import (
    FairseqNATModel,
    NATransformerDecoder,
    NATransformerModel,
)
from torch import Tensor
from torch.nn import functional as F

from ..decoding.fairseq.blanks import unwritten
from ..decoding.latent import packed
from .glancing import glance, parsed_ratio


class Written(NamedTuple):
    """What a decoder says in one pass."""

    logits: Tensor
    """(B, L, V), or V + 1 with a blank of its own."""
    real: Tensor
    """(B, L) bool, True for real slots."""
    links: Optional[Tensor] = None
    """(B, L, L) log-probabilities of transitions, float32, of those models that have some."""


class LatentAlignmentDecoder(NATransformerDecoder):
    """The decoder of vanilla NAT, which predicts no length, and may be shown some words."""

    def __init__(self, args, dictionary, embed_tokens, no_encoder_attn=False):
        super().__init__(args, dictionary, embed_tokens, no_encoder_attn)
        del self.embed_length

    def forward_embedding(self, prev_output_tokens, states=None):
        """As stock; with copies of the source in the slots (``states``), words that are shown
        stand in place of them."""
        if states is not None:
            given = self.embed_scale * self.embed_tokens(prev_output_tokens)
            if self.project_in_dim is not None:
                given = self.project_in_dim(given)
            shown = prev_output_tokens.ne(self.unk) & prev_output_tokens.ne(self.padding_idx)
            states = torch.where(shown.unsqueeze(2), given, states)
        return super().forward_embedding(prev_output_tokens, states)

    def written(self, slots: Tensor, encoder_out: Dict[str, Any]) -> Written:
        """What the decoder says in (B, L) slots."""
        raise NotImplementedError


class LatentAlignmentModel(NATransformerModel):
    """Vanilla NAT whose decoder has ``--upsample-scale`` slots for each source token."""

    alignment = ""
    """The kind of alignment: ctc or dag."""

    @property
    def allow_length_beam(self):
        """No length is predicted."""
        return False

    @property
    def allow_ensemble(self):
        """Slots of several models do not say the same in the same places."""
        return False

    @staticmethod
    def add_args(parser):
        """The flags of every model with latent alignments."""
        FairseqNATModel.add_args(parser)
        parser.add_argument(
            "--upsample-scale",
            type=int,
            help="slots of the decoder for each token of the source (start and end included)",
        )
        parser.add_argument(
            "--glancing-ratio",
            help="share of the mistakes of a first pass of which the target's words are shown to "
            "the decoder in training: a number, or FROM:TO@UPDATES such as 0.5:0.1@200000",
        )

    @classmethod
    def check_flags(cls, args):
        """Raise ValueError, which names the flag; recipes ask it before anything trains."""
        if not args.upsample_scale >= 1:
            raise ValueError(f"--upsample-scale must be 1 or more, not {args.upsample_scale}")
        parsed_ratio(args.glancing_ratio)

    @classmethod
    def build_model(cls, args, task):
        """As stock, of flags that can be meant."""
        cls.check_flags(args)
        return super().build_model(args, task)

    def __init__(self, args, encoder, decoder):
        super().__init__(args, encoder, decoder)
        self.upsample_scale = args.upsample_scale
        self.glancing_ratio = parsed_ratio(args.glancing_ratio)
        self.num_updates = 0

    def set_num_updates(self, num_updates):
        """Told by the trainer before each update."""
        super().set_num_updates(num_updates)
        self.num_updates = num_updates

    def slots(self, src_tokens: Tensor) -> Tensor:
        """(B, L) int64, the decoder's input: ``bos unk .. unk eos``."""
        lengths = src_tokens.ne(self.pad).sum(1) * self.upsample_scale
        return unwritten(lengths.clamp(min=2, max=self.decoder.max_positions()), self)

    def forward(self, src_tokens, src_lengths, prev_output_tokens, tgt_tokens, **kwargs):
        """The words' logits at the slots and what the loss has to know of them; the decoder's
        input that the task has made for other models is not looked at."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths, **kwargs)
        slots = self.slots(src_tokens)
        ratio = self.glancing_ratio.at(self.num_updates)
        if self.training and ratio > 0:
            with torch.no_grad():
                slots = self.glanced(slots, encoder_out, tgt_tokens, ratio)
            torch.clear_autocast_cache()  # see evaluation_mode
        found = self.decoder.written(slots, encoder_out)
        words = {
            "out": found.logits,
            "tgt": tgt_tokens,
            "mask": self.learned(tgt_tokens),
            "output_mask": found.real,
            "nll_loss": True,
        }
        return {"word_ins": {**words, **self.alignment_output(found)}}

    def glanced(self, slots, encoder_out, tgt_tokens: Tensor, ratio: float) -> Tensor:
        """The slots with some words of the target, where the best alignment has them."""
        found = self.decoder.written(slots, encoder_out)
        expected, aligned = self.best_alignment(found, tgt_tokens)
        special = expected.eq(self.bos) | expected.eq(self.eos) | expected.eq(self.pad)
        draws = torch.rand(slots.shape, device=slots.device)
        # Whether another word is likelier; to find out which takes a CPU many times as long.
        said = found.logits.gather(2, expected.unsqueeze(2)).squeeze(2)
        wrong = said < found.logits.amax(2)
        return glance(slots, expected, aligned & ~special, wrong, ratio, draws)

    # -- what each kind says ---------------------------------------------------------------

    def learned(self, tgt_tokens: Tensor) -> Tensor:
        """(B, S) bool, the target tokens that the slots are to say."""
        return tgt_tokens.ne(self.pad)

    def alignment_output(self, found: Written) -> Dict[str, Any]:
        """What the loss has to know of the alignment, beside the logits."""
        raise NotImplementedError

    def best_alignment(self, found: Written, tgt_tokens: Tensor):
        """(B, L) int64, the target token that each slot says in the most likely way to say the
        target, and (B, L) bool, the slots that say one."""
        raise NotImplementedError

    def read(self, found: Written, search: str, length_penalty: float):
        """(B, L) tokens and their log-probabilities, and the slots (bool) that are said.

        ``search`` and ``length_penalty``: of :func:`fairseq_eisl.decoding.latent.path_of`, for
        models that have paths.
        """
        raise NotImplementedError

    # -- decoding --------------------------------------------------------------------------

    def initialize_output_tokens(self, encoder_out, src_tokens):
        """As many slots as the source's length says."""
        slots = self.slots(src_tokens)
        scores = torch.zeros(slots.shape, device=slots.device)
        return DecoderOut(slots, scores.type_as(encoder_out["encoder_out"][0]), None, 0, 0, None)

    def forward_decoder(
        self, decoder_out, encoder_out, search="lookahead", length_penalty=1.0, **unused
    ):
        """One pass; further ones change nothing, and stock options are not looked at."""
        if decoder_out.step > 0:
            return decoder_out
        found = self.decoder.written(decoder_out.output_tokens, encoder_out)
        tokens, scores, said = self.read(found, search, length_penalty)
        said = said & tokens.ne(self.bos) & tokens.ne(self.eos) & tokens.ne(self.pad)
        words, kept = packed(tokens, said, fill=self.pad)
        scores, _ = packed(scores, said, fill=0.0, width=words.size(1))
        # As every hypothesis of the other models begins and ends.
        words = F.pad(F.pad(words, (1, 0), value=self.bos), (0, 1), value=self.pad)
        words.scatter_(1, kept.sum(1, keepdim=True) + 1, self.eos)
        history = decoder_out.history
        if history is not None:
            history.append(words.clone())
        return decoder_out._replace(
            output_tokens=words, output_scores=F.pad(scores, (1, 1)), attn=None, history=history
        )
