"""``--criterion ctc_loss``: the likelihood of CTC (Graves et al., ICML 2006), torch's own."""

from fairseq.criterions import register_criterion

from .alignment_likelihood import AlignmentLikelihood
from .candidate_flags import SequenceCriterionConfig


@register_criterion("ctc_loss", dataclass=SequenceCriterionConfig)
class CTCLoss(AlignmentLikelihood):
    """Of ``--arch ctc_transformer``."""

    alignment = "ctc"
