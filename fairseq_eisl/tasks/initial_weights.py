"""How a model begins: ``--init-weights``, what a checkpoint of another model has learnt.

fairseq's ``--finetune-from-model`` wants every parameter of the model in the checkpoint. This one
takes those that both have: a NAT-CRF or an iterative model from vanilla NAT, a Levenshtein
Transformer from CMLM, any of them with the encoder of an autoregressive teacher.
"""

import logging
import os
from typing import Dict, List

import torch
from fairseq.models.nat import NACRFTransformerModel
from fairseq.modules import LearnedPositionalEmbedding
from torch import Tensor

from ..common.unreadable import why_unreadable

logger = logging.getLogger(__name__)


def load_initial_weights(model: torch.nn.Module, path: str) -> List[str]:
    """Copy the parameters that ``model`` and the checkpoint at ``path`` share by name.

    Returns the names of the parameters that the checkpoint lacks; they keep their random
    initial values. Raises ValueError where there is no such file or no model in it,
    where a shared name has another shape, and where nothing is shared.
    """
    if not os.path.isfile(path):
        raise ValueError(f"--init-weights {path}: there is no such file")
    try:  # safely: see fairseq_fixes.allow_checkpoint_classes
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as err:  # whatever an unpickler makes of the bytes of another format
        raise ValueError(f"--init-weights {path}: {why_unreadable(path, err)}") from err
    theirs = state.get("model") if isinstance(state, dict) else None
    if not isinstance(theirs, dict):
        raise ValueError(f"--init-weights {path}: this is no fairseq checkpoint")
    ours = model.state_dict()
    shared = {name: value for name, value in theirs.items() if name in ours}
    for name, value in shared.items():
        if value.shape != ours[name].shape:
            raise ValueError(
                f"--init-weights {path}: {name} is {tuple(value.shape)} there and "
                f"{tuple(ours[name].shape)} in this model"
            )
    names = [name for name, _ in model.named_parameters()]
    fresh = [name for name in names if name not in shared]
    if len(fresh) == len(names):
        raise ValueError(f"--init-weights {path}: no parameter has a name of this model's")
    stretch_positions(model, shared, slots_a_token(model) / slots_a_token(_model_of(state)))
    model.load_state_dict(shared, strict=False)
    unused = sorted(theirs.keys() - ours.keys())
    logger.info(
        f"begins with {len(names) - len(fresh)} of {len(names)} parameters of {path}; "
        f"not there: {', '.join(fresh) or 'none'}; not used: {', '.join(unused) or 'none'}"
    )
    return fresh


def slots_a_token(model) -> float:
    """How many slots of the decoder a token has; ``model`` has the flag, or is the flags."""
    return float(getattr(model, "upsample_scale", None) or 1)


def _model_of(state):
    """The flags of the model in a checkpoint, or None."""
    return (state.get("cfg") or {}).get("model") or state.get("args")


def stretch_positions(model: torch.nn.Module, shared: Dict[str, Tensor], factor: float):
    """Let a decoder with ``factor`` times as many slots begin with the positions of its words.

    Learned positions of a vanilla NAT are those of words, slot t of a decoder with k slots a token
    is near word t / k: what lies between two words has what lies between their positions. Those
    behind the longest sentence, which nothing has trained, are not met then, either.
    """
    name, decoder = "decoder.embed_positions.weight", getattr(model, "decoder", None)
    positions = getattr(decoder, "embed_positions", None)
    if factor == 1 or name not in shared or not isinstance(positions, LearnedPositionalEmbedding):
        return
    first = positions.padding_idx + 1
    table = shared[name][first:]
    at = (torch.arange(len(table)) / factor).clamp(max=len(table) - 1)
    low = at.long()
    high = (low + 1).clamp(max=len(table) - 1)
    table = torch.lerp(table[low], table[high], (at - low).unsqueeze(1).to(table.dtype))
    shared[name] = torch.cat([shared[name][:first], table])


def level_transitions(model: torch.nn.Module):
    """Let a NAT-CRF begin with transition scores of zero, as the NAT that it then is.

    fairseq draws the two factors of these scores (Sun et al. 2019, section 3.2) from N(0, 1), so
    that scores of rank 32 begin with a deviation of 5.7, far above those of words: what a model
    has learnt without them, it can no longer say. One factor at zero gives scores of zero; the
    other one keeps its values, or neither would have a gradient.
    """
    if isinstance(model, NACRFTransformerModel):
        torch.nn.init.zeros_(model.crf_layer.E2.weight)
