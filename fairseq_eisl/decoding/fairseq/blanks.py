"""Slots that may say a blank: more of them than words, and no blank in what a reader sees."""

import math
from typing import Any, List

import torch
from fairseq.data import Dictionary
from torch import Tensor

BLANK = "madeupword0000"
"""What fairseq-preprocess adds to a dictionary to round its size up; no text has it."""


def find_blank(dictionary: Dictionary, symbol: str) -> int:
    """The id of the blank.

    Raises:
        ValueError: the dictionary lacks it, or it means something else.
    """
    index = dictionary.index(symbol)
    special = {dictionary.bos(), dictionary.pad(), dictionary.eos(), dictionary.unk()}
    if index not in special:
        return index
    if symbol in dictionary:
        raise ValueError(
            f"--axe-blank: {symbol!r} has a meaning of its own; choose a symbol that no text has, "
            f"such as {BLANK}"
        )
    raise ValueError(
        f"--axe-blank: {symbol!r} is not in the target dictionary of {len(dictionary)} symbols; "
        f"choose one that no text has, or, before any training, add the line '{symbol} 0' to the "
        "end of the dict.*.txt in the data folder (of both languages, if they share it)"
    )


def check_length_factor(flag: str, factor: float):
    """ValueError for a factor that cannot be meant."""
    if not (math.isfinite(factor) and factor >= 1):
        raise ValueError(f"{flag} must be a finite number, 1 or above, not {factor}")


def check_predicts_length(model: Any, factor: float):
    """ValueError where there is no predicted length to multiply."""
    if factor > 1 and not model.allow_length_beam:
        raise ValueError(
            f"--length-factor {factor}: {type(model).__name__} predicts no length; leave it at 1"
        )


def stretched(lengths: Tensor, factor: float) -> Tensor:
    """Lengths with that many times as many words, rounded (halves up); start and end stay two.

    >>> stretched(torch.tensor([2, 3, 7, 8]), 1.25).tolist()
    [2, 3, 8, 10]
    """
    words = (lengths - 2).double() * factor
    return torch.where(lengths > 2, (words + 0.5).floor().long() + 2, lengths)


def unwritten(lengths: Tensor, symbols: Any) -> Tensor:
    """(N,) lengths, 2 or more, to (N, T) rows ``bos unk .. unk eos``, padded on the right.

    ``symbols`` has the ids ``bos``, ``unk``, ``eos``, ``pad``, as fairseq's models have.
    """
    place = torch.arange(int(lengths.max()), device=lengths.device).unsqueeze(0)
    tokens = torch.full_like(place, symbols.unk).expand(len(lengths), -1).clone()
    tokens[place.ge(lengths.unsqueeze(1))] = symbols.pad
    tokens[:, 0] = symbols.bos
    return tokens.scatter_(1, lengths.unsqueeze(1) - 1, symbols.eos)


def drop_blanks(hypothesis: dict, blank: int):
    """Drop the blanks of a hypothesis of fairseq's and of its history."""
    for entry in _entries(hypothesis):
        _keep(entry, entry["tokens"].ne(blank))


def drop_repeats(hypothesis: dict):
    """Keep the first of equal neighbours, in a hypothesis of fairseq's and its history."""
    for entry in _entries(hypothesis):
        tokens = entry["tokens"]
        keep = torch.ones_like(tokens, dtype=torch.bool)
        keep[1:] = tokens[1:] != tokens[:-1]
        _keep(entry, keep)


def _entries(hypothesis: dict) -> List[dict]:
    return [hypothesis, *hypothesis.get("history", [])]


def _keep(entry: dict, keep: Tensor):
    """Scores of tokens stay beside their tokens."""
    entry["tokens"] = entry["tokens"][keep]
    for name in ("positional_scores", "hypo_attn", "alignment"):
        if entry.get(name) is not None:
            entry[name] = entry[name][keep]
