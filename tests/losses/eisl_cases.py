"""Random inputs of EISL: as Hypothesis draws them, and one fixed batch for simpler tests."""

from dataclasses import dataclass
from typing import Dict, Optional

import torch
from hypothesis import strategies as st
from torch import Tensor

from fairseq_eisl.losses import NGramWeights, random_numbers
from fairseq_eisl.losses.position_selection import CHOICES, SELECTION_ON


@dataclass
class Case:
    """One call of a loss: tensors, and keyword arguments that the reference knows as well."""

    logits: Tensor
    targets: Tensor
    output_mask: Optional[Tensor]
    target_mask: Optional[Tensor]
    seeds: Tensor
    options: dict
    word_starts: Optional[Tensor] = None
    ngram_weights: Optional[NGramWeights] = None

    @property
    def masks(self) -> dict:
        return {"output_mask": self.output_mask, "target_mask": self.target_mask}


def gumbel_noise(seeds: Tensor, positions: int, length: int) -> Dict[int, Tensor]:
    """The noise that the implementation adds for these seeds, by order, for the reference."""
    return {
        n: random_numbers.gumbel(random_numbers.fold(seeds, n), positions - n + 1, length - n + 1)
        for n in range(1, min(positions, length) + 1)
    }


def prefix_mask(lengths, size: int) -> Tensor:
    """Lengths to a (B, size) mask whose first tokens are real."""
    return torch.arange(size) < torch.tensor(list(lengths), dtype=torch.long).unsqueeze(1)


@st.composite
def masks(draw, batch: int, size: int):
    kind = draw(st.sampled_from(["none", "lengths", "any"]))
    if kind == "none":
        return None
    if kind == "lengths":
        lengths = st.lists(st.integers(0, size), min_size=batch, max_size=batch)
        return prefix_mask(draw(lengths), size)
    flags = st.lists(st.booleans(), min_size=batch * size, max_size=batch * size)
    return torch.tensor(draw(flags), dtype=torch.bool).view(batch, size)


@st.composite
def options(draw):
    ngrams = draw(st.lists(st.integers(-2, 5), min_size=1, max_size=3))
    weight = st.sampled_from([0.0, 0.2, 1.0, 2.5])
    weights = st.lists(weight, min_size=len(ngrams), max_size=len(ngrams)).filter(any)
    return {
        "ngrams": ngrams,
        "weights": draw(st.none() | weights),
        "selection": draw(st.sampled_from(CHOICES)),
        "temperature": draw(st.sampled_from([1.0, 0.1, 0.5, 3.0])),
        "selection_on": draw(st.sampled_from(SELECTION_ON)),
        "floor": draw(st.sampled_from([-20.0, -2.5])),
        "normalize": draw(st.booleans()),
    }


@st.composite
def cases(draw):
    batch, positions, length = draw(st.tuples(*[st.integers(1, 3), *[st.integers(0, 6)] * 2]))
    vocabulary = draw(st.sampled_from([1, 2, 3, 7]))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = torch.randn(batch, positions, vocabulary, generator=seed, dtype=torch.float64)
    target_mask = draw(masks(batch, length))
    targets = torch.randint(vocabulary, (batch, length), generator=seed)
    if target_mask is not None:
        targets = targets.masked_fill(~target_mask, -100)
    return Case(
        logits * draw(st.sampled_from([0.3, 2.0])),
        targets,
        draw(masks(batch, positions)),
        target_mask,
        torch.randint(2**62, (batch,), generator=seed),
        draw(options()),
        draw(word_starts(batch, length)),
        draw(ngram_weights(batch, length)),
    )


@st.composite
def word_starts(draw, batch: int, length: int):
    """None, or which of the tokens begin a word."""
    flags = st.lists(st.booleans(), min_size=batch * length, max_size=batch * length)
    drawn = draw(st.none() | flags)
    return None if drawn is None else torch.tensor(drawn, dtype=torch.bool).view(batch, length)


@st.composite
def ngram_weights(draw, batch: int, length: int):
    """None, or how much n-grams count."""
    if draw(st.booleans()):
        return None
    sizes = batch * length, batch * max(0, length - 1)
    tokens, pairs = (
        draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 4.0]), min_size=size, max_size=size))
        for size in sizes
    )
    return NGramWeights(
        torch.tensor(tokens, dtype=torch.float64).view(batch, length),
        torch.tensor(pairs, dtype=torch.float64).view(batch, max(0, length - 1)),
    )


def example(dtype=torch.float64, **options) -> Case:
    """Four sentences: full, T < S, S < T, and one token against one; V = 11.

    >>> example().logits.shape
    torch.Size([4, 7, 11])
    """
    seed = torch.Generator().manual_seed(1)
    output_mask, target_mask = prefix_mask([7, 3, 6, 1], 7), prefix_mask([6, 6, 2, 1], 6)
    return Case(
        (torch.randn(4, 7, 11, generator=seed, dtype=torch.float64) * 2).to(dtype),
        torch.randint(11, (4, 6), generator=seed).masked_fill(~target_mask, -100),
        output_mask,
        target_mask,
        torch.tensor([3, 2**40 + 1, 5, 2**61]),
        {"ngrams": (1, 2, 3, 0), "weights": (0.4, 0.3, 0.2, 0.1), **options},
    )
