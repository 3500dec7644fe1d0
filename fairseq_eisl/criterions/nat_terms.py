"""Terms of the decoder's states beside any loss of a non-autoregressive model: NAT-REG, hints.

They stand beside the model's own outputs (:class:`.nat_outputs.StateLoss`), and so need nothing of
the criterion that trains the words.
"""

from typing import Any, Dict, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from ..decoding.fairseq.model_scores import unwrapped
from ..losses.hints import align_hint_loss, hidden_hint_loss
from ..losses.nat_regularization import similarity_loss
from . import nat_outputs
from .candidate_flags import flag_of
from .decoder_states import DecoderPass, has_states, recorded
from .hint_teacher import HintTeacher
from .nat_outputs import NATOutputs, StateLoss, Symbols

FACTORS = {
    "nat_reg": "nat_reg_factor",
    "hint_hidden": "hint_hidden_factor",
    "hint_align": "hint_align_factor",
}
"""The factor of each term, by the name that the term is logged under."""


class NATTerms:
    """The terms whose factors are above 0. A plain object, and so is the teacher in it.

    They are of all real slots, those too that the model is shown (CMLM, Levenshtein).
    """

    def __init__(self, cfg: Any, task: Any):
        self.cfg = cfg
        given = {name: getattr(cfg, flag, 0.0) for name, flag in FACTORS.items()}
        self.factors = {name: factor for name, factor in given.items() if factor > 0}
        self.teacher: Optional[HintTeacher] = None
        # Autoregressive models have no such terms, which is said when their training begins.
        if self._hints() and not getattr(task, "autoregressive", False):
            self.teacher = HintTeacher(cfg.hint_teacher, task)

    def _hints(self) -> bool:
        return "hint_hidden" in self.factors or "hint_align" in self.factors

    def outputs(
        self, model: Any, sample: Dict[str, Any], vocabulary: int, symbols: Symbols
    ) -> NATOutputs:
        """Those of :func:`.nat_outputs.nat_outputs`, the terms among the others.

        Raises:
            ValueError: the model does not fit the terms, or the teacher does not fit the model.
        """
        if not self.factors:
            return nat_outputs.nat_outputs(model, sample, vocabulary, symbols)
        attention = "hint_align" in self.factors
        decoder: Any = getattr(unwrapped(model), "decoder", None)
        if not has_states(decoder):
            raise self._unfit(model, "a decoder with layers and an output_projection")
        if self._hints() and getattr(decoder.layers, "p", 0) > 0:
            raise self._unfit(model, "every layer in every update (--decoder-layerdrop 0)")
        if attention and any(layer.encoder_attn is None for layer in decoder.layers):
            raise self._unfit(model, "encoder-decoder attention in every layer")
        with recorded(decoder, attention) as recorder:
            outputs = nat_outputs.nat_outputs(model, sample, vocabulary, symbols)
        found = recorder.words
        if found is None or found.top is None:
            raise self._unfit(model, "a decoder that calls its output_projection in training")
        if not outputs.has_own_slots():
            raise self._unfit(model, "a slot for every target token")
        if attention and torch.is_grad_enabled() and not found.attention[0].requires_grad:
            raise self._unfit(model, "gradients of attention (no --checkpoint-activations)")
        losses = self._losses(found, decoder, outputs, sample)
        terms = {name: StateLoss(loss, self.factors[name]) for name, loss in losses.items()}
        return outputs._replace(others={**outputs.others, **terms})

    def _losses(
        self, found: DecoderPass, decoder: Any, outputs: NATOutputs, sample: Dict[str, Any]
    ) -> Dict[str, Tensor]:
        """(B,) losses before their factors, by name. Of the first step, with several."""
        batch, symbols = outputs.batch, outputs.symbols
        targets, real = outputs.words.targets[:batch], outputs.output_mask()[:batch]
        losses: Dict[str, Tensor] = {}
        if "nat_reg" in self.factors:
            # Rows of the output layer: the embeddings of the decoder, where it shares them. The
            # input embeddings of words that are all masked would never be trained.
            words = F.embedding(targets, decoder.output_projection.weight.detach())
            assert found.top is not None
            losses["nat_reg"] = similarity_loss(found.top, words, real)
        if self.teacher is None:
            return losses
        known = self.teacher(sample, symbols, attention="hint_align" in self.factors)
        self._check_teacher(found, known)
        mask = real[:, 1:]  # the teacher predicts no start symbol
        if "hint_hidden" in self.factors:
            losses["hint_hidden"] = hidden_hint_loss(
                [states[:, 1:] for states in found.layers],
                known.layers,
                mask,
                student_threshold=self.cfg.hint_student_threshold,
                teacher_threshold=self.cfg.hint_teacher_threshold,
            )
        if "hint_align" in self.factors:
            losses["hint_align"] = align_hint_loss(
                [weights[:, :, 1:] for weights in found.attention],
                known.attention,
                mask,
                sample["net_input"]["src_tokens"].ne(symbols.pad),
            )
        return losses

    def _check_teacher(self, found: DecoderPass, known: DecoderPass):
        assert self.teacher is not None
        pairs = [("decoder layers", len(known.layers), len(found.layers))]
        if known.attention:
            theirs, ours = (each.attention[0].size(1) for each in (known, found))
            pairs.append(("decoder attention heads", theirs, ours))
        for what, theirs, ours in pairs:
            if theirs != ours:
                raise ValueError(
                    f"{self.teacher.given} has {theirs} {what}, and the model, where it predicts "
                    f"words, {ours}: a teacher with as many is needed"
                )

    def _unfit(self, model: Any, needed: str) -> ValueError:
        flags = " ".join(f"{flag_of(FACTORS[n])} {f}" for n, f in self.factors.items())
        return ValueError(f"{flags} needs {needed}; {type(unwrapped(model)).__name__} has none")
