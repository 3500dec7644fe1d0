"""What criterions share that look at several outputs of a model and at the reward of each."""

from dataclasses import dataclass, field
from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from fairseq.dataclass import ChoiceEnum
from torch import Tensor
from torch.nn import functional as F

from ..decoding.fairseq.beam import beam_outputs
from ..decoding.fairseq.candidates import decode, first_token
from ..decoding.fairseq.model_scores import Scores, unwrapped
from ..evaluation.metrics.sentence_bleu import SMOOTHINGS, sentence_bleu
from ..losses import random_numbers
from . import model_outputs
from .base import AUTOREGRESSIVE, Log, SequenceCriterion
from .candidate_flags import SequenceCriterionConfig, check_choices, check_factors
from .cross_entropy import cross_entropy, own_log_probs_of

REWARD_FLAGS = ("reward_smoothing", "reward_remove_bpe", "output_max_len_a", "output_max_len_b")
"""What makes outputs and their rewards."""
SOURCES = ("beam", "sample")


@dataclass
class RewardedConfig(SequenceCriterionConfig):
    reward_smoothing: ChoiceEnum(SMOOTHINGS) = field(  # type: ignore[valid-type]
        default="all",
        metadata={"help": "orders of the reward, sentence BLEU, that get one added: all, higher"},
    )
    reward_remove_bpe: str = field(
        default="@@ ",
        metadata={"help": "how pieces become the words of the reward: '@@ ', sentencepiece, none"},
    )
    output_max_len_a: float = field(
        default=1.2, metadata={"help": "outputs have at most a * source length + b tokens"}
    )
    output_max_len_b: int = field(default=10, metadata={"help": "see --output-max-len-a"})


@dataclass
class HypothesesConfig(RewardedConfig):
    hypotheses: int = field(default=4, metadata={"help": "outputs of each sentence"})
    hypotheses_from: ChoiceEnum(SOURCES) = field(  # type: ignore[valid-type]
        default="beam", metadata={"help": "beam search, or samples of the model"}
    )


def check_hypotheses(cfg: Any, least: int):
    """ValueError for flags of :class:`HypothesesConfig` that cannot be meant."""
    check_choices(cfg, [("hypotheses_from", SOURCES)])
    if cfg.hypotheses < least:
        raise ValueError(f"--hypotheses must be {least} or more, not {cfg.hypotheses}")


class Outputs(NamedTuple):
    """K outputs of each sentence, all (B, K, L): tokens, the decoder input that predicts them, and
    which are real."""

    tokens: Tensor
    prefix: Tensor
    mask: Tensor

    def chosen(self, places: Tensor) -> "Outputs":
        """Those at (B, J) places of each sentence."""
        index = places.unsqueeze(2).expand(-1, -1, self.tokens.size(2))
        return Outputs(*(part.gather(1, index) for part in self))

    def flat(self) -> "Outputs":
        """(B K, L), the outputs of a sentence together."""
        return Outputs(*(part.flatten(0, 1) for part in self))


