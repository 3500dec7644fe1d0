"""``--criterion policy_gradient``: sampled sequences and the BLEU of each as its reward."""

import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum
from torch import Tensor
from torch.nn import functional as F

from ..decoding.fairseq.candidates import decode
from ..decoding.fairseq.model_scores import Scores, unwrapped
from ..evaluation.metrics.sentence_bleu import SMOOTHINGS, sentence_bleu
from ..losses import random_numbers
from ..losses.policy_gradient import NORMS, baselines, policy_gradient_loss
from ..losses.token_weights import own_log_probs
from . import model_outputs
from .averages import Sums
from .base import AUTOREGRESSIVE, Log, SequenceCriterion
from .candidate_flags import (
    SequenceCriterionConfig,
    check_choices,
    check_factors,
)
from .cross_entropy import cross_entropy
from .idle_flags import FlagGroups

# A running mean of rewards would have to be the same on all workers and in checkpoints.
BASELINES = ("self_critical", "rloo", "mean", "none")


@dataclass
class PolicyGradientConfig(SequenceCriterionConfig):
    pg_factor: float = field(
        default=1.0, metadata={"help": "factor of the policy gradient in the loss"}
    )
    pg_samples: int = field(default=1, metadata={"help": "samples of each sentence"})
    pg_baseline: ChoiceEnum(BASELINES) = field(  # type: ignore[valid-type]
        default="self_critical",
        metadata={
            "help": "what is taken from a reward: that of the greedy output, the mean of the "
            "sentence's other samples (rloo) or of all of them, or nothing"
        },
    )
    pg_norm: ChoiceEnum(NORMS) = field(  # type: ignore[valid-type]
        default="sequence",
        metadata={"help": "sum (sequence) or mean (token) of a sample's log-probabilities"},
    )
    pg_smoothing: ChoiceEnum(SMOOTHINGS) = field(  # type: ignore[valid-type]
        default="all",
        metadata={"help": "orders of the reward, sentence BLEU, that get one added: all, higher"},
    )
    pg_remove_bpe: str = field(
        default="@@ ",
        metadata={"help": "how pieces become the words of the reward: '@@ ', sentencepiece, none"},
    )
    pg_max_len_a: float = field(
        default=1.2, metadata={"help": "samples have at most a * source length + b tokens"}
    )
    pg_max_len_b: int = field(default=10, metadata={"help": "see --pg-max-len-a"})


class _Samples(NamedTuple):
    """(B, K, L) sampled tokens, the decoder input that predicts them, and which are real."""

    tokens: Tensor
    prefix: Tensor
    mask: Tensor


