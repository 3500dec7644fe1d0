"""``--criterion style_transfer``: rewriting in another style, without pairs (Tian, Hu and Yu,
2018), with the Edit-Invariant Sequence Loss between the rewritten sentence and its source."""

from dataclasses import dataclass, field
from typing import Any, Optional, Tuple

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum
from torch import Tensor
from torch.nn import functional as F

from ..decoding.fairseq.model_scores import Scores, unwrapped
from ..losses import eisl_logit_terms, random_numbers
from ..losses.content_words import content_loss
from ..losses.soft_tokens import FEEDBACKS, expected_nll
from .averages import Sums
from .base import AUTOREGRESSIVE, Log, SequenceCriterion
from .candidate_flags import (
    SequenceCriterionConfig,
    check_candidate_flags,
    check_choices,
    check_factors,
    flag_of,
)
from .cross_entropy import cross_entropy
from .eisl_flags import EISLLossConfig, loss_options
from .idle_flags import FlagGroups
from .sequence_output import SequenceOutput
from .transfer_scores import log_transfer_scores, transfer_counts

COMPATIBILITIES = ("none", "original")
PARTS = ("style", "fluency", "content", "eisl", "classifier", "language")


@dataclass
class StyleTransferCriterionConfig(EISLLossConfig, SequenceCriterionConfig):
    ce_factor: float = field(
        default=1.0,
        metadata={
            "help": "factor of the auto-encoding: the NLL of the sentence, summed over words"
        },
    )
    style_factor: float = field(
        default=2.0,
        metadata={"help": "factor of the classifier's cross entropy on the transferred sentence"},
    )
    fluency_factor: float = field(
        default=0.5,
        metadata={
            "help": "factor of the language model's NLL per word of the transferred sentence"
        },
    )
    content_factor: float = field(
        default=0.0,
        metadata={
            "help": "factor of the distance of the source's content words to the transferred "
            "sentence (needs --content-words; 0.1 in the paper of the model)"
        },
    )
    eisl_factor: float = field(
        default=0.0,
        metadata={
            "help": "factor of EISL between the transferred sentence and its source (0.5 in the "
            "paper of EISL)"
        },
    )
    pretrain_updates: int = field(
        default=0,
        metadata={"help": "updates at the start in which nothing is transferred"},
    )
    soft_temperature: float = field(
        default=1.0, metadata={"help": "temperature of the soft words after the pretraining"}
    )
    soft_temperature_decay: float = field(
        default=0.5,
        metadata={"help": "factor on it after each --soft-temperature-interval"},
    )
    soft_temperature_interval: int = field(
        default=0, metadata={"help": "updates, such as those of an epoch; 0: it stays"}
    )
    soft_temperature_min: float = field(
        default=0.001, metadata={"help": "temperature that it does not fall below"}
    )
    soft_feedback: ChoiceEnum(FEEDBACKS) = field(  # type: ignore[valid-type]
        default="straight-through",
        metadata={
            "help": "what the decoder reads after a soft word: the likeliest word with the soft "
            "word's gradient, the soft word, or the likeliest word without gradient"
        },
    )
    accuracy_goal: float = field(
        default=90.0,
        metadata={
            "help": "transfer_score of validation is the BLEU to the sources where this accuracy "
            "(%%, by the model's classifier) is reached, and otherwise what lacks, below 0"
        },
    )
    style_compat: ChoiceEnum(COMPATIBILITIES) = field(  # type: ignore[valid-type]
        default="none",
        metadata={
            "help": "original: the published program's losses, for comparison (softmax twice in "
            "the classifier's loss, the language model's softmax over time, no gradient of the "
            "content, with --soft-feedback argmax)"
        },
    )


