"""Flags that were set and change nothing in a training, each group of them said in a line."""

from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from .candidate_flags import PART_FACTORS
from .nat_outputs import NATOutputs

CANDIDATES = (
    "train_decoding",
    "candidate_after_eos",
    "candidate_avoid_eos",
    "parallel_decoding",
    "share_encoder_output",
)
"""What criterions that decode candidates have for autoregressive models alone."""
_THRESHOLDS = ("hint_student_threshold", "hint_teacher_threshold")
_HINTS = ("hint_hidden_factor", "hint_align_factor")
_TERMS = ("nat_reg_factor", "hint_teacher", *_HINTS, *_THRESHOLDS)


class FlagGroups(NamedTuple):
    """A criterion's flags by what looks at them."""

    sequence: Tuple[str, ...] = ()
    """What makes the sequence loss, on every model."""
    autoregressive: Tuple[str, ...] = ()
    """What autoregressive models alone look at, besides the flags of candidates."""
    slots: Tuple[str, ...] = ()
    """What the slots of non-autoregressive models alone look at."""
    slot_steps: Tuple[str, ...] = ()
    """And those with several refinement steps in training alone."""
    weights: Tuple[str, ...] = ()
    """What weighs the cross entropy beside it as well, but no likelihood of alignments."""
    factor: str = ""
    """The factor of the sequence loss, where it has one."""

    def without_sequence(self, cfg: Any) -> bool:
        """Whether the sequence loss has no part in the training."""
        return bool(self.factor) and getattr(cfg, self.factor) == 0


class GivenFlags:
    """A criterion's configuration beside the defaults of its flags."""

    def __init__(self, cfg: Any, defaults: Dict[str, Any]):
        self.cfg, self.defaults = cfg, defaults

    def lines(self, names: Iterable[str], why: str) -> Iterator[str]:
        """One line on those of the flags that are not at their defaults, if any."""
        given: List[str] = []
        for name in names:
            value = getattr(self.cfg, name, self.defaults[name])  # old checkpoints lack new flags
            if str(value) != str(self.defaults[name]):
                flag = "--" + name.replace("_", "-")
                given.append(flag if value is True else f"{flag} {value}")
        if given:
            yield f"{', '.join(given)}: no effect {why}"

    def of_candidates(self) -> Tuple[str, ...]:
        """The flags of candidates, where the criterion has them."""
        return CANDIDATES if "train_decoding" in self.defaults else ()


def idle_flags(
    given: GivenFlags, groups: FlagGroups, model: Any, blocks: bool, shares: bool
) -> Iterator[str]:
    """Lines on the flags without effect in the training of an autoregressive model.

    ``blocks``: whether the model's logits can be computed in blocks. ``shares``: whether a
    candidate can be decoded in the midst of a forward.
    """
    name = type(model).__name__
    others = (*groups.slots, *groups.slot_steps, *PART_FACTORS.values(), *_TERMS)
    yield from given.lines(others, f"with {name}, which is autoregressive")
    yield from _smoothing(given, given.cfg.ce_factor > 0)
    if groups.without_sequence(given.cfg):
        flags = (*groups.sequence, *given.of_candidates(), *groups.autoregressive)
        yield from given.lines(flags, f"with --{groups.factor.replace('_', '-')} 0")
        return
    if not given.of_candidates():
        return
    if str(given.cfg.train_decoding) == "teacher-forcing":
        why = "with --train-decoding teacher-forcing, which decodes nothing"
        ends = "candidate_after_eos", "candidate_avoid_eos"
        yield from given.lines([*ends, "share_encoder_output"], why)
    elif not shares:
        why = f"with this {name}: what its forward does with its encoder is not known"
        yield from given.lines(["share_encoder_output"], why)
    if str(getattr(given.cfg, "output_layer", "whole")) != "blocks":
        return
    if given.cfg.ce_factor > 0:
        why = f"with --ce-factor {given.cfg.ce_factor}, which needs whole logits"
        yield from given.lines(["output_layer"], why)
    elif not blocks:
        why = (
            f"with this {name}: its logits (or its distributed wrapper's) are not those of an "
            "untouched linear layer behind fairseq's own Transformer decoder"
        )
        yield from given.lines(["output_layer"], why)


def idle_nat_flags(
    given: GivenFlags,
    groups: FlagGroups,
    model: Any,
    outputs: NATOutputs,
    first_step: bool,
    released: str,
) -> Iterator[str]:
    """Lines on the flags without effect in the training of a non-autoregressive model.

    ``outputs`` are the model's own for a batch. ``first_step``: the sequence loss is for the
    first of several refinement steps. ``released``: the flag, if any, that makes the loss another
    one, which has no choices for slots.
    """
    name = type(model).__name__
    why = f"with {name}, which is not autoregressive"
    yield from given.lines((*given.of_candidates(), *groups.autoregressive), why)
    missing = [flag for output, flag in PART_FACTORS.items() if output not in outputs.others]
    yield from given.lines(missing, f"with {name}, which has no such term")
    yield from _hints(given)
    one_step = len(outputs.words.targets) == outputs.batch
    if one_step:
        yield from given.lines(groups.slot_steps, f"with {name}, which trains one step")
    if released:
        flags = groups.slots if one_step else (*groups.slots, *groups.slot_steps)
        yield from given.lines(flags, f"with {released}")
    if groups.without_sequence(given.cfg):
        why = f"on the training with --{groups.factor.replace('_', '-')} 0"
        unweighted = () if outputs.has_own_slots() else groups.weights
        yield from given.lines((*groups.sequence, *groups.slots, *unweighted), why)
        return
    others = not one_step and first_step and not released
    yield from _smoothing(given, given.cfg.ce_factor > 0 or others)


def _hints(given: GivenFlags) -> Iterator[str]:
    if given.cfg.hint_hidden_factor > 0:
        return
    if given.cfg.hint_align_factor > 0:
        yield from given.lines(_THRESHOLDS, "with --hint-hidden-factor 0")
        return
    why = "with --hint-hidden-factor 0 and --hint-align-factor 0"
    yield from given.lines(("hint_teacher", *_THRESHOLDS), why)


def _smoothing(given: GivenFlags, cross_entropy: bool) -> Iterator[str]:
    if not cross_entropy:
        why = "on the training with --ce-factor 0: it is for the cross entropy part"
        yield from given.lines(["label_smoothing"], why)