class RewardedCriterion(SequenceCriterion):
    """A loss of outputs by their rewards, :meth:`reward_losses`. Validation is cross entropy.

    A subclass may have rewards of another kind: :meth:`rewards`.
    """

    kinds = (AUTOREGRESSIVE,)

    def __init__(self, cfg, task):
        super().__init__(cfg, task)
        self.dictionary = task.target_dictionary

    @classmethod
    def check_flags(cls, cfg):
        """Raise ValueError, which names the flag."""
        super().check_flags(cfg)
        check_factors(cfg, "output_max_len_a")
        check_choices(cfg, [("reward_smoothing", SMOOTHINGS)])
        if cfg.output_max_len_b < 1:
            raise ValueError(f"--output-max-len-b must be 1 or more, not {cfg.output_max_len_b}")

    @classmethod
    def validated(cls) -> str:
        """Validation is cross entropy."""
        return "loss|ce|nll_loss|ppl"

    def reward_losses(self, model, sample) -> Tuple[Tensor, Log, Optional[Scores]]:
        """(B,) losses, attached to the graph, sums to log, and the teacher-forced scores that
        :meth:`on_outputs` has given."""
        raise NotImplementedError

    def autoregressive(self, model, sample) -> Tuple[Tensor, Log]:
        """(B,) losses with their factors, and sums to log."""
        self.say_idle_flags(model, sample["net_input"])
        target, ntokens = sample["target"], sample["ntokens"]
        if not self.training or self.sequence_factor == 0:
            scores = model_outputs.run(model, sample["net_input"], self.vocabulary)
            ce, log = self._cross_entropy(scores, target, ntokens)
            return (self.ce_factor * ce if self.training else ce), log
        losses, log, forced = self.reward_losses(model, sample)
        log[self.name()] = losses.sum().detach()
        loss = self.sequence_factor * losses
        if forced is not None:
            ce, more = self._cross_entropy(forced, target, ntokens)
            loss, log = loss + self.ce_factor * ce, {**log, **more}
        return loss, log

    def _cross_entropy(self, scores: Scores, target: Tensor, ntokens) -> Tuple[Tensor, Log]:
        ce, nll = cross_entropy(scores, target, self.label_smoothing, self.padding_idx)
        return ce, {"ce": ce.sum().detach(), "nll": nll.sum().detach(), "nll_tokens": ntokens}

    # -- rewards -----------------------------------------------------------------------------

    def rewards(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """(N,) float32 rewards of (N, L) outputs beside (N, S) targets, both padded: sentence BLEU
        of words, between 0 and 1."""
        pairs = zip(self._words(tokens), self._words(targets))
        smoothing = str(self.cfg.reward_smoothing)
        found = [sentence_bleu(ours, theirs, smoothing) for ours, theirs in pairs]
        return torch.tensor(found, dtype=torch.float32, device=tokens.device)

    def rewards_of(self, outputs: Outputs, targets: Tensor) -> Tensor:
        """(B, K) rewards of all outputs."""
        count = outputs.tokens.size(1)
        found = self.rewards(outputs.tokens.flatten(0, 1), _repeated(targets, count))
        return found.view(len(targets), count)

    def _words(self, tokens: Tensor) -> List[List[str]]:
        bpe = None if self.cfg.reward_remove_bpe == "none" else self.cfg.reward_remove_bpe
        ignored = {self.padding_idx}
        texts = [
            self.dictionary.string(row, bpe, extra_symbols_to_ignore=ignored)
            for row in tokens.cpu()
        ]
        return [text.split() for text in texts]

    # -- outputs -----------------------------------------------------------------------------

    def limit(self, model, sample) -> Tensor:
        """(B,) the most tokens of an output."""
        lengths = sample["net_input"]["src_lengths"]
        limit = (self.cfg.output_max_len_a * lengths).floor().long() + self.cfg.output_max_len_b
        most = unwrapped(model).decoder.max_positions()
        return limit.clamp(max=int(min(most, self.task.cfg.max_target_positions)) - 1)

    def hypotheses(self, model, sample) -> Outputs:
        """What the flags of :class:`HypothesesConfig` ask for."""
        if str(self.cfg.hypotheses_from) == "sample":
            return self.samples(model, sample, self.cfg.hypotheses)
        lengths = self.cfg.output_max_len_a, self.cfg.output_max_len_b
        tokens = beam_outputs(model, sample, self.dictionary, self.cfg.hypotheses, *lengths)
        first = first_token(sample["net_input"]["prev_output_tokens"], self.padding_idx)
        first = first[:, None, None].expand(-1, tokens.size(1), 1)
        return Outputs(
            tokens, torch.cat([first, tokens[:, :, :-1]], 2), tokens.ne(self.padding_idx)
        )

    def samples(self, model, sample, count: int) -> Outputs:
        """Independent samples of each sentence."""
        seeds = self.seeds(sample)
        each = [random_numbers.fold(seeds, 1 + number) for number in range(count)]
        inputs = {k: _repeated(v, count) for k, v in sample["net_input"].items()}
        repeated = {"net_input": inputs, "target": _repeated(sample["target"], count)}
        found = decode(
            *(model, repeated, self.padding_idx, self.eos_idx),
            seeds=torch.stack(each, 1).flatten(),
            limit=_repeated(self.limit(model, sample), count),
        )
        width = max(1, int(found.mask.sum(1).max()))
        return Outputs(*(part[:, :width].unflatten(0, (-1, count)) for part in found))

    def on_outputs(self, model, sample, outputs: Outputs) -> Tuple[Tensor, Optional[Scores]]:
        """(B, K, L) log-probabilities in nats of the outputs' tokens, and scores of the target
        where cross entropy needs them: one forward, as a distributed wrapper allows one a
        backward."""
        prefix, count = outputs.prefix, outputs.prefix.size(1)
        forced = sample["net_input"]["prev_output_tokens"]
        if self.ce_factor > 0:
            width = max(prefix.size(2), forced.size(1))
            rows = [F.pad(x, (0, width - x.size(-1)), value=self.padding_idx) for x in
                    (prefix, forced.unsqueeze(1))]  # fmt: skip
            prefix, count = torch.cat(rows, 1), count + 1
        inputs = {k: _repeated(v, count) for k, v in sample["net_input"].items()}
        inputs["prev_output_tokens"] = prefix.flatten(0, 1)
        scores, theirs = model_outputs.run(model, inputs, self.vocabulary), None
        if self.ce_factor > 0:
            values = scores.values.unflatten(0, (-1, count))
            theirs = Scores(values[:, -1, : forced.size(1)], scores.normalized)
            ours = values[:, :-1, : outputs.prefix.size(2)].flatten(0, 1)
            scores = Scores(ours, scores.normalized)
        flat = outputs.flat()
        own = own_log_probs_of(scores, flat.tokens, flat.mask)
        return own.view(outputs.tokens.shape), theirs


def _repeated(value: Any, count: int) -> Any:
    """Every row ``count`` times, the copies together."""
    return value.repeat_interleave(count, 0) if torch.is_tensor(value) else value
