"""The best outputs of fairseq's beam search, for training steps."""

from typing import List

import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from .model_scores import evaluation_mode, unwrapped


@torch.no_grad()
def beam_outputs(
    model, sample, dictionary: Dictionary, count: int, max_len_a: float, max_len_b: int
) -> Tensor:
    """The ``count`` best outputs of a beam of that size for each sentence.

    As in ``fairseq-generate`` the most tokens are ``max_len_a`` times the longest source of the
    batch, and ``max_len_b`` more.

    Returns:
        (B, count, L) int64 tokens, best first, padded; each ends with EOS. Where a beam has
        fewer, its best one stands again.
    """
    inner = unwrapped(model)
    with evaluation_mode(inner):  # the generator leaves a model in evaluation mode
        # For this call alone: a generator is a module that holds the model.
        generator = SequenceGenerator(
            [inner], dictionary, beam_size=count, max_len_a=max_len_a, max_len_b=max_len_b
        )
        found = generator.generate([inner], sample)
    rows: List[Tensor] = []
    for hypotheses in found:
        tokens = [hypothesis["tokens"] for hypothesis in hypotheses[:count]]
        rows += tokens + tokens[:1] * (count - len(tokens))
    width = max((len(row) for row in rows), default=0)
    target = sample["target"]
    result = target.new_full((len(rows), width), dictionary.pad())
    for place, row in enumerate(rows):
        result[place, : len(row)] = row
    return result.view(len(found), count, width)
