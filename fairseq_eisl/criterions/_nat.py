"""The outputs of a non-autoregressive model as losses: of sentences, or means as released."""

from dataclasses import replace
from typing import Any, Dict, NamedTuple, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..losses import (
    EISLOptions,
    EISLTerms,
    eisl_logit_terms,
    may_overwrite,
    random_numbers,
    slot_terms,
)
from ._model_outputs import unwrapped

WORDS = "word_ins"
"""The output that EISL is for, in all of fairseq's models."""
Outputs = Dict[str, Dict[str, Any]]


class Symbols(NamedTuple):
    """Ids of the special symbols that matter here."""

    bos: int
    pad: int
    eos: int


class NATLosses(NamedTuple):
    """Losses in nats before their factors: (B,) a sentence each, or scalar batch means."""

    eisl: Tensor
    ce: Optional[Tensor]
    """Cross entropy of the words, if it was asked for."""
    others: Dict[str, Tensor]
    """Every output but the words, by name."""
    terms: EISLTerms


def run(model, sample, vocabulary: int) -> Outputs:
    """The model's outputs on a batch, checked."""
    name = type(unwrapped(model)).__name__
    if "prev_target" not in sample:
        raise ValueError(
            f"--criterion eisl: {name} is not autoregressive; it needs --task "
            "noisy_translation_lev (or translation_lev), whose batches hold the decoder's input"
        )
    net_input = sample["net_input"]
    outputs = model(
        net_input["src_tokens"], net_input["src_lengths"], sample["prev_target"], sample["target"]
    )
    words = outputs.get(WORDS, {})
    logits, targets = words.get("out"), words.get("tgt")
    if (
        logits is None
        or logits.shape != (*targets.shape, vocabulary)
        or targets.shape[1:] != sample["target"].shape[1:]
        or targets.size(0) % sample["target"].size(0)
    ):
        raise ValueError(
            f"--criterion eisl needs a slot for every target token ({WORDS}: out (B, T, V) beside "
            f"tgt (B, T)); {name} gives none"
        )
    return outputs


