"""The autoregressive teacher that ``--hint-teacher`` names: frozen, no part of the criterion."""

import os
from typing import Any, Dict

import torch
from fairseq import checkpoint_utils, models
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models.nat import FairseqNATModel
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from .decoder_states import DecoderPass, has_states, recorded
from .nat_outputs import Symbols


class HintTeacher:
    """An autoregressive Transformer that reads the targets of batches for another kind of model.

    It runs in evaluation mode and float32, whatever precision the training has. A plain object:
    as a module, it would be in every checkpoint of the criterion that holds it.
    """

    def __init__(self, path: str, task: Any):
        """Raises ValueError, which names the flag, where the checkpoint does not do."""
        self.given = f"--hint-teacher {path}"
        self.model: Any = self._load(path, task).float().eval().requires_grad_(False)

    @torch.no_grad()
    def __call__(self, sample: Dict[str, Any], symbols: Symbols, attention: bool) -> DecoderPass:
        """Its decoder's pass over the targets, less their start symbols.

        Place t of the pass is the one that predicts ``sample["target"][:, t + 1]``. Sources
        and targets of the batch begin with a start symbol, which the teacher has never seen: it
        reads padding there, so that its attention weights to it are 0.
        """
        source, target = sample["net_input"]["src_tokens"], sample["target"]
        source = source.masked_fill(source.eq(symbols.bos), symbols.pad)
        prefix = target[:, :-1].masked_fill(target[:, :-1].eq(symbols.bos), symbols.eos)
        prefix = prefix.masked_fill(target[:, 1:].eq(symbols.pad), symbols.pad)
        self._check_lengths(source, prefix)
        self.model.to(target.device)
        lengths = source.ne(symbols.pad).sum(1)
        off = torch.autocast(target.device.type, enabled=False)
        with off, recorded(self.model.decoder, attention) as recorder:
            self.model(source, lengths, prefix, features_only=True)
        return recorder.latest()

    def _check_lengths(self, source: Tensor, prefix: Tensor):
        limits = self.model.max_positions()
        for side, tokens, limit in zip(("source", "target"), (source, prefix), limits):
            if tokens.size(1) > limit:
                raise ValueError(
                    f"{self.given} reads {limit} {side} tokens at most, and a batch has "
                    f"{tokens.size(1)}: --max-{side}-positions {limit}, or another teacher"
                )

    def _load(self, path: str, task: Any) -> nn.Module:
        given = self.given
        if not os.path.isfile(path):
            raise ValueError(f"{given}: there is no such file")
        unlike = f"{given}: no checkpoint that fairseq-train saved"
        try:
            state = checkpoint_utils.load_checkpoint_to_cpu(path)
        except ValueError as err:  # of fairseq_fixes, which begins with the path
            raise ValueError(f"--hint-teacher {err}") from err
        except LookupError as err:  # weights and settings, but no counts
            raise ValueError(f"{unlike}: it lacks {err}") from err
        cfg = state.get("cfg")
        if cfg is None and state.get("args") is not None:
            cfg = convert_namespace_to_omegaconf(state["args"])
        if cfg is None:
            raise ValueError(f"{unlike}: it lacks its settings ('cfg' or 'args')")
        self._check_dictionaries(state["model"], task)
        try:
            with torch.random.fork_rng(devices=[]):  # initial weights are drawn for nothing
                model = models.build_model(cfg.model, task)
            model.load_state_dict(state["model"], strict=True, model_cfg=cfg.model)
        except Exception as err:  # a model that fairseq does not know here, or of other shapes
            reason = " ".join(str(err).split())
            name = getattr(cfg.model, "_name", None)
            raise ValueError(
                f"{given}: its model ({name}) cannot be built: {reason[:300]}"
            ) from err
        decoder = getattr(model, "decoder", None)
        attends = isinstance(decoder, TransformerDecoderBase) and all(
            getattr(layer, "encoder_attn", None) is not None for layer in decoder.layers
        )
        if isinstance(model, FairseqNATModel) or not attends:
            raise ValueError(
                f"{given}: an autoregressive Transformer is needed, not {type(model).__name__}"
            )
        if not has_states(decoder):  # as with --adaptive-softmax-cutoff
            raise ValueError(f"{given}: a decoder with layers and an output_projection is needed")
        return model

    def _check_dictionaries(self, weights: Dict[str, Tensor], task: Any):
        sides = ("encoder", "source"), ("decoder", "target")
        for part, side in sides:
            table = weights.get(f"{part}.embed_tokens.weight")
            wanted = len(getattr(task, f"{side}_dictionary"))
            if table is not None and len(table) != wanted:
                raise ValueError(
                    f"{self.given} knows {len(table)} {side} symbols, and the data here "
                    f"{wanted}: a teacher trained with the same dictionaries is needed"
                )
