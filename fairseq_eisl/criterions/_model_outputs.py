"""What a model gives for every position: logits, or log-probabilities of its own making."""

from contextlib import contextmanager, nullcontext
from typing import Any, Dict, NamedTuple, Tuple

import torch
from fairseq import utils
from fairseq.models import (
    BaseFairseqModel,
    FairseqDecoder,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
)
from fairseq.models.bart import BARTModel
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor

from ._plain_modules import has_own


def unwrapped(model) -> BaseFairseqModel:
    """The model inside its distributed wrappers.

    Decoding through a wrapper would arm its gradient reducer for a pass that
    has no backward.
    """
    while not isinstance(model, BaseFairseqModel) and hasattr(model, "module"):
        model = model.module
    return model


def check_model(model):
    """Refuse models that give nothing over the whole dictionary."""
    inner = unwrapped(model)
    name = type(inner).__name__
    if getattr(getattr(inner, "decoder", None), "adaptive_softmax", None) is not None:
        raise ValueError(
            f"--criterion eisl needs logits over the whole target dictionary; {name} with "
            "--adaptive-softmax-cutoff gives none"
        )


class Scores(NamedTuple):
    """Of every symbol at every position."""

    values: Tensor
    """(B, T, V) logits, or log-probabilities in nats."""
    normalized: bool
    """Whether they are log-probabilities, to be taken as they are."""

    def log_probs(self) -> Tensor:
        """(B, T, V) float32 at least."""
        return self.values if self.normalized else utils.log_softmax(self.values, dim=-1)

    def halves(self) -> Tuple["Scores", "Scores"]:
        """Of a batch in which every sentence stands twice: its first rows, its second rows."""
        first, second = self.values.unflatten(0, (-1, 2)).unbind(1)
        return Scores(first, self.normalized), Scores(second, self.normalized)


def gives_logits(model) -> bool:
    """Whether a model's probabilities are the softmax of its output.

    Models may normalise in their own way (a pointer network gives probabilities already). What
    is not known to be a softmax is asked for with ``get_normalized_probs``.
    """
    inner = unwrapped(model)
    names = "get_normalized_probs", "get_normalized_probs_scriptable"
    decoder = getattr(inner, "decoder", None)
    return (
        has_own(inner, BaseFairseqModel, names[1])
        # That of Transformers calls the other one.
        and any(has_own(inner, k, names[0]) for k in (BaseFairseqModel, TransformerModelBase))
        and has_own(decoder, FairseqDecoder, *names)
    )


def scores(model, net_output: Any) -> Scores:
    """The scores in what a model or its decoder returned."""
    inner = unwrapped(model)
    own = not gives_logits(inner)
    if own:
        try:
            values = inner.get_normalized_probs(net_output, log_probs=True)
        except NotImplementedError:
            raise ValueError(
                f"--criterion eisl needs the probabilities of all symbols, and "
                f"{type(inner).__name__} has no get_normalized_probs that gives them"
            ) from None
        values = values.to(torch.promote_types(values.dtype, torch.float32))
    else:
        values = net_output[0]
    return Scores(values, own)


def run(model, net_input: Dict[str, Any], vocabulary: int) -> Scores:
    """The scores of one forward, checked."""
    found = scores(model, model(**net_input))
    shape = tuple(found.values.shape)
    if len(shape) != 3 or shape[2] != vocabulary:
        raise ValueError(
            f"--criterion eisl needs logits over all {vocabulary} symbols of the target "
            f"dictionary, but this model gives a tensor of shape {shape}"
        )
    tokens = net_input.get("prev_output_tokens", net_input.get("src_tokens"))
    if tokens is not None and tuple(tokens.shape[:2]) != shape[:2]:
        raise ValueError(
            f"--criterion eisl needs scores of shape (B, T, V) for (B, T) tokens, here "
            f"{tuple(tokens.shape)}, but this model gives a tensor of shape {shape}"
        )
    return found


def run_twice(
    model, net_input: Dict[str, Any], prefix: Tensor, vocabulary: int
) -> Tuple[Scores, Scores]:
    """The scores of ``net_input`` with another decoder input, (B, T) ``prefix``, and with its own.

    One forward for both, as a distributed wrapper allows one a backward. The encoder runs once
    for a sentence, where its output is known to be all that the decoder has of the source.
    """
    inner = unwrapped(model)
    once = _encodes_once(inner, net_input)
    # The two rows of a sentence stand together, as recurrent encoders want lengths that fall.
    both = {
        name: torch.stack([value, value], 1).flatten(0, 1)
        if torch.is_tensor(value) and not once
        else value
        for name, value in net_input.items()
    }
    forced = net_input["prev_output_tokens"]
    both["prev_output_tokens"] = torch.stack([prefix, forced], 1).flatten(0, 1)
    with _repeated_encoder_output(inner.encoder, forced) if once else nullcontext():
        return run(model, both, vocabulary).halves()


def _encodes_once(model, net_input: Dict[str, Any]) -> bool:
    """Whether the model is ``decoder(prev_output_tokens, encoder(src_tokens, src_lengths))``."""
    kinds = FairseqEncoderDecoderModel, TransformerModelBase, BARTModel, LSTMModel
    return (
        set(net_input) == {"src_tokens", "src_lengths", "prev_output_tokens"}
        and any(has_own(model, kind, "forward") for kind in kinds)
        and not has_own(model.encoder, FairseqEncoder, "reorder_encoder_out")  # which raises
    )


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


def encode(encoder, net_input: Dict[str, Any]):
    """The encoder's output for decoding. Called as a module, so that its hooks run."""
    if has_own(encoder, FairseqEncoder, "forward_torchscript", "forward_non_torchscript"):
        return encoder(**{k: v for k, v in net_input.items() if k != "prev_output_tokens"})
    return encoder.forward_torchscript(net_input)