def sentence_losses(
    outputs: Outputs,
    batch: int,
    symbols: Symbols,
    options: EISLOptions,
    specials: str,
    steps: str,
    seeds: Tensor,
    with_ce: bool,
) -> NATLosses:
    """Losses of each sentence: they depend neither on padding nor on the rest of the batch.

    iNAT stacks the rows of its refinement steps, which are averaged; ``steps="first"``
    gives EISL to the step that one-pass decoding uses and leaves the others their
    cross entropy. The backward overwrites the logits of the words where it may, but for
    NAT-CRF, whose likelihood needs them.
    """
    words = outputs[WORDS]
    logits, targets, predicted = words["out"], words["tgt"], _predicted(words, symbols)
    count = targets.size(0) // batch
    rows = batch if steps == "first" else batch * count
    terms = slot_terms(
        logits if rows == len(logits) else logits[:rows],  # a slice would copy its gradient
        targets[:rows],
        targets[:rows].ne(symbols.pad),
        predicted[:rows],
        _special(targets[:rows], symbols),
        specials,
        options,
        torch.cat([random_numbers.fold(seeds, step) for step in range(rows // batch)]),
        in_place=may_overwrite(logits)
        and all(output.get("loss") is None for output in outputs.values()),
    )
    eisl, ce = terms.total().view(-1, batch).sum(0), None
    if with_ce or rows < len(targets):
        each = _by_sentence(*_entries({**words, "mask": predicted})).view(count, batch)
        eisl = eisl + each[rows // batch :].sum(0)
        ce = each.mean(0) if with_ce else None
    others = {}
    for name, output in outputs.items():
        if output.get("loss") is not None:  # NAT-CRF's likelihood: a mean over sentences
            others[name] = output["loss"].float().expand(batch)
        elif name != WORDS:
            others[name] = _by_sentence(*_entries(output))
    return NATLosses(eisl / count, ce, others, terms.eisl)


def released_losses(outputs: Outputs, options: EISLOptions, seeds: Tensor) -> NATLosses:
    """Batch means as the authors' code takes them.

    Padding counts as target tokens and as slots, observed slots are trained, special
    symbols are words; only the cross entropy knows the model's mask. Orders are read off the
    padded length, see :func:`_released_orders`.
    """
    means = {}
    for name, output in outputs.items():
        if output.get("loss") is not None:
            means[name] = output["loss"].float()
        else:
            losses, mask = _entries(output)
            means[name] = losses.sum() / mask.sum().clamp(min=1)
    ce, words = means.pop(WORDS), outputs[WORDS]
    steps = words["tgt"].size(0) // seeds.size(0)
    seeds = torch.cat([random_numbers.fold(seeds, step) for step in range(steps)])
    options = _released_orders(options, words["tgt"].size(1))
    terms = eisl_logit_terms(words["out"], words["tgt"], None, None, options, seeds)
    return NATLosses(terms.total().mean(), ce, means, terms)


def _released_orders(options: EISLOptions, length: int) -> EISLOptions:
    """The options with what the authors' code makes of the orders for a padded length.

    Orders that come to the same n are one; where some are merged or do not fit, those that are
    left have equal weights.
    """
    found = [n if n > 0 else length + n for n in options.ngrams]
    first = [1 <= n <= length and n not in found[:i] for i, n in enumerate(found)]
    if all(first) or not any(first):  # none fits: the whole length, as without this
        return options
    share = sum(options.order_weights) / sum(first)
    return replace(options, weights=[share if used else 0.0 for used in first])


def _predicted(words: Dict[str, Any], symbols: Symbols) -> Tensor:
    """The slots that the model fills."""
    real = words["tgt"].ne(symbols.pad)
    return real if words.get("mask") is None else words["mask"] & real


def _special(targets: Tensor, symbols: Symbols) -> Tensor:
    return targets.eq(symbols.bos) | targets.eq(symbols.eos)


def _entries(output: Dict[str, Any]) -> Tuple[Tensor, Tensor]:
    """Label-smoothed cross entropy of every entry of an output, and which of them count."""
    logits, targets = output["out"].float(), output["tgt"]
    mask = output.get("mask")
    mask = torch.ones_like(targets, dtype=torch.bool) if mask is None else mask
    losses = F.cross_entropy(
        logits.flatten(0, -2),
        targets.masked_fill(~mask, 0).flatten(),
        reduction="none",
        label_smoothing=output.get("ls", 0.0),
    )
    return losses.view(targets.shape).masked_fill(~mask, 0.0), mask


def _by_sentence(losses: Tensor, mask: Tensor) -> Tensor:
    """(B, ...) entries to the (B,) means of those that count; zero where there are none."""
    losses, mask = losses.view(len(losses), -1), mask.view(len(mask), -1)
    return losses.sum(1) / mask.sum(1).clamp(min=1)


@torch.no_grad()
def first_pass(words: Dict[str, Any], batch: int, symbols: Symbols) -> Tuple[Tensor, Tensor]:
    """(B, T) what the first pass writes into the slots, and which of them hold words."""
    targets = words["tgt"][:batch]
    predicted = _predicted(words, symbols)[:batch]
    tokens = torch.where(predicted, words["out"][:batch].argmax(2), targets)
    return tokens, targets.ne(symbols.pad) & ~_special(targets, symbols)


@torch.no_grad()
def likelihood(words: Dict[str, Any], batch: int, symbols: Symbols) -> Tuple[Tensor, Tensor]:
    """NLL in nats of the tokens that the first pass predicts, and their number."""
    mask = _predicted(words, symbols)[:batch]
    losses, mask = _entries(
        {"out": words["out"][:batch], "tgt": words["tgt"][:batch], "mask": mask}
    )
    return losses.sum(), mask.sum()