@register_criterion("style_transfer", dataclass=StyleTransferCriterionConfig)
class StyleTransferCriterion(SequenceCriterion):
    """Auto-encoding, style, fluency and content of the transferred sentence, and EISL.

    The three optimisers of the original (generator, classifier, language model) are one here, over
    the sum of all losses: what the generator is trained on has no gradient in the classifier or the
    language model, which are constants there, and their own losses, on real sentences, have none in
    the generator. Adam steps each parameter by its own gradient alone, so this is the same but for
    ``--clip-norm`` (one norm for all) and for the order within an update: the generator is judged
    by classifier and language model as they were before it, not after.

    Sums over sentences; ``sample_size`` is their number.
    """

    kinds = (AUTOREGRESSIVE,)
    flag_groups = FlagGroups(
        sequence=(
            *("ngram", "ngram_weight", "position_selection", "gumbel_temperature"),
            *("selection_on", "log_prob_floor", "ngram_sum"),
        ),
        factor="eisl_factor",
    )
    own_averages = (*PARTS, "classified", "bleu", "accuracy", "transfer_score")

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.options = loss_options(cfg)
        self.original = str(cfg.style_compat) == "original"

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        check_candidate_flags(cfg)
        loss_options(cfg)
        check_factors(cfg, "style_factor", "fluency_factor", "content_factor", "eisl_factor")
        check_choices(cfg, [("soft_feedback", FEEDBACKS), ("style_compat", COMPATIBILITIES)])
        for name in ("soft_temperature", "soft_temperature_min", "soft_temperature_decay"):
            if not 0 < getattr(cfg, name) < float("inf"):
                raise ValueError(
                    f"{flag_of(name)} must be a number above 0, not {getattr(cfg, name)}"
                )
        for name in ("pretrain_updates", "soft_temperature_interval"):
            if getattr(cfg, name) < 0:
                raise ValueError(f"{flag_of(name)} must be 0 or more, not {getattr(cfg, name)}")
        if not 0 <= cfg.accuracy_goal <= 100:
            raise ValueError(f"--accuracy-goal is a percentage, 0 to 100, not {cfg.accuracy_goal}")
        if str(cfg.style_compat) == "original" and str(cfg.soft_feedback) != "argmax":
            raise ValueError("--style-compat original goes with --soft-feedback argmax")

    def temperature(self, update: int) -> float:
        """Of the soft words at an update.

        It begins after the pretraining, and is multiplied by the decay after every interval.
        """
        cfg = self.cfg
        since, every = max(0, update - cfg.pretrain_updates), cfg.soft_temperature_interval
        steps = since // every if every else 0
        return max(
            cfg.soft_temperature * cfg.soft_temperature_decay**steps, cfg.soft_temperature_min
        )

    def autoregressive(self, model, sample) -> Tuple[Tensor, Log]:
        """(B,) losses with their factors, and sums to log."""
        inner = unwrapped(model)
        if not hasattr(inner, "outputs") or not hasattr(inner, "classifier"):
            raise ValueError(
                f"--criterion style_transfer trains --arch style_transfer, not "
                f"{type(inner).__name__}"
            )
        self.say_idle_flags(model, sample["net_input"])
        content = self._content_mask(sample)
        update = inner.num_updates
        transfers = not self.training or update >= self.cfg.pretrain_updates
        seeds = self.seeds(sample)
        logits, extra = model(
            **sample["net_input"],
            content_mask=content,
            temperature=self.temperature(update) if transfers else None,
            seeds=random_numbers.fold(seeds, 1) if self.training else None,
            feedback=str(self.cfg.soft_feedback),
        )
        outputs, target = extra["outputs"], sample["target"]
        loss, log = self._real(logits, outputs, sample)
        if transfers:
            soft = outputs.soft
            output = SequenceOutput(
                targets=target,
                target_mask=target.ne(self.padding_idx),
                mask=soft.mask,
                seeds=random_numbers.fold(seeds, 2),
                scores=Scores(soft.logits, normalized=False),
            )
            parts = self._transferred(outputs, sample, content)
            if self.cfg.eisl_factor > 0 or not self.training:
                parts["eisl"] = self.sequence_losses(output)[0]
            for name, values in parts.items():
                factor = getattr(self.cfg, f"{name}_factor")
                if factor > 0:
                    loss = loss + factor * values
                log[name] = values.detach().sum()
            log["transferred_sentences"] = len(target)
        if not self.training:
            log.update(self._scores(inner, outputs, sample))
        return loss, log

    def _content_mask(self, sample) -> Optional[Tensor]:
        mask = sample.get("content_mask")
        if mask is None and self.cfg.content_factor > 0:
            raise ValueError(
                f"--content-factor {self.cfg.content_factor} needs --content-words: the task has "
                "to say which words are content"
            )
        return mask

    def _real(self, logits: Tensor, outputs, sample) -> Tuple[Any, Log]:
        """The losses on the real sentences: of the auto-encoder, the classifier and the language
        model, each with a gradient in its own parameters alone."""
        target, styles = sample["target"], sample["net_input"]["styles"]
        scores = Scores(logits, normalized=False)
        mean, nll = cross_entropy(scores, target, self.label_smoothing, self.padding_idx)
        words = target.ne(self.padding_idx).sum(1)
        classified = outputs.classified.float()  # of half precision, the logits alone are half
        classified = classified.softmax(1) if self.original else classified
        classifier = F.cross_entropy(classified, styles, reduction="none")
        language, _ = cross_entropy(
            Scores(outputs.language, normalized=False), target, 0.0, self.padding_idx
        )
        loss = self.ce_factor * mean * words + classifier + language
        right = outputs.classified.argmax(1).eq(styles).sum()
        return loss, {
            "ce": mean.sum().detach(),
            "nll": nll.sum().detach(),
            "nll_tokens": sample["ntokens"],
            "classifier": classifier.sum().detach(),
            "language": language.sum().detach(),
            "classified_right": right,
        }

    def _transferred(self, outputs, sample, content: Optional[Tensor]) -> dict:
        """(B,) losses of the transferred sentences by name, but for EISL."""
        soft, wanted = outputs.soft, 1 - sample["net_input"]["styles"]
        # The original takes the softmax of the language model over time, not over words.
        axis = 1 if self.original else 2
        judged = outputs.soft_classified.float()
        judged = judged.softmax(1) if self.original else judged
        parts = {
            "style": F.cross_entropy(judged, wanted, reduction="none"),
            "fluency": expected_nll(
                soft.weights, outputs.soft_language.float().log_softmax(axis), soft.mask
            ),
        }
        if content is not None:
            parts["content"] = content_loss(
                outputs.soft_vectors, soft.mask, outputs.content_vectors, content
            )
            if self.original:
                parts["content"] = parts["content"].detach()
        return parts

    def sequence_losses(self, output: SequenceOutput) -> Tuple[Tensor, Log]:
        """(B,) EISL in nats of the sources' n-grams at the positions of the transferred
        sentences."""
        assert output.scores is not None
        options = self.options if self.training else self.options.without_noise()
        terms = eisl_logit_terms(
            output.scores.values,
            output.targets,
            output_mask=output.mask,
            target_mask=output.target_mask,
            options=options,
            generator=output.seeds,
        )
        return terms.total(), {}

    @torch.no_grad()
    def _scores(self, model, outputs, sample) -> Log:
        """What validation says of the transferred sentences, in words."""
        soft, target = outputs.soft, sample["target"]
        styles = sample["net_input"]["styles"]
        right = model.classifier(soft.tokens, soft.mask).argmax(1).ne(styles).sum()
        words = soft.mask & soft.tokens.ne(self.eos_idx)
        source = target.ne(self.padding_idx) & target.ne(self.eos_idx)
        return {
            "transferred": len(target),
            "transferred_right": right,
            "accuracy_goal": self.cfg.accuracy_goal * len(target),  # logs are summed
            **transfer_counts(soft.tokens, words, target, source),
        }

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """The parts of the loss in nats (content: in the unit of the word vectors), and what
        validation says of the transferred sentences."""
        sentences = sums.total("sample_size")
        for name in PARTS:
            if sums.keys(name):
                real = name in ("classifier", "language")
                count = sentences if real else sums.total("transferred_sentences")
                sums.average_if_any(name, sums.total(name), count)
        right = 100.0 * sums.total("classified_right")
        sums.average("classified", right, sentences, round=2)
        log_transfer_scores(sums)
