"""Candidates of fairseq's encoder-decoder models, wrapped or not.

Decoding runs on the inner model in evaluation mode. ``encoder_out``, where it is given, is the
output of its encoder for the batch, from which candidates are decoded; otherwise the encoder runs.
"""

from typing import Any, Dict, Optional

import torch
from fairseq.models import FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from .. import candidates
from ..candidates import Candidates, NextLogits
from .cached_transformer import CachedTransformer, is_known
from .model_scores import encode, evaluation_mode, gives_logits, scores, unwrapped


def teacher_forced(sample, pad: int) -> Candidates:
    """The target itself as candidate (teacher forcing)."""
    target = sample["target"]
    # Language models have no such input; nobody needs it, as their logits are those of the target.
    prefix = sample["net_input"].get("prev_output_tokens", target)
    return Candidates(target, prefix, target.ne(pad))


@torch.no_grad()
def decode(
    model,
    sample,
    pad: int,
    eos: int,
    seeds: Optional[Tensor] = None,
    at_eos: str = "end",
    encoder_out: Any = None,
    limit: Optional[Tensor] = None,
) -> Candidates:
    """A candidate for each sentence, with cached keys and values.

    ``seeds``, ``at_eos``: as for :func:`fairseq_eisl.decoding.decode`. ``limit``: (B,) int64,
    the most tokens of each; as many as its target has, if None.
    """
    inner = _encoder_decoder(
        model,
        "candidates are decoded with encoder-decoder models; "
        "{} is none (--train-decoding teacher-forcing needs no decoding)",
    )
    net_input, target = sample["net_input"], sample["target"]
    length = target.size(1) if limit is None else int(limit.max())
    with evaluation_mode(inner):
        if encoder_out is None:
            encoder_out = encode(inner.encoder, net_input)
        return candidates.decode(
            lambda prefix: _next_scores(inner, encoder_out, prefix),
            first_token(net_input["prev_output_tokens"], pad),
            limit=target.ne(pad).sum(1) if limit is None else limit,
            length=length,
            pad=pad,
            eos=eos,
            seeds=seeds,
            at_eos=at_eos,
        )


def _next_scores(model, encoder_out, tokens: Tensor) -> NextLogits:
    """The (B, V) logits, or log-probabilities where the model has a way of its own to make them,
    of the token after (B, T) ``tokens[:, step]``, asked for step by step."""
    decoder: Any = model.decoder
    if is_known(decoder) and gives_logits(model):
        return CachedTransformer(decoder, encoder_out, tokens).logits
    caches = isinstance(decoder, FairseqIncrementalDecoder)
    options: Dict[str, Any] = {"incremental_state": {}} if caches else {}

    def next_scores(step: int) -> Tensor:
        output = decoder(tokens[:, : step + 1], encoder_out=encoder_out, **options)
        return scores(model, output).values[:, -1]

    return next_scores


@torch.no_grad()
def decode_in_parallel(
    model, sample, pad: int, eos: int, at_eos: str = "end", encoder_out: Any = None
) -> Candidates:
    """The greedy candidates of :func:`decode`, all positions at once, from the target as a guess
    (see :func:`fairseq_eisl.decoding.decode_in_parallel`)."""
    inner = _encoder_decoder(model, "--parallel-decoding needs an encoder-decoder; {} is none")
    net_input, target = sample["net_input"], sample["target"]
    real = target.ne(pad)
    # Targets may be padded on the left. (Sorting does not make the host wait, picking would.)
    guess = target.gather(1, real.logical_not().to(torch.uint8).argsort(dim=1, stable=True))
    with evaluation_mode(inner):
        if encoder_out is None:
            encoder_out = encode(inner.encoder, net_input)

        def all_scores(prefix: Tensor) -> Tensor:
            output: Any = inner.decoder(prefix, encoder_out=encoder_out)
            return scores(inner, output).values

        return candidates.decode_in_parallel(
            all_scores,
            first_token(net_input["prev_output_tokens"], pad),
            guess,
            limit=real.sum(1),
            pad=pad,
            eos=eos,
            at_eos=at_eos,
        )


def _encoder_decoder(model, message: str) -> FairseqEncoderDecoderModel:
    """The inner model; ValueError with its name in the message where it is none of these."""
    inner = unwrapped(model)
    if not isinstance(inner, FairseqEncoderDecoderModel):
        raise ValueError(message.format(type(inner).__name__))
    return inner


def first_token(prev_output_tokens: Tensor, pad: int) -> Tensor:
    """(B,) the token that decoding starts from (EOS, or a language tag)."""
    first = prev_output_tokens.ne(pad).to(torch.uint8).argmax(1, keepdim=True)
    return prev_output_tokens.gather(1, first).squeeze(1)
