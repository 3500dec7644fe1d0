"""``--criterion loss_truncation``: cross entropy without the sentences of the highest losses."""

import logging
from dataclasses import dataclass, field
from typing import Any, Dict, Tuple

from fairseq.criterions import register_criterion
from torch import Tensor

from ..losses.loss_truncation import LossWindow
from .base import Log, SequenceCriterion
from .candidate_flags import SequenceCriterionConfig
from .cross_entropy import own_log_probs_of
from .idle_flags import FlagGroups
from .sequence_output import SequenceOutput
from .workers import gathered

logger = logging.getLogger(__name__)
_LOSSES = "sentence_losses"


@dataclass
class LossTruncationConfig(SequenceCriterionConfig):
    truncation_fraction: float = field(
        default=0.4, metadata={"help": "share of the sentences that is left out, in [0, 1)"}
    )
    truncation_window: int = field(
        default=10000, metadata={"help": "sentences whose losses say what is high"}
    )
    truncation_warmup: int = field(
        default=10000,
        metadata={"help": "sentences of plain cross entropy before anything is left out"},
    )
    truncation_interval: int = field(
        default=10000, metadata={"help": "sentences after which the threshold is computed anew"}
    )


def _window(cfg) -> LossWindow:
    try:
        return LossWindow(
            cfg.truncation_fraction,
            size=cfg.truncation_window,
            warmup=cfg.truncation_warmup,
            interval=cfg.truncation_interval,
        )
    except ValueError as err:
        name, _, rest = str(err).partition(" ")
        name = {"size": "window"}.get(name, name)
        raise ValueError(f"--truncation-{name} {rest}") from None


@register_criterion("loss_truncation", dataclass=LossTruncationConfig)
class LossTruncationCriterion(SequenceCriterion):
    """Teacher-forced, on any model. A sentence whose mean loss of a token is at or above the
    threshold counts nothing, neither its words nor its length; gradients are means over the
    sentences that are kept, which is what ``sample_size`` counts. Validation is cross entropy.

    The losses of the last sentences are those of all workers, and kept in checkpoints.
    """

    flag_groups = FlagGroups(
        sequence=(
            *("truncation_fraction", "truncation_window"),
            *("truncation_warmup", "truncation_interval"),
        )
    )

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.window = _window(cfg)
        self.told = False

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        _window(cfg)
        if cfg.ce_factor > 0:
            raise ValueError(
                f"--ce-factor {cfg.ce_factor}: loss_truncation is cross entropy itself; leave the "
                "flag away, or a smaller share out (--truncation-fraction)"
            )

    def sequence_losses(self, output: SequenceOutput) -> Tuple[Tensor, Log]:
        """(B,) NLL per token in nats."""
        output.need_slots(self.name())
        assert output.scores is not None
        mask = output.target_mask
        if output.slots is not None:
            mask = mask & output.slots.predicted
        own = own_log_probs_of(output.scores, output.targets, mask)
        losses = -own.sum(1) / mask.sum(1).clamp(min=1)
        return losses, {_LOSSES: losses.detach()}

    def forward(self, model, sample, reduce=True):
        """As every criterion's; in training without the sentences of high losses."""
        loss, size, log = super().forward(model, sample, reduce=False)
        losses = log.pop(_LOSSES)
        losses = losses.view(-1, len(loss)).mean(0)  # of the refinement steps of iNAT
        if self.training:
            self._tell()
            self.window.note(gathered(losses[:0] if self.is_dummy else losses))
            kept = self.window.below(losses)
            loss = loss.masked_fill(~kept, 0.0)
            count = int(kept.sum())
            log.update(loss=loss.detach().sum(), sample_size=count, entries=size)
            log["truncated"] = size - count
            log[self.name()] = losses.masked_fill(~kept, 0.0).sum()
            size = count
        return (loss.sum() if reduce else loss), size, log

    def _tell(self):
        if not self.told:
            self.told = True
            left = self.cfg.truncation_warmup - self.window.seen
            if left > 0:
                logger.info(
                    f"loss truncation: plain cross entropy for the next {left} sentences "
                    "(--truncation-warmup)"
                )

    def kept_state(self) -> Dict[str, Any]:
        """What checkpoints keep of it."""
        return self.window.state_dict()

    def load_kept_state(self, state: Dict[str, Any]):
        """Go on from :meth:`kept_state`."""
        self.window.load_state_dict(state)

    @classmethod
    def log_own_averages(cls, sums):
        """The percentage of sentences that were left out."""
        if sums.keys("truncated"):
            sums.average("truncated", 100.0 * sums.total("truncated"), sums.total("nsentences"))
