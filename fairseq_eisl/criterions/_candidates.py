"""Candidates of an encoder-decoder model: its own output, decoded without gradient."""

from contextlib import contextmanager
from typing import Any, Callable, Dict, NamedTuple, Optional

import torch
from fairseq.models import FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from torch import Tensor

from ..losses import random_numbers
from ._cached_transformer import CachedTransformer, is_known
from ._model_outputs import encode, gives_logits, scores, unwrapped

# Looking whether all candidates have ended makes the host wait for a GPU: look rarely there.
_CUDA_STEPS_BETWEEN_LOOKS = 8
_CUDA_ITERATIONS_BETWEEN_LOOKS = 2


class Candidates(NamedTuple):
    """Decoder input of one forward, and which of its outputs are candidate positions."""

    tokens: Tensor
    """(B, T) int64 the candidate, padded; ends with EOS unless it was cut."""
    prefix: Tensor
    """(B, T) int64 decoder input that predicts ``tokens``."""
    mask: Tensor
    """(B, T) bool, True for candidate positions."""


@contextmanager
def evaluation_mode(model):
    """Switch dropout and the like off, then give every module its own mode back."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


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
    after_eos: bool = False,
) -> Candidates:
    """Decode a candidate for each sentence, as long as its target at most.

    Args:
        model: an encoder-decoder, wrapped or not. Decoding runs on the inner
            model in evaluation mode, with cached keys and values.
        seeds: (B,) int64 seeds to sample with; None decodes greedily.
        after_eos: go on after the candidate's own EOS, and count the positions
            there as candidate positions.
    """
    inner = unwrapped(model)
    if not isinstance(inner, FairseqEncoderDecoderModel):
        raise ValueError(
            f"--criterion eisl decodes candidates with encoder-decoder models; "
            f"{type(inner).__name__} is none (--train-decoding teacher-forcing needs no decoding)"
        )
    net_input, target = sample["net_input"], sample["target"]
    limit = target.ne(pad).sum(1)
    length = target.size(1)
    with evaluation_mode(inner):
        encoder_out = encode(inner.encoder, net_input)
        tokens = target.new_full((target.size(0), length + 1), pad)
        tokens[:, 0] = _first_token(net_input["prev_output_tokens"], pad)
        next_scores = _next_scores(inner, encoder_out, tokens[:, :-1])
        ended = limit.eq(0)
        for step in range(length):
            values = next_scores(step).float()
            if seeds is not None:
                step_seeds = random_numbers.fold(seeds, step)
                values = values + random_numbers.gumbel(step_seeds, values.size(1))
            values[:, pad].fill_(-float("inf"))
            chosen = values.argmax(1).masked_fill(ended, pad)
            tokens[:, step + 1] = chosen
            ended = ended | limit.le(step + 1)
            if not after_eos:
                ended = ended | chosen.eq(eos)
            look = not ended.is_cuda or (step + 1) % _CUDA_STEPS_BETWEEN_LOOKS == 0
            if look and bool(ended.all()):
                break
    candidate = tokens[:, 1:]
    return Candidates(candidate, tokens[:, :-1], candidate.ne(pad))


def _next_scores(model, encoder_out, tokens: Tensor) -> Callable[[int], Tensor]:
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
def decode_in_parallel(model, sample, pad: int, eos: int, after_eos: bool = False) -> Candidates:
    """The greedy candidates of :func:`decode`, as a fixed point.

    All positions are predicted at once from a guess of the whole candidate, and again from
    what came out, until nothing changes (Jacobi iterations; Song et al., ICML 2021, Santilli
    et al., ACL 2023). A token is right once all before it are, so one more is right after each
    iteration, and far more where the guess, which begins with the target, was good.
    """
    inner = unwrapped(model)
    if not isinstance(inner, FairseqEncoderDecoderModel):
        raise ValueError(
            f"--parallel-decoding needs an encoder-decoder; {type(inner).__name__} is none"
        )
    net_input, target = sample["net_input"], sample["target"]
    real = target.ne(pad)
    limit = real.sum(1, keepdim=True)
    place = torch.arange(target.size(1), device=target.device)
    first = _first_token(net_input["prev_output_tokens"], pad).unsqueeze(1)
    # Targets may be padded on the left. (Sorting does not make the host wait, picking would.)
    guess = target.gather(1, real.logical_not().to(torch.uint8).argsort(dim=1, stable=True))
    over = place.ge(limit)
    guess = guess.masked_fill(over, pad)
    with evaluation_mode(inner):
        encoder_out = encode(inner.encoder, net_input)
        for step in range(target.size(1)):
            prefix = torch.cat([first, guess[:, :-1]], 1)
            output: Any = inner.decoder(prefix, encoder_out=encoder_out)
            values = scores(inner, output).values.float()
            values[:, :, pad].fill_(-float("inf"))
            found = values.argmax(2)
            over = place.ge(limit)
            if not after_eos:
                ends = found.eq(eos).long()
                over = over | (ends.cumsum(1) - ends).gt(0)
            # What comes after an end may still be of use, should that end vanish again.
            changed = found.ne(guess) & ~over
            guess = found
            look = not guess.is_cuda or (step + 1) % _CUDA_ITERATIONS_BETWEEN_LOOKS == 0
            if look and not bool(changed.any()):
                break
    candidate = guess.masked_fill(over, pad)
    return Candidates(candidate, torch.cat([first, candidate[:, :-1]], 1), candidate.ne(pad))


def _first_token(prev_output_tokens: Tensor, pad: int) -> Tensor:
    """(B,) the token that decoding starts from (EOS, or a language tag)."""
    first = prev_output_tokens.ne(pad).to(torch.uint8).argmax(1, keepdim=True)
    return prev_output_tokens.gather(1, first).squeeze(1)
