"""What a fairseq Transformer decoder computes on its way: states of its layers, attention weights.

Read by forward hooks, which are taken off afterwards; the model's own code runs as it is.
"""

from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from torch import Tensor


class DecoderPass(NamedTuple):
    """One run through the layers of a decoder."""

    layers: List[Tensor]
    """(B, T, C) output of each layer."""
    attention: List[Tensor]
    """(B, H, T, S) encoder-decoder attention weights of each layer, before dropout, float32;
    empty where they were not asked for."""
    top: Optional[Tensor] = None
    """(B, T, C) what the output layer of words was given; None where it did not run."""


class Recorder:
    """The passes within :func:`recorded`."""

    def __init__(self):
        self.words: Optional[DecoderPass] = None
        """The first pass that ended in the output layer of words: the first step of iNAT, and of
        the three passes of the Levenshtein Transformer the one that inserts words."""
        self._layers: Dict[int, Tensor] = {}
        self._attention: Dict[int, Tensor] = {}
        self._last = -1

    def latest(self, top: Optional[Tensor] = None) -> DecoderPass:
        """The pass that ran last, or runs."""
        parts = (self._layers, self._attention)
        layers, attention = ([part[i] for i in sorted(part)] for part in parts)
        return DecoderPass(layers, attention, top)

    def begin_layer(self, index: int):
        """A layer that is not above the one before it begins another pass."""
        if index <= self._last:
            self._layers, self._attention = {}, {}
        self._last = index

    def keep_layer(self, index: int, states: Tensor):
        """(T, B, C) as fairseq's layers give them."""
        self._layers[index] = states.transpose(0, 1)

    def keep_attention(self, index: int, weights: Tensor):
        """(H, B, T, S) as fairseq's attention gives them."""
        self._attention[index] = weights.transpose(0, 1)

    def end_with_words(self, top: Tensor):
        """The output layer is given the (B, T, C) states."""
        if self.words is None:
            self.words = self.latest(top)


def has_states(decoder: Any) -> bool:
    """Whether a decoder is built like fairseq's Transformer: layers and an output layer."""
    return hasattr(decoder, "layers") and getattr(decoder, "output_projection", None) is not None


@contextmanager
def recorded(decoder: Any, attention: bool = False) -> Iterator[Recorder]:
    """Within it, passes of a decoder are recorded; ``attention``: with their attention weights."""
    recorder = Recorder()
    handles: List[Any] = []
    try:
        for index in range(len(decoder.layers)):  # iterated, LayerDrop's list leaves some out
            layer = decoder.layers[index]
            handles += _hooks_of_layer(recorder, index, layer)
            if attention:
                handles += _hooks_of_attention(recorder, index, layer.encoder_attn)
        handles.append(
            decoder.output_projection.register_forward_pre_hook(
                lambda module, inputs: recorder.end_with_words(inputs[0])
            )
        )
        yield recorder
    finally:
        for handle in handles:
            handle.remove()


def _hooks_of_layer(recorder: Recorder, index: int, layer: Any) -> Tuple[Any, ...]:
    return (
        layer.register_forward_pre_hook(lambda module, inputs: recorder.begin_layer(index)),
        layer.register_forward_hook(
            lambda module, inputs, output: recorder.keep_layer(index, output[0])
        ),
    )


def _hooks_of_attention(recorder: Recorder, index: int, attention: Any) -> Tuple[Any, ...]:
    """Hooks that ask for the weights of each head; the caller gets what it asked for."""
    asked: List[Tuple[bool, bool]] = []

    def ask(module, inputs, named):
        asked.append((named.get("need_weights", True), named.get("need_head_weights", False)))
        return inputs, {**named, "need_weights": True, "need_head_weights": True}

    def keep(module, inputs, output):
        states, weights = output
        recorder.keep_attention(index, weights)
        needed, by_head = asked.pop()
        if by_head:
            return states, weights
        return states, weights.mean(0) if needed else None

    return (
        attention.register_forward_pre_hook(ask, with_kwargs=True),
        attention.register_forward_hook(keep),
    )
