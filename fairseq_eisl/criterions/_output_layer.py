"""Where a model's logits need not be built: its features and the layer that follows them."""

import inspect
from typing import Optional

from fairseq.distributed import ModuleProxyWrapper
from fairseq.models.transformer import TransformerDecoderBase
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ._candidates import unwrapped

LARGE = 2**26
"""Numbers of B x T x V logits from which on ``auto`` avoids them: 256 MB of float32."""


def output_layer(model) -> Optional[nn.Linear]:
    """The linear layer that makes a Transformer's features logits, None where there is none.

    ``model(..., features_only=True)[0] @ layer.weight.T + layer.bias`` must be its logits: the
    decoder's own code, with a plain layer. Wrappers that keep weights elsewhere outside of
    their forward (FSDP) are left alone, as is one that looks in its forward for unused ones.
    """
    wrapper = model
    while isinstance(wrapper, (ModuleProxyWrapper, DistributedDataParallel)):
        if getattr(wrapper, "find_unused_parameters", False):
            return None
        wrapper = wrapper.module
    inner = unwrapped(model)
    decoder = getattr(inner, "decoder", None)
    if wrapper is not inner or not isinstance(decoder, TransformerDecoderBase):
        return None
    kind, layer = type(decoder), getattr(decoder, "output_projection", None)
    own = any(
        getattr(kind, name) is not getattr(TransformerDecoderBase, name)
        for name in ("forward", "output_layer")
    )
    accepts = "features_only" in inspect.signature(inner.forward).parameters
    return layer if type(layer) is nn.Linear and accepts and not own else None
