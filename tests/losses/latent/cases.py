"""Random sentences of few slots and few words, for losses over latent alignments."""

from typing import NamedTuple

import torch
from torch import Tensor


class Case(NamedTuple):
    """A padded batch; the last symbol is the blank of CTC."""

    logits: Tensor
    """(B, L, V)."""
    links: Tensor
    """(B, L, L); minus infinity where there is no transition."""
    targets: Tensor
    output_mask: Tensor
    target_mask: Tensor

    @property
    def blank(self) -> int:
        return self.logits.size(2) - 1

    @property
    def masks(self) -> dict:
        return {"output_mask": self.output_mask, "target_mask": self.target_mask}

    def rows(self, b: int) -> "Case":
        """One sentence without its padding."""
        slots, length = int(self.output_mask[b].sum()), int(self.target_mask[b].sum())
        return Case(
            self.logits[b : b + 1, :slots],
            self.links[b : b + 1, :slots, :slots],
            self.targets[b : b + 1, :length],
            self.output_mask[b : b + 1, :slots],
            self.target_mask[b : b + 1, :length],
        )

    def log_probs(self) -> Tensor:
        """(B, L, S + 1) of target tokens and blank."""
        index = torch.nn.functional.pad(self.targets, (0, 1), value=self.blank)
        index = index.unsqueeze(1).expand(-1, self.logits.size(1), -1)
        return self.logits.log_softmax(2).gather(2, index)


def random_links(scores: Tensor, output_mask: Tensor) -> Tensor:
    """(B, L, L) scores to log-probabilities of transitions forward, between real vertices."""
    allowed = output_mask.unsqueeze(2) & output_mask.unsqueeze(1)
    allowed = allowed & torch.ones_like(allowed).triu(1)
    found = scores.masked_fill(~allowed, -1e4).log_softmax(2)
    return found.masked_fill(~allowed, -torch.inf)


def case(slots, lengths, vocabulary=4, seed=0, scale=1.5, dtype=torch.float64) -> Case:
    """Sentences of these numbers of slots and tokens; tokens repeat often."""
    numbers = torch.Generator().manual_seed(seed)
    batch, most, longest = len(slots), max(slots), max(lengths)

    def normal(*shape):
        return scale * torch.randn(*shape, generator=numbers, dtype=torch.float64)

    output_mask = torch.arange(most) < torch.tensor(slots).unsqueeze(1)
    target_mask = torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)
    return Case(
        normal(batch, most, vocabulary).to(dtype),
        random_links(normal(batch, most, most), output_mask).to(dtype),
        torch.randint(vocabulary - 1, (batch, longest), generator=numbers),
        output_mask,
        target_mask,
    )
