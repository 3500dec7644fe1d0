"""Candidates by ``model.generate``, whose caches are its own business."""

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

import torch
from torch import Tensor

# What would bend the distribution, end the outputs or search otherwise.
_ASIDE = (
    *("min_p", "top_h", "epsilon_cutoff", "eta_cutoff", "guidance_scale", "watermarking_config"),
    *("exponential_decay_length_penalty", "stop_strings", "max_time", "penalty_alpha"),
    *("dola_layers", "diversity_penalty", "num_beam_groups", "constraints", "force_words_ids"),
    *("prompt_lookup_num_tokens", "token_healing", "use_mtp"),
)


class Candidate(NamedTuple):
    """(B, T) int64 tokens that a model says, and (B, T) bool which of them count."""

    tokens: Tensor
    mask: Tensor


@torch.no_grad()
def generated(
    model: Any,
    inputs: Dict[str, Tensor],
    *,
    given: int,
    limit: Tensor,
    sample: bool,
    at_eos: str = "end",
) -> Candidate:
    """Greedy or sampled outputs of a model in evaluation mode, each as long as its target at most.

    Of the model's own settings for generation, the special tokens count, and which tokens it may
    say; not its beams, penalties and lengths.

    Args:
        model: with ``generate`` and ``generation_config``; its mode is as before afterwards.
        inputs: of ``generate``.
        given: how many tokens of what ``generate`` returns are not generated: 1 for the start
            symbol of a decoder beside an encoder, else the width of the prompts.
        limit: (B,) int64 the most tokens of each candidate.
        sample: draw from the model's distribution, with torch's global generator.
        at_eos: what an end symbol does, one of :data:`fairseq_eisl.decoding.AT_EOS`.
    """
    longest = max(1, int(limit.max()))
    mode, own = model.training, model.generation_config
    ends = _ids(own.eos_token_id)
    config, more = _config(own, given, longest, sample), {}
    aside = [*_ASIDE, *(["eos_token_id"] if at_eos == "go_on" else [])]
    if at_eos == "avoid" and ends:
        more["logits_processor"] = [_NoEndBefore(given + limit - 1, ends)]
    model.eval()
    try:
        with _set_aside(own, aside):
            tokens = model.generate(**inputs, generation_config=config, **more)
    finally:
        model.train(mode)
    ends = [] if at_eos == "go_on" else ends
    tokens = tokens[:, given : given + longest]
    return Candidate(tokens, counted(tokens, limit, ends))


@contextlib.contextmanager
def _set_aside(own: Any, names: Sequence[str]) -> Iterator[None]:
    """Without these settings of a model's own within the block: in another ``GenerationConfig`` a
    None stands for them. In place, as wrappers (PEFT's) hand the object on to the model in them."""
    before = {name: getattr(own, name) for name in names if getattr(own, name, None) is not None}
    try:
        for name in before:
            setattr(own, name, None)
        yield
    finally:
        for name, value in before.items():
            setattr(own, name, value)


class _NoEndBefore:
    """Of ``generate``'s processors of scores: no end symbol within the first (B,) tokens."""

    def __init__(self, least: Tensor, ends: List[int]):
        self.least, self.ends = least, ends

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        early = self.least.to(scores.device).gt(input_ids.size(1))
        scores = scores.clone()
        scores[:, self.ends] = scores[:, self.ends].masked_fill(early[:, None], -torch.inf)
        return scores


def counted(tokens: Tensor, limit: Tensor, ends: List[int]) -> Tensor:
    """(B, T) bool: the tokens up to the first end symbol, and within the limit.

    >>> tokens = torch.tensor([[5, 2, 1], [5, 6, 7]])
    >>> counted(tokens, torch.tensor([3, 2]), [2]).tolist()
    [[True, True, False], [True, True, False]]
    """
    within = torch.arange(tokens.size(1), device=tokens.device) < limit.unsqueeze(1)
    end = torch.zeros_like(within)
    for token in ends:
        end = end | tokens.eq(token)
    return within & (end.long().cumsum(1) - end.long()).eq(0)


def _config(own: Any, given: int, longest: int, sample: bool) -> Any:
    """What ``generate`` is to do; what is None here it takes from the model's own settings."""
    from transformers import GenerationConfig

    ends = _ids(own.eos_token_id)
    config = GenerationConfig(
        do_sample=sample,
        num_beams=1,
        num_return_sequences=1,
        min_length=0,
        repetition_penalty=1.0,
        encoder_repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        encoder_no_repeat_ngram_size=0,
        use_cache=True,
        return_dict_in_generate=False,
    )
    if sample:
        config.temperature, config.top_k, config.top_p, config.typical_p = 1.0, 0, 1.0, 1.0
    # An end that is forced at the last position would be the candidate's: it comes one later.
    steps = longest + (own.forced_eos_token_id is not None)
    # Either is a limit, and generate complains about both.
    if own.max_new_tokens is None:
        config.max_length = given + steps
    else:
        config.max_new_tokens = steps
    if own.min_new_tokens is not None:
        config.min_new_tokens = 0
    pad = own.pad_token_id
    if pad is None and ends:
        config.pad_token_id = ends[0]
    elif pad is not None and pad not in ends:  # no model says it
        config.suppress_tokens = [*(own.suppress_tokens or []), pad]
    return config


def _ids(given: Any) -> List[int]:
    """One id, several or none, as a list."""
    if given is None:
        return []
    return [int(given)] if isinstance(given, int) else [int(one) for one in given]
