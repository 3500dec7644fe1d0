"""What fairseq's models give for every position: logits, or log-probabilities of their making."""

from contextlib import contextmanager
from typing import Any, Dict, NamedTuple, Tuple

import torch
from fairseq import utils
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor

from .plain_modules import has_own


def unwrapped(model) -> BaseFairseqModel:
    """The model inside its distributed wrappers.

    Decoding through a wrapper would arm its gradient reducer for a pass that
    has no backward.
    """
    while not isinstance(model, BaseFairseqModel) and hasattr(model, "module"):
        model = model.module
    return model


@contextmanager
def evaluation_mode(model):
    """Switch dropout and the like off, then give every module its own mode back.

    Weights that autocast has made half of meanwhile are forgotten: torch before 2.10 keeps copies
    that were made without gradient (pytorch issue 112583), from which a training pass in the same
    step would learn nothing.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        torch.clear_autocast_cache()


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
                f"the probabilities of all symbols are needed, and "
                f"{type(inner).__name__} has no get_normalized_probs that gives them"
            ) from None
        values = values.to(torch.promote_types(values.dtype, torch.float32))
    else:
        values = net_output[0]
    return Scores(values, own)


def is_called_as_module(encoder) -> bool:
    """Whether an encoder's forward gives what decoding needs; it may have a method for that."""
    return has_own(encoder, FairseqEncoder, "forward_torchscript", "forward_non_torchscript")


def encode(encoder, net_input: Dict[str, Any]):
    """The encoder's output for decoding. Called as a module, so that its hooks run."""
    if is_called_as_module(encoder):
        return encoder(**{k: v for k, v in net_input.items() if k != "prev_output_tokens"})
    return encoder.forward_torchscript(net_input)
