"""What the likelihoods over latent alignments share as criterions."""

from .base import NON_AUTOREGRESSIVE, SequenceCriterion
from .latent_outputs import latent_likelihood
from .sequence_output import SequenceOutput


class AlignmentLikelihood(SequenceCriterion):
    """Minus the log-likelihood of the target in nats a token, over all alignments.

    A target that needs more slots than its source gives is skipped: it has no loss, and its share
    is logged (``too_long``, in percent).
    """

    kinds = (NON_AUTOREGRESSIVE,)
    is_likelihood = True
    alignment = ""
    """The kind of models that it is for: ctc or dag."""

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        if cfg.ce_factor > 0:
            raise ValueError(
                f"--ce-factor {cfg.ce_factor}: the loss of --criterion {cls.alignment}_loss is the "
                "likelihood already; leave it at 0"
            )

    def sequence_losses(self, output: SequenceOutput):
        """(B,) nats a token, and what the likelihood logs."""
        kind = None
        if output.alignment is not None:
            kind = "dag" if output.alignment.blank is None else "ctc"
        if kind != self.alignment:
            raise ValueError(
                f"--criterion {self.name()} is for --arch {self.alignment}_transformer alone"
            )
        found = latent_likelihood(output)
        return found.per_token(), found.log()
