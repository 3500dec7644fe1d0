"""``--criterion dag_loss``: the likelihood of directed acyclic decoders (Huang et al., 2022)."""

from fairseq.criterions import register_criterion

from .alignment_likelihood import AlignmentLikelihood
from .candidate_flags import SequenceCriterionConfig


@register_criterion("dag_loss", dataclass=SequenceCriterionConfig)
class DAGLoss(AlignmentLikelihood):
    """Of ``--arch dag_transformer``."""

    alignment = "dag"
