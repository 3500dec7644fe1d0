"""What a criterion is handed: the positions of a model's output, beside a batch of targets."""

from dataclasses import dataclass, field
from typing import NamedTuple, Optional, Tuple

from torch import Tensor, nn
from torch.nn import functional as F

from ..decoding.fairseq.model_scores import Scores
from ..losses import token_log_probs


class SlotKinds(NamedTuple):
    """What the T slots of a non-autoregressive model are, which stand beside their targets."""

    predicted: Tensor
    """(B, T) bool, the slots that the model fills; the other real ones are observed."""
    special: Tensor
    """(B, T) bool, the slots whose target marks start or end."""


class Alignment(NamedTuple):
    """How slots and target tokens belong together, where the loss has to find out: by CTC, with a
    blank, or by paths, with links."""

    blank: Optional[int] = None
    """The id, behind the dictionary's last, of what slots without a word say."""
    links: Optional[Tensor] = None
    """(B, T, T) log-probabilities in nats of transitions."""


@dataclass
class SequenceOutput:
    """The output of one forward of either kind of model, and the targets.

    Autoregressive: the scores at the positions of the candidate. Non-autoregressive: those of
    the slots.
    """

    targets: Tensor
    """(B, S) int64."""
    target_mask: Tensor
    """(B, S) bool, True for real tokens."""
    mask: Tensor
    """(B, T) bool, True for the candidate's positions, or real slots."""
    seeds: Tensor
    """(B,) int64 seeds of what is random in the loss of each sentence."""
    scores: Optional[Scores] = None
    """(B, T, V); None where there are features."""
    features: Optional[Tensor] = None
    """(B, T, C) instead of scores, for criterions that take them: ``layer`` makes them logits."""
    layer: Optional[nn.Linear] = None
    slots: Optional[SlotKinds] = None
    """None for autoregressive models."""
    alignment: Optional[Alignment] = None
    """Of models with latent alignments; their masks say which slots and target tokens count."""
    overwritable: bool = False
    """Whether the backward may write into the memory of the scores: nobody else needs them."""
    as_long_as_target: bool = False
    """Whether every candidate is as long as its target."""
    _found: Optional[Tensor] = field(default=None, repr=False)

    def need_slots(self, criterion: str):
        """ValueError where a non-autoregressive model has no slot for every target token."""
        if self.alignment is not None:
            raise ValueError(
                f"--criterion {criterion} needs a slot for every target token; this model has more "
                "slots, whose alignment is latent"
            )
        if self.slots is not None and self.mask.shape != self.targets.shape:
            raise ValueError(
                f"--criterion {criterion} needs a slot for every target token (word_ins: out "
                f"(B, T, V) beside tgt (B, T)); this model gives {self.mask.size(1)} positions "
                f"for {self.targets.size(1)} tokens"
            )

    def log_probs(self) -> Tensor:
        """(B, T, V) log-probabilities in nats, float32 at least."""
        if self.scores is not None:
            return self.scores.log_probs()
        assert self.features is not None
        logits = F.linear(self.features, *self.weight_and_bias())
        return Scores(logits, normalized=False).log_probs()

    def target_log_probs(self) -> Tensor:
        """(B, T, S) log-probability in nats of each target token at each slot, and behind them of
        the blank where the alignment has one (B, T, S + 1), computed once for all who ask: they
        share one gradient of the scores. 0 at slots that are not real."""
        if self._found is None:
            assert self.scores is not None and not self.scores.normalized
            columns = self.targets.masked_fill(~self.target_mask, 0)
            if self.alignment is not None and self.alignment.blank is not None:
                columns = F.pad(columns, (0, 1), value=self.alignment.blank)
            self._found = token_log_probs(self.scores.values, columns, self.mask, self.overwritable)
        return self._found

    def weight_and_bias(self) -> Tuple[Tensor, Optional[Tensor]]:
        """Of the layer, in the dtype of the features (autocast gives half precision)."""
        assert self.features is not None and self.layer is not None
        dtype, bias = self.features.dtype, self.layer.bias
        return self.layer.weight.to(dtype), None if bias is None else bias.to(dtype)
