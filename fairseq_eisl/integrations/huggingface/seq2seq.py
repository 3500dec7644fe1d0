"""EISL on encoder-decoder models: ``EISLTrainer`` is a ``Seq2SeqTrainer``."""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from ...losses import IGNORE_INDEX
from .arguments import EISLArguments, at_eos
from .candidates import Candidate, generated
from .training import Batch, EISLTraining, Scored


@dataclass
class EISLConfig(EISLArguments, Seq2SeqTrainingArguments):
    """Those of ``Seq2SeqTrainingArguments``, and of :class:`EISLArguments`."""

    def __post_init__(self):
        super().__post_init__()
        self.check_eisl()


class EISLTrainer(EISLTraining, Seq2SeqTrainer):
    """Trains BART, T5, Marian and the like with EISL.

    In a training step the model generates a candidate without gradient, in evaluation mode and as
    long as its target at most; one forward on it gives the logits that the loss is of. ``labels``
    are as stock models have them: not shifted, -100 where there is none.

    Logged beside the loss (nats): ``eisl`` and that of each order (``eisl_2``; ``eisl_short``
    where a sentence is shorter than every order), ``nll`` of the teacher-forced target where it is
    computed, ``candidate_length``, ``target_length``, ``repetition`` (% of candidate tokens that
    repeat the one before) and ``selection_entropy``; in evaluation the same, without noise in the
    selection. ``eval_loss`` is a mean over sentences of the losses of their batches, as every
    trainer's; ``eval_eisl`` and ``eval_nll`` are means over labels.

    ``ngram_weights``, beside the arguments of ``Seq2SeqTrainer``, says how much the n-grams of
    targets count in training, such as a :class:`fairseq_eisl.losses.CleanTextWeights` (noisy
    targets, and a text without noise).

    With ``ngram_factor=0, ce_factor=1`` it trains with cross entropy, rightly scaled under
    gradient accumulation. Stock BART and T5 do not: their loss is a mean over a part of the batch,
    which the stock trainer takes for one over all of it, so that the gradient is as many times too
    long as there are parts.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if not getattr(self.model.config, "is_encoder_decoder", False):
            raise ValueError(
                "model: EISLTrainer is for encoder-decoder models; EISLSFTTrainer is for "
                f"decoder-only ones such as {type(self.model).__name__}"
            )

    def read_batch(self, inputs: Dict[str, Any]) -> Batch:
        """Labels are the targets; the decoder's inputs follow from them."""
        labels = inputs["labels"]
        rest = {name: value for name, value in inputs.items() if name != "labels"}
        return Batch(labels, labels.ne(IGNORE_INDEX), rest)

    def scores_on(self, model: Any, batch: Batch, candidate: Candidate) -> Scored:
        """One forward of encoder and decoder."""
        if candidate.tokens is batch.targets:
            before = batch.inputs.get("decoder_input_ids")
            if before is None:
                before = self._from_labels(batch.targets)
        else:
            before = torch.cat([self._start(batch.targets), candidate.tokens[:, :-1]], 1)
            before = before[:, : candidate.tokens.size(1)]
        outputs = model(**_of_encoder(batch.inputs), decoder_input_ids=before, use_cache=False)
        return Scored(candidate, outputs.logits, outputs)

    def candidate(self, batch: Batch, sample: bool) -> Candidate:
        """By ``model.generate``."""
        inputs = _of_encoder(batch.inputs)
        how: Dict[str, Any] = {"sample": sample, "at_eos": at_eos(self.args)}
        return generated(self.model, inputs, given=1, limit=batch.lengths, **how)

    def _from_labels(self, labels: Tensor) -> Tensor:
        """The decoder's inputs that go with labels, as the model makes them itself."""
        model = self.accelerator.unwrap_model(self.model)
        if not hasattr(model, "prepare_decoder_input_ids_from_labels"):
            raise ValueError(
                f"decoder_input_ids: {type(model).__name__} does not make them from labels; have "
                "the collator make them"
            )
        return model.prepare_decoder_input_ids_from_labels(labels=labels)

    def _start(self, targets: Tensor) -> Tensor:
        """(B, 1) the symbol that ``generate`` starts from."""
        own = self.model.generation_config
        start = own.decoder_start_token_id
        start = own.bos_token_id if start is None else start
        return targets.new_full((len(targets), 1), start)

    def prediction_step(
        self,
        model: Any,
        inputs: Dict[str, Any],
        prediction_loss_only: bool,
        ignore_keys: Optional[list] = None,
        **gen_kwargs: Any,
    ) -> Tuple[Any, Any, Any]:
        """As ``Seq2SeqTrainer`` does it, which with ``predict_with_generate`` would have the
        model's own loss."""
        if not self.args.predict_with_generate or prediction_loss_only:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        labels, loss = inputs.get("labels"), None
        if labels is not None:
            loss, _, _ = super().prediction_step(model, dict(inputs), True, ignore_keys)
            labels = self._prepare_inputs({"labels": labels})["labels"]
        rest = {k: v for k, v in inputs.items() if k != "labels"}
        if labels is not None:  # what was made of labels would be the beginning of the outputs
            rest = _of_encoder(rest)
        _, outputs, _ = super().prediction_step(model, rest, False, ignore_keys, **gen_kwargs)
        return loss, outputs, labels


def _of_encoder(inputs: Dict[str, Any]) -> Dict[str, Any]:
    """What is not the decoder's."""
    return {name: value for name, value in inputs.items() if not name.startswith("decoder_")}
