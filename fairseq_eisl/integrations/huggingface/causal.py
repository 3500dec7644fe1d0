"""EISL on decoder-only models: ``EISLSFTTrainer`` is TRL's ``SFTTrainer``."""

import inspect
from dataclasses import dataclass
from typing import Any, Dict

import torch
from torch import Tensor
from trl import SFTConfig, SFTTrainer

from .arguments import EISLArguments, at_eos
from .candidates import Candidate, generated
from .loss_function import Items
from .prompts import Prompted, prompted
from .training import Batch, EISLTraining, Scored

# What a batch may hold; the rest would change what positions mean, or get lost.
_KNOWN = {"input_ids", "labels", "attention_mask", "token_type_ids", "use_cache"}


@dataclass
class EISLSFTConfig(EISLArguments, SFTConfig):
    """Those of ``SFTConfig``, and of :class:`EISLArguments`."""

    def __post_init__(self):
        super().__post_init__()
        self.check_eisl()
        for name, wrong in (
            ("packing", self.packing),
            ("eval_packing", self.eval_packing),
            ("padding_free", self.padding_free),
        ):
            if wrong:
                raise ValueError(
                    f"{name}=True: EISL is of sentences, which must not share a row; leave it away"
                )
        if self.loss_type != "nll":
            raise ValueError(f"loss_type={self.loss_type!r}: the loss is EISL; leave it away")


class EISLSFTTrainer(EISLTraining, SFTTrainer):
    """Trains decoder-only models with EISL on prompts and completions.

    The prompt is context, its completion the target: what ``labels`` say, one run of them in each
    row. The candidate is generated after the prompts, which are padded on the left, with positions
    that follow the attention mask. Text without a prompt is a completion of its first token.

    What is logged is what :class:`EISLTrainer` logs, and ``ngram_weights`` (of completions) what it
    is there.
    """

    config_name = "EISLSFTConfig"

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.aux_loss_enabled:
            raise ValueError(
                f"router_aux_loss_coef={self.router_aux_loss_coef}: the loss that balances experts "
                "is not added to EISL; set it to 0.0"
            )

    def compute_loss(
        self,
        model: Any,
        inputs: Dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Items = None,
    ) -> Any:
        """As of every trainer here; outputs are of the rows as they are, whose logits go with
        ``labels``."""
        loss = super().compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        if not return_outputs:
            return loss
        rows = {name: inputs[name] for name in ("input_ids", "attention_mask") if name in inputs}
        with torch.no_grad():
            return loss, model(**rows, use_cache=False)

    def read_batch(self, inputs: Dict[str, Any]) -> Batch:
        """Prompts and completions, apart."""
        other = sorted(set(inputs) - _KNOWN)
        if other:
            raise ValueError(f"{', '.join(other)}: EISLSFTTrainer cannot use this of a batch")
        parts = prompted(inputs["input_ids"], inputs["labels"], inputs.get("attention_mask"))
        return Batch(parts.targets, parts.target_mask, {"parts": parts})

    def scores_on(self, model: Any, batch: Batch, candidate: Candidate) -> Scored:
        """One forward on each prompt with the candidate after it."""
        parts: Prompted = batch.inputs["parts"]
        length = candidate.tokens.size(1)
        after = candidate.tokens.masked_fill(~candidate.mask, 0)[:, : max(0, length - 1)]
        ids = torch.cat([parts.prompts, after], 1)
        mask = torch.cat([parts.prompt_mask, torch.ones_like(after, dtype=torch.bool)], 1)
        takes = self._parameters()
        more: Dict[str, Any] = {}
        if "position_ids" in takes:
            more["position_ids"] = _positions(mask)
        if "logits_to_keep" in takes and length:
            more["logits_to_keep"] = length
        outputs = model(input_ids=ids, attention_mask=mask.long(), use_cache=False, **more)
        # The last token of a prompt says the first of its completion.
        logits = outputs.logits[:, outputs.logits.size(1) - length :]
        return Scored(candidate, logits, outputs)

    def candidate(self, batch: Batch, sample: bool) -> Candidate:
        """By ``model.generate`` after the prompts."""
        parts: Prompted = batch.inputs["parts"]
        inputs = {"input_ids": parts.prompts, "attention_mask": parts.prompt_mask.long()}
        given = parts.prompts.size(1)
        how: Dict[str, Any] = {"sample": sample, "at_eos": at_eos(self.args)}
        return generated(self.model, inputs, given=given, limit=batch.lengths, **how)

    def _parameters(self) -> Any:
        """What the forward of the model itself takes, below adapters."""
        model: Any = self.accelerator.unwrap_model(self.model)
        model = model.get_base_model() if hasattr(model, "peft_config") else model
        return inspect.signature(model.forward).parameters


def _positions(mask: Tensor) -> Tensor:
    """(B, L) positions that begin with 0 at the first real token."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)
