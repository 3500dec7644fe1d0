"""``--criterion style_classification``: which style a real sentence has."""

from fairseq.criterions import FairseqCriterion, register_criterion
from torch.nn import functional as F

from .averages import Sums
from .base import AUTOREGRESSIVE


@register_criterion("style_classification")
class StyleClassificationCriterion(FairseqCriterion):
    """Cross entropy in nats of the (B, 2) logits of a classifier (``--arch style_classifier``),
    summed over sentences; ``sample_size`` is their number."""

    kinds = (AUTOREGRESSIVE,)

    @classmethod
    def validated(cls) -> str:
        """A regular expression of what validation logs."""
        return "loss|classified"

    def forward(self, model, sample, reduce=True):
        """Loss, number of sentences, and sums to log."""
        logits, styles = model(**sample["net_input"]), sample["net_input"]["styles"]
        if not hasattr(logits, "dim") or logits.dim() != 2 or logits.size(1) != 2:
            raise ValueError("--criterion style_classification trains --arch style_classifier")
        loss = F.cross_entropy(logits, styles, reduction="sum" if reduce else "none")
        log = {
            "loss": loss.detach().sum(),
            "classified_right": logits.argmax(1).eq(styles).sum(),
            "ntokens": sample["ntokens"],
            "nsentences": len(styles),
            "sample_size": len(styles),
        }
        return loss, len(styles), log

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Averages over all workers: the loss in nats, and the percentage that is right."""
        sums = Sums(logging_outputs)
        sentences = sums.total("sample_size")
        sums.average("loss", sums.total("loss"), sentences)
        sums.average("classified", 100.0 * sums.total("classified_right"), sentences, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """All logged values are sums."""
        return True