@register_criterion("policy_gradient", dataclass=PolicyGradientConfig)
class PolicyGradientCriterion(SequenceCriterion):
    """REINFORCE: samples that score better than a baseline become more likely.

    Validation is cross entropy. A subclass may have rewards of another kind: :meth:`rewards`.
    """

    kinds = (AUTOREGRESSIVE,)
    flag_groups = FlagGroups(
        sequence=(
            *("pg_samples", "pg_baseline", "pg_norm", "pg_smoothing", "pg_remove_bpe"),
            *("pg_max_len_a", "pg_max_len_b"),
        ),
        factor="pg_factor",
    )

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.count = cfg.pg_samples
        self.baseline, self.norm = str(cfg.pg_baseline), str(cfg.pg_norm)
        self.dictionary = task.target_dictionary

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_factors(cfg, "pg_max_len_a")
        choices = ("pg_baseline", BASELINES), ("pg_norm", NORMS), ("pg_smoothing", SMOOTHINGS)
        check_choices(cfg, choices)
        least = 2 if str(cfg.pg_baseline) == "rloo" else 1
        if cfg.pg_samples < least:
            raise ValueError(
                f"--pg-samples must be {least} or more with --pg-baseline {cfg.pg_baseline}, "
                f"not {cfg.pg_samples}"
            )
        if cfg.pg_max_len_b < 1:
            raise ValueError(f"--pg-max-len-b must be 1 or more, not {cfg.pg_max_len_b}")

    @classmethod
    def validated(cls) -> str:
        """Validation is cross entropy."""
        return "loss|ce|nll_loss|ppl"

    def autoregressive(self, model, sample) -> Tuple[Tensor, Log]:
        """(B,) losses with their factors, and sums to log."""
        self.say_idle_flags(model, sample["net_input"])
        if not self.training or self.sequence_factor == 0:
            scores = model_outputs.run(model, sample["net_input"], self.vocabulary)
            ce, log = self._cross_entropy(scores, sample["target"], sample["ntokens"])
            return (self.ce_factor * ce if self.training else ce), log
        samples = self._samples(model, sample)
        target = sample["target"]
        rewards = self.rewards(samples.tokens.flatten(0, 1), self._repeated(target, self.count))
        rewards = rewards.view(len(target), self.count)
        greedy = None
        if self.baseline == "self_critical":
            limit = self._limit(model, sample)
            best = decode(model, sample, self.padding_idx, self.eos_idx, limit=limit)
            greedy = self.rewards(best.tokens, target)
        advantages = rewards - baselines(rewards, self.baseline, greedy)
        scores, forced = self._on_samples(model, sample, samples)
        tokens, mask = samples.tokens.flatten(0, 1), samples.mask.flatten(0, 1)
        if scores.normalized:
            own = scores.values.gather(2, tokens.unsqueeze(2)).squeeze(2)
        else:
            own = own_log_probs(scores.values, tokens, mask)
        own = own.view(samples.tokens.shape)
        losses = policy_gradient_loss(own, samples.mask, advantages, self.norm)
        log = self._statistics(rewards, greedy, advantages, samples)
        log[self.name()] = losses.sum().detach()
        loss = self.sequence_factor * losses
        if forced is not None:
            ce, more = self._cross_entropy(forced, target, sample["ntokens"])
            loss, log = loss + self.ce_factor * ce, {**log, **more}
        return loss, log

    def rewards(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """(N,) float32 rewards of (N, L) outputs beside (N, S) targets, both padded: sentence BLEU
        of words, between 0 and 1."""
        pairs = zip(self._words(tokens), self._words(targets))
        smoothing = str(self.cfg.pg_smoothing)
        found = [sentence_bleu(ours, theirs, smoothing) for ours, theirs in pairs]
        return torch.tensor(found, dtype=torch.float32, device=tokens.device)

    def _words(self, tokens: Tensor) -> List[List[str]]:
        bpe = None if self.cfg.pg_remove_bpe == "none" else self.cfg.pg_remove_bpe
        ignored = {self.padding_idx}
        texts = [
            self.dictionary.string(row, bpe, extra_symbols_to_ignore=ignored)
            for row in tokens.cpu()
        ]
        return [text.split() for text in texts]

    def _limit(self, model, sample) -> Tensor:
        """(B,) the most tokens of a sample."""
        lengths = sample["net_input"]["src_lengths"]
        limit = (self.cfg.pg_max_len_a * lengths).floor().long() + self.cfg.pg_max_len_b
        most = unwrapped(model).decoder.max_positions()
        return limit.clamp(max=int(min(most, self.task.cfg.max_target_positions)) - 1)

    @staticmethod
    def _repeated(value: Any, count: int) -> Any:
        """Every row ``count`` times, the copies together."""
        return value.repeat_interleave(count, 0) if torch.is_tensor(value) else value

    def _samples(self, model, sample) -> _Samples:
        seeds, count = self.seeds(sample), self.count
        each = [random_numbers.fold(seeds, 1 + number) for number in range(count)]
        inputs = {k: self._repeated(v, count) for k, v in sample["net_input"].items()}
        repeated = {"net_input": inputs, "target": self._repeated(sample["target"], count)}
        found = decode(
            *(model, repeated, self.padding_idx, self.eos_idx),
            seeds=torch.stack(each, 1).flatten(),
            limit=self._repeated(self._limit(model, sample), count),
        )
        width = max(1, int(found.mask.sum(1).max()))
        parts = (part[:, :width].unflatten(0, (-1, count)) for part in found)
        return _Samples(*parts)

    def _on_samples(self, model, sample, samples: _Samples) -> Tuple[Scores, Optional[Scores]]:
        """Scores of the samples, and of the target where cross entropy needs them: one forward,
        as a distributed wrapper allows one a backward."""
        prefix, count = samples.prefix, self.count
        forced = sample["net_input"]["prev_output_tokens"]
        if self.ce_factor > 0:
            width = max(prefix.size(2), forced.size(1))
            rows = [F.pad(x, (0, width - x.size(-1)), value=self.padding_idx) for x in
                    (prefix, forced.unsqueeze(1))]  # fmt: skip
            prefix, count = torch.cat(rows, 1), count + 1
        inputs = {k: self._repeated(v, count) for k, v in sample["net_input"].items()}
        inputs["prev_output_tokens"] = prefix.flatten(0, 1)
        scores = model_outputs.run(model, inputs, self.vocabulary)
        if self.ce_factor == 0:
            return scores, None
        values = scores.values.unflatten(0, (-1, count))
        sampled = values[:, :-1, : samples.prefix.size(2)].flatten(0, 1)
        parts = sampled, values[:, -1, : forced.size(1)]
        ours, theirs = (Scores(part, scores.normalized) for part in parts)
        return ours, theirs

    def _cross_entropy(self, scores: Scores, target: Tensor, ntokens) -> Tuple[Tensor, Log]:
        ce, nll = cross_entropy(scores, target, self.label_smoothing, self.padding_idx)
        return ce, {"ce": ce.sum().detach(), "nll": nll.sum().detach(), "nll_tokens": ntokens}

    @torch.no_grad()
    def _statistics(
        self, rewards: Tensor, greedy: Optional[Tensor], advantages: Tensor, samples: _Samples
    ) -> Log:
        """Sums over samples."""
        ends = samples.tokens.eq(self.eos_idx).any(2)
        log: Dict[str, Any] = {
            "rewards": rewards.sum(),
            "samples": rewards.numel(),
            "advantages": advantages.sum(),
            "advantage_squares": advantages.square().sum(),
            "sample_tokens": samples.mask.sum(),
            "samples_cut": (~ends).sum(),
        }
        if greedy is not None:
            log["rewards_greedy"], log["greedy"] = greedy.sum(), greedy.numel()
        return log

    @classmethod
    def log_own_averages(cls, sums: Sums):
        """Rewards (0 to 1), the spread of the advantages, lengths in tokens, and the percentage
        of samples that were cut at the most tokens."""
        count = sums.total("samples")
        sums.average_if_any("reward", sums.total("rewards"), count, round=4)
        greedy = sums.total("rewards_greedy")
        sums.average_if_any("reward_greedy", greedy, sums.total("greedy"), round=4)
        if count > 0:
            mean = float(sums.total("advantages")) / count
            variance = float(sums.total("advantage_squares")) / count - mean**2
            sums.average("advantage_std", math.sqrt(max(0.0, variance)) * count, count, round=4)
            sums.average("sample_length", sums.total("sample_tokens"), count, round=2)
            sums.average("cut", 100.0 * sums.total("samples_cut"), count, round=2)
