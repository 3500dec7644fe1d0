"""Flags of ``--criterion eisl`` that were set and change nothing, each said in a line."""

from typing import Any, Dict, Iterable, Iterator, List

from ._flags import EISLCriterionConfig

# What only some other model looks at.
_NON_AUTOREGRESSIVE = (
    "eisl_special",
    "eisl_steps",
    "crf_loss_factor",
    "mask_ins_loss_factor",
    "word_del_loss_factor",
)
_AUTOREGRESSIVE = ("train_decoding", "candidate_after_eos", "parallel_decoding", "output_layer")
# What makes EISL, and nothing where EISL has no part in the loss.
_EISL = (
    "ngram",
    "ngram_weight",
    "position_selection",
    "gumbel_temperature",
    "selection_on",
    "log_prob_floor",
    "ngram_sum",
    "eisl_special",
)
_FACTORS = {
    "word_crf": "crf_loss_factor",
    "mask_ins": "mask_ins_loss_factor",
    "word_del": "word_del_loss_factor",
}


def idle_flags(cfg: Any, model: Any, blocks: bool) -> Iterator[str]:
    """Lines on the flags without effect in the training of an autoregressive model.

    ``blocks``: whether the model's logits can be computed in blocks.
    """
    name = type(model).__name__
    yield from _lines(cfg, _NON_AUTOREGRESSIVE, f"with {name}, which is autoregressive")
    yield from _smoothing(cfg, cfg.ce_factor > 0)
    if cfg.ngram_factor == 0:
        flags = [*_EISL, *_AUTOREGRESSIVE]
        flags.remove("eisl_special")
        yield from _lines(cfg, flags, "with --ngram-factor 0")
        return
    yield from _selection(cfg)
    if str(cfg.train_decoding) == "teacher-forcing":
        why = "with --train-decoding teacher-forcing, which decodes nothing"
        yield from _lines(cfg, ["candidate_after_eos"], why)
    if str(cfg.output_layer) != "blocks":
        return
    if cfg.ce_factor > 0:
        why = f"with --ce-factor {cfg.ce_factor}, which needs whole logits"
        yield from _lines(cfg, ["output_layer"], why)
    elif not blocks:
        why = (
            f"with this {name}: its logits (or its distributed wrapper's) are not those of an "
            "untouched linear layer behind fairseq's own Transformer decoder"
        )
        yield from _lines(cfg, ["output_layer"], why)


def idle_nat_flags(cfg: Any, model: Any, outputs: Dict[str, Any], batch: int) -> Iterator[str]:
    """Lines on the flags without effect in the training of a non-autoregressive model.

    ``outputs`` are the model's own for a batch of ``batch`` sentences.
    """
    name = type(model).__name__
    yield from _lines(cfg, _AUTOREGRESSIVE, f"with {name}, which is not autoregressive")
    missing = [flag for output, flag in _FACTORS.items() if output not in outputs]
    yield from _lines(cfg, missing, f"with {name}, which has no such term")
    one_step = len(outputs["word_ins"]["tgt"]) == batch
    if one_step:
        yield from _lines(cfg, ["eisl_steps"], f"with {name}, which trains one step")
    if str(cfg.eisl_compat) == "released":
        flags = ["eisl_special"] if one_step else ["eisl_special", "eisl_steps"]
        yield from _lines(cfg, flags, "with --eisl-compat released")
    if cfg.ngram_factor == 0:
        yield from _lines(cfg, _EISL, "on the training with --ngram-factor 0")
        return
    others = not one_step and str(cfg.eisl_steps) == "first" and str(cfg.eisl_compat) == "none"
    yield from _smoothing(cfg, cfg.ce_factor > 0 or others)
    yield from _selection(cfg)


def _selection(cfg: Any) -> Iterator[str]:
    if str(cfg.position_selection) == "uniform":
        flags = ["gumbel_temperature", "selection_on"]
        yield from _lines(cfg, flags, "with --position-selection uniform")


def _smoothing(cfg: Any, cross_entropy: bool) -> Iterator[str]:
    if not cross_entropy:
        why = "on the training with --ce-factor 0: it is for the cross entropy part"
        yield from _lines(cfg, ["label_smoothing"], why)


def _lines(cfg: Any, names: Iterable[str], why: str) -> Iterator[str]:
    """One line on those of the flags that are not at their defaults, if any."""
    fields = EISLCriterionConfig.__dataclass_fields__
    given: List[str] = []
    for name in names:
        value = getattr(cfg, name)
        if str(value) != str(fields[name].default):
            flag = "--" + name.replace("_", "-")
            given.append(flag if value is True else f"{flag} {value}")
    if given:
        yield f"{', '.join(given)}: no effect {why}"
