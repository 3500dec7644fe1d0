"""One forward of an autoregressive model, on its own candidate, on the target, or on both."""

from contextlib import contextmanager, nullcontext
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel
from fairseq.models.bart import BARTModel
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor

from ..decoding import Candidates
from ..decoding.fairseq.model_scores import Scores, is_called_as_module, scores, unwrapped
from ..decoding.fairseq.plain_modules import has_own

NetInput = Dict[str, Any]


def check_model(model, criterion: str):
    """Refuse models that give nothing over the whole dictionary; ``criterion`` is its name."""
    inner = unwrapped(model)
    name = type(inner).__name__
    if getattr(getattr(inner, "decoder", None), "adaptive_softmax", None) is not None:
        raise ValueError(
            f"--criterion {criterion} needs logits over the whole target dictionary; {name} with "
            "--adaptive-softmax-cutoff gives none"
        )


def run(model, net_input: NetInput, vocabulary: int) -> Scores:
    """The scores of one forward, checked."""
    found = scores(model, model(**net_input))
    shape = tuple(found.values.shape)
    if len(shape) != 3 or shape[2] != vocabulary:
        raise ValueError(
            f"the criterion needs logits over all {vocabulary} symbols of the target "
            f"dictionary, but this model gives a tensor of shape {shape}"
        )
    tokens = net_input.get("prev_output_tokens", net_input.get("src_tokens"))
    if tokens is not None and tuple(tokens.shape[:2]) != shape[:2]:
        raise ValueError(
            f"the criterion needs scores of shape (B, T, V) for (B, T) tokens, here "
            f"{tuple(tokens.shape)}, but this model gives a tensor of shape {shape}"
        )
    return found


def run_twice(model, net_input: NetInput, prefix: Tensor, vocabulary: int) -> Tuple[Scores, Scores]:
    """The scores of ``net_input`` with another decoder input, (B, T) ``prefix``, and with its own.

    One forward for both, as a distributed wrapper allows one a backward. The encoder runs once
    for a sentence, where its output is known to be all that the decoder has of the source.
    """
    inner = unwrapped(model)
    once = encodes_once(inner, net_input)
    # The two rows of a sentence stand together, as recurrent encoders want lengths that fall.
    both = {
        name: torch.stack([value, value], 1).flatten(0, 1)
        if torch.is_tensor(value) and not once
        else value
        for name, value in net_input.items()
    }
    both["prev_output_tokens"] = _beside(prefix, net_input["prev_output_tokens"])
    with _repeated_encoder_output(inner.encoder, prefix) if once else nullcontext():
        return run(model, both, vocabulary).halves()


@contextmanager
def candidate_within(
    model,
    net_input: NetInput,
    decode: Callable[[Any], Candidates],
    twice: bool,
) -> Iterator[List[Candidates]]:
    """Within it, one forward of ``net_input`` is on the candidate that ``decode`` makes of the
    output of the encoder in this very forward, whatever decoder input it is given.

    Only for models that :func:`encodes_once`. ``twice``: the forward is that of
    :func:`run_twice`. The context gives a list that holds the candidates after the forward.
    """
    inner = unwrapped(model)
    found: List[Candidates] = []
    handles = []

    def replace_input(module, inputs, named):
        prefix = found[0].prefix
        if twice:
            prefix = _beside(prefix, net_input["prev_output_tokens"])
        if inputs:
            return (prefix, *inputs[1:]), named
        return inputs, {**named, "prev_output_tokens": prefix}

    def decode_from(module, inputs, output):
        found.append(decode(output))
        # Not before: decoding calls the decoder, too. And ahead of hooks that somebody else has
        # there, which are to see the candidate.
        handles.append(
            inner.decoder.register_forward_pre_hook(replace_input, prepend=True, with_kwargs=True)
        )

    handles.append(inner.encoder.register_forward_hook(decode_from))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def encodes_once(model, net_input: NetInput) -> bool:
    """Whether the model is ``decoder(prev_output_tokens, encoder(src_tokens, src_lengths))``."""
    kinds = FairseqEncoderDecoderModel, TransformerModelBase, BARTModel, LSTMModel
    return (
        set(net_input) == {"src_tokens", "src_lengths", "prev_output_tokens"}
        and any(has_own(model, kind, "forward") for kind in kinds)
        and not has_own(model.encoder, FairseqEncoder, "reorder_encoder_out")  # which raises
    )


def shares_encoder_output(model, net_input: NetInput) -> bool:
    """Whether decoding from the output of the encoder in a forward is known to be decoding."""
    return encodes_once(model, net_input) and is_called_as_module(model.encoder)


def _beside(prefix: Tensor, forced: Tensor) -> Tensor:
    """(2 B, T): the two decoder inputs of a sentence stand together."""
    return torch.stack([prefix, forced], 1).flatten(0, 1)


@contextmanager
def _repeated_encoder_output(encoder, tokens: Tensor):
    """Every sentence twice in what the encoder gives for a batch, as for a beam of two."""
    size = len(tokens)
    rows = torch.arange(2 * size, device=tokens.device).div(2, rounding_mode="floor")

    def repeat(module, inputs, output):
        return module.reorder_encoder_out(output, rows)

    handle = encoder.register_forward_hook(repeat)
    try:
        yield
    finally:
        handle.remove()
