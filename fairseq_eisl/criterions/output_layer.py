"""Where a model's logits need not be built: its features and the layer that follows them."""

from typing import Any, Optional

from fairseq.distributed import ModuleProxyWrapper
from fairseq.models.bart import BARTModel
from fairseq.models.transformer import TransformerDecoderBase, TransformerModelBase
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ..decoding.fairseq.model_scores import gives_logits, unwrapped
from ..decoding.fairseq.plain_modules import has_hooks, is_plain, is_untouched

LARGE = 2**26
"""Numbers of B x T x V logits from which on ``auto`` avoids them: 256 MB of float32."""


def output_layer(model: Any) -> Optional[nn.Linear]:
    """The linear layer that makes a Transformer's features logits, None where there is none.

    ``model(..., features_only=True)[0] @ layer.weight.T + layer.bias`` must be its logits: the
    own code of fairseq's model and decoder, with a plain layer, and no hook that changes or sees
    what they give. Wrappers that keep weights elsewhere outside of their forward (FSDP) are left
    alone, as is one that looks in its forward for unused ones.
    """
    wrapper = model
    while isinstance(wrapper, (ModuleProxyWrapper, DistributedDataParallel)):
        if getattr(wrapper, "find_unused_parameters", False) or has_hooks(wrapper):
            return None
        wrapper = wrapper.module
    inner = unwrapped(model)
    decoder = getattr(inner, "decoder", None)
    layer = getattr(decoder, "output_projection", None)
    known = (
        wrapper is inner
        and any(is_untouched(inner, kind, "forward") for kind in (TransformerModelBase, BARTModel))
        and is_untouched(decoder, TransformerDecoderBase, "forward", "output_layer")
        and gives_logits(inner)
    )
    return layer if known and is_plain(layer, nn.Linear) else None


def layer_of_blocks(model, choice: str, logits: int) -> Optional[nn.Linear]:
    """The output layer whose logits are not built as a whole; None where they are.

    ``choice``: ``--output-layer``. ``logits``: how many there are.
    """
    if choice == "whole" or (choice == "auto" and logits < LARGE):
        return None
    return output_layer(model)
