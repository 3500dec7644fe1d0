"""Models with latent alignments: their likelihood, which takes the place of cross entropy, and what
their slots say."""

from typing import Dict, NamedTuple, Optional

import torch
from torch import Tensor

from ..decoding.latent import ctc_ends, packed, path_of
from ..losses.latent import ctc_log_prob_likelihood, dag_log_likelihood
from ..losses.token_log_probs import best_tokens
from . import nat_outputs
from .averages import candidate_statistics
from .nat_outputs import NATOutputs
from .sequence_output import SequenceOutput


class LatentLikelihood(NamedTuple):
    """Of each sentence (B,)."""

    nll: Tensor
    """In nats; an attached zero where the target needs more slots than there are."""
    tokens: Tensor
    """int64, the target tokens that it is of; 0 there."""
    too_long: Tensor
    """bool, those targets."""

    def per_token(self) -> Tensor:
        """(B,) in nats."""
        return self.nll / self.tokens.clamp(min=1)

    def log(self) -> Dict[str, Tensor]:
        """Sums over sentences."""
        return {
            "nll": self.nll.detach().sum(),
            "nll_tokens": self.tokens.sum(),
            "too_long": self.too_long.sum(),
        }


def latent_likelihood(output: SequenceOutput) -> LatentLikelihood:
    """Minus the log-likelihood of the targets, over all alignments."""
    assert output.alignment is not None
    masks = {"output_mask": output.mask, "target_mask": output.target_mask}
    blank, links = output.alignment
    with torch.autocast(output.targets.device.type, enabled=False):
        log_probs = output.target_log_probs()
        if blank is not None:
            found = ctc_log_prob_likelihood(log_probs, output.targets, **masks)
        else:
            assert links is not None
            found = dag_log_likelihood(log_probs, links, **masks)
    # Certainly impossible, not merely unlikely: a NaN stays one.
    too_long = found.eq(-torch.inf)
    tokens = output.target_mask.sum(1).masked_fill(too_long, 0)
    return LatentLikelihood(torch.where(too_long, 0.0, -found), tokens, too_long)


def statistics(
    outputs: NATOutputs, validation: bool, blank: Optional[int] = None
) -> Dict[str, Tensor]:
    """Sums to log of what the first pass writes; ``blank``: that of models without alignments."""
    if not outputs.words.latent:
        return nat_outputs.statistics(outputs, validation, blank)
    if not validation:  # nothing is read in training
        return {}
    tokens, mask = read(outputs)
    log = candidate_statistics(tokens, mask)
    words = outputs.words.target_mask(outputs.symbols.pad)
    special = outputs.symbols.special(outputs.words.targets)
    return {**log, "target_tokens": (words & ~special).sum()}


@torch.no_grad()
def read(outputs: NATOutputs):
    """(B, T) the words that the slots say, and where there are some: CTC's most likely symbols
    merged, or the words of the path that lookahead finds."""
    words, real = outputs.words, outputs.output_mask()
    scores, tokens = best_tokens(words.logits)
    if words.blank is not None:
        said = ctc_ends(tokens, words.blank, real)
    else:
        assert words.links is not None
        said = path_of(words.links, scores, real)
    said = said & ~outputs.symbols.special(tokens) & tokens.ne(outputs.symbols.pad)
    return packed(tokens, said, fill=outputs.symbols.pad)
