"""``--criterion token_weighted``: cross entropy that weights tokens by how likely they are."""

from dataclasses import dataclass, field

from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum

from ..losses.token_weights import WEIGHTINGS, TokenWeighting, weighted_loss
from .base import SequenceCriterion
from .candidate_flags import SequenceCriterionConfig, check_choices
from .clean_text import FLAGS as CLEAN_TEXT_FLAGS
from .clean_text import CleanTextConfig, check_clean_text_flags
from .cross_entropy import own_log_probs_of
from .idle_flags import FlagGroups
from .sequence_output import SequenceOutput

_NUMBERS = {
    "tailr": ("tailr_gamma", "tailr_min"),
    "mixce": ("mixce_factor",),
    "gold": ("gold_min",),
    "error_norm": ("error_norm_threshold",),
    "convex": ("convex_power",),
}


@dataclass
class TokenWeightedConfig(CleanTextConfig, SequenceCriterionConfig):
    token_weighting: ChoiceEnum(WEIGHTINGS) = field(  # type: ignore[valid-type]
        default="tailr",
        metadata={
            "help": "weight of a token of probability p: tailr (p / (g + (1 - g) p)), dft (p), "
            "mixce (e + (1 - e) p), gold (max(p, u)), error_norm (1 where the norm of "
            "probabilities - target is small, else 0), none (1, as for --clean-text alone); or "
            "convex: -exp(k mean log p) a sentence"
        },
    )
    tailr_gamma: float = field(
        default=0.1, metadata={"help": "g of tailr, in [0, 1]; 0 is cross entropy"}
    )
    tailr_min: float = field(default=0.3, metadata={"help": "least weight of tailr, in [0, 1]"})
    mixce_factor: float = field(default=0.5, metadata={"help": "e of mixce, in [0, 1]"})
    gold_min: float = field(default=0.1, metadata={"help": "u of gold, in [0, 1]"})
    error_norm_threshold: float = field(
        default=1.3,
        metadata={"help": "tokens whose norm is not below it count nothing (0 to 1.41)"},
    )
    convex_power: float = field(default=3.0, metadata={"help": "k of convex, above 0"})


def _weighting(cfg) -> TokenWeighting:
    numbers = {name: getattr(cfg, name) for names in _NUMBERS.values() for name in names}
    try:
        return TokenWeighting(str(cfg.token_weighting), **numbers)
    except ValueError as err:
        name, _, rest = str(err).partition(" ")
        raise ValueError(f"--{name.replace('_', '-')} {rest}") from None


@register_criterion("token_weighted", dataclass=TokenWeightedConfig)
class TokenWeightedCriterion(SequenceCriterion):
    """Teacher-forced, on any model; of a non-autoregressive one, the slots that it fills.

    The loss of a sentence is a mean over its tokens, and that of a batch over its sentences.
    """

    flag_groups = FlagGroups(
        sequence=(
            "token_weighting",
            *(name for names in _NUMBERS.values() for name in names),
            *CLEAN_TEXT_FLAGS,
        )
    )

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.weighting = _weighting(cfg)

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_choices(cfg, [("token_weighting", WEIGHTINGS)])
        _weighting(cfg)
        check_clean_text_flags(cfg)

    def idle_lines(self):
        """Numbers of the other weightings."""
        kind = self.weighting.kind
        names = [n for other, names in _NUMBERS.items() if other != kind for n in names]
        yield from self.given.lines(names, f"with --token-weighting {kind}")

    def sequence_losses(self, output: SequenceOutput):
        """(B,) weighted NLL per token in nats; nothing more to log."""
        output.need_slots(self.name())
        assert output.scores is not None
        mask, values = output.target_mask, output.scores.values
        if output.slots is not None:
            mask = mask & output.slots.predicted
        own = own_log_probs_of(output.scores, output.targets, mask)
        weights = self.ngram_weights(output.targets)
        also = None if weights is None else weights.of_tokens(output.target_mask)
        return weighted_loss(own, mask, self.weighting, values, also), {}
