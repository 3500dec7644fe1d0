"""Methods of fairseq's non-autoregressive decoders, held back while they decode.

Refinement happens in one method of each model; what its decoder says is all that can be changed
from outside, so that no row becomes longer than the position table and no stock fault strikes.
"""

from contextlib import contextmanager
from typing import Callable, Dict, Optional, Sequence

import torch
from torch import Tensor


def held_back(models: Sequence, limit: int, generator):
    """Contexts to decode in; afterwards the models are as before."""
    for part in (models[0].encoder, models[0].decoder):
        yield _replaced(part, ensemble_models=part.ensemble_models)  # else they stay an ensemble
    # The first decoder speaks for an ensemble.
    if hasattr(models[0].decoder, "forward_mask_ins"):
        yield _replaced(models[0].decoder, **_levenshtein(models[0], limit, generator))
    elif len(models) > 1:
        for i, model in enumerate(models):
            yield _replaced(model.decoder, forward_copying_source=_copying(model.decoder, i))


@contextmanager
def _replaced(module, **attributes):
    """The module has these attributes of its own, until the end gives back those it had."""
    before = {name: vars(module)[name] for name in attributes if name in vars(module)}
    vars(module).update(attributes)
    try:
        yield
    finally:
        for name in attributes:
            del vars(module)[name]
        vars(module).update(before)


def _copying(decoder, index: int) -> Callable:
    """``--src-embedding-copy``: stock hands each decoder the embeddings of the whole ensemble."""
    stock = decoder.forward_copying_source
    return lambda source, *masks: stock(source[..., index] if source.dim() == 4 else source, *masks)


def _levenshtein(model, limit: int, generator) -> Dict[str, Callable]:
    """The decoder's methods for a model that deletes, inserts placeholders and fills them.

    It does so in one method; what its decoder says is all that can be held back from outside.
    Attention is held back altogether: stock code mixes up the rows of it where only some
    sentences change, and dies.
    """
    decoder = model.decoder
    delete, insert, fill = (
        getattr(decoder, name)
        for name in ("forward_word_del", "forward_mask_ins", "forward_word_ins")
    )

    def forward_word_del(**inputs):
        return delete(**inputs)[0], None

    def forward_mask_ins(**inputs):
        real = inputs["prev_output_tokens"].ne(model.pad)
        # Stock lets no slot take more than this many.
        source = (~inputs["encoder_out"]["encoder_padding_mask"][0]).sum(1)
        most = (source * generator.max_ratio).clamp(min=10).long()
        scores = insert(**inputs)[0]
        return bound_insertions(scores, real, limit, most, generator.eos_penalty), None

    def forward_word_ins(**inputs):
        # A pad in the midst is taken for the end: the row loses as many tokens there, unless
        # another of the batch is longer.
        scores = fill(**inputs)[0]
        scores[..., model.pad] = -float("inf")
        return scores, None

    return {f.__name__: f for f in (forward_word_del, forward_mask_ins, forward_word_ins)}


def bound_insertions(
    scores: Tensor,
    real: Tensor,
    limit: int,
    most: Optional[Tensor] = None,
    eos_penalty: float = 0.0,
) -> Tensor:
    """Scores changed only where the most likely insertions would make a row too long.

    Args:
        scores: (B, T - 1, N) of inserting 0..N-1 placeholders after each token but the last.
        real: (B, T) bool, what is no padding.
        limit: most tokens of a row.
        most: (B,) most insertions of one slot, which the model itself respects.
        eos_penalty: what the model will take from the scores of inserting nothing.
    """
    penalised = scores.clone()
    penalised[..., 0] -= eos_penalty
    wanted = penalised.argmax(2).masked_fill(~real[:, 1:], 0)
    if most is not None:
        wanted = torch.minimum(wanted, most.unsqueeze(1))
    room = (limit - real.sum(1, keepdim=True)).clamp(min=0)
    before = wanted.cumsum(1) - wanted
    allowed = torch.minimum(wanted, (room - before).clamp(min=0))
    cut = allowed.ne(wanted).unsqueeze(2)
    keep = torch.zeros_like(scores, dtype=torch.bool).scatter_(2, allowed.unsqueeze(2), True)
    return scores.masked_fill(cut & ~keep, -float("inf"))
