"""Decoding with fairseq's non-autoregressive models: lengths that fit, candidates, reranking."""

from contextlib import ExitStack, contextmanager
from typing import Any, List, Optional

import torch
from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
from fairseq.models.nat import (
    CMLMNATransformerModel,
    IterNATransformerModel,
    NATransformerModel,
)
from torch import Tensor

LENGTH_CANDIDATES = ("contiguous", "top-k")
_REFINEMENTS = 9  # ten passes, the usual setting of the models that refine


def is_one_pass(model) -> bool:
    """Whether a model is made for a single pass, so that refinement harms it (NAT, NAT-CRF)."""
    refines = (CMLMNATransformerModel, IterNATransformerModel)
    return isinstance(model, NATransformerModel) and not isinstance(model, refines)


def validation_iterations(model) -> int:
    """Refinement iterations (``--iter-decode-max-iter``) that a model is meant for."""
    return 0 if is_one_pass(model) else _REFINEMENTS


class RefinementGenerator(IterativeRefinementGenerator):
    """fairseq's generator, in which no length can leave the position table.

    Args:
        length_candidates: with ``beam_size`` b, the lengths around the most likely one
            (``contiguous``) or the b most likely ones (``top-k``).
        remove_repeats: drop every token that repeats the one before it.
        max_length: most tokens of a hypothesis, bos and eos included (and never more
            than the model has positions for).

    The others are the stock arguments.
    """

    def __init__(
        self,
        *args,
        length_candidates: str = "contiguous",
        remove_repeats: bool = False,
        max_length: Optional[int] = None,
        **options,
    ):
        super().__init__(*args, **options)
        if length_candidates not in LENGTH_CANDIDATES:
            choices = ", ".join(LENGTH_CANDIDATES)
            raise ValueError(
                f"--length-candidates: {length_candidates!r} is unknown; choose from {choices}"
            )
        if self.beam_size < 1:
            raise ValueError(f"--iter-decode-with-beam must be 1 or more, not {self.beam_size}")
        self.length_candidates, self.remove_repeats = length_candidates, remove_repeats
        self.max_length = max_length

    @torch.no_grad()
    def generate(self, models, sample, prefix_tokens=None, constraints=None):
        """Hypotheses of a batch, as the stock generator returns them."""
        own = models[:-1] if self.reranking else models
        if self.reranking and len(models) < 2:
            raise ValueError(
                "--iter-decode-with-external-reranker needs two models, --path NAT.pt:AR.pt"
            )
        if self.beam_size > 1 and not models[0].allow_length_beam:
            raise ValueError(
                f"--iter-decode-with-beam {self.beam_size}: {type(models[0]).__name__} predicts no "
                "length, so there are no length candidates"
            )
        bounded = [_Bounded(model, self) for model in own]
        with ExitStack() as stack:
            for model in own:
                stack.enter_context(_guarded(model, bounded[0].limit))
            found = super().generate(
                [*bounded, *models[len(own) :]], sample, prefix_tokens, constraints
            )
        if self.remove_repeats:
            for hypotheses in found:
                for hypothesis in hypotheses:
                    _remove_repeats(hypothesis)
        return found

    def rerank(self, reranker, finalized, encoder_input, beam_size):
        """Score hypotheses by an autoregressive model: mean log-probability (nats) a token.

        The sources of non-autoregressive models begin with bos, the reranker's do not.
        """
        source, lengths = encoder_input
        source, lengths = _without_bos(source, lengths, self.bos, self.pad)
        repeat = torch.arange(len(source), device=source.device).repeat_interleave(beam_size)
        encoded = reranker.encoder(source, src_lengths=lengths)
        encoded = reranker.encoder.reorder_encoder_out(encoded, repeat)
        rows = [hypothesis[0]["tokens"] for hypothesis in finalized]
        width = max(len(row) for row in rows)
        tokens = torch.full((len(rows), width), self.pad, device=source.device, dtype=torch.long)
        real = torch.zeros_like(tokens, dtype=torch.bool)
        for i, row in enumerate(rows):
            tokens[i, : len(row)], real[i, : len(row)] = row, True
        # The model may itself write pad somewhere inside; only our own padding is not scored.
        target, real = tokens[:, 1:], real[:, 1:]
        prefix = tokens[:, :-1].clone()
        prefix[:, 0] = self.eos  # autoregressive models start from eos
        logits = reranker.decoder(prefix, encoder_out=encoded)
        log_probs = reranker.get_normalized_probs(logits, log_probs=True)
        scores = log_probs.gather(2, target.unsqueeze(2)).squeeze(2).float()
        means = scores.masked_fill(~real, 0.0).sum(1) / real.sum(1).clamp(min=1)
        for hypothesis, score in zip(finalized, means):
            hypothesis[0]["score"] = score.cpu()
        return finalized


class _Bounded:
    """A model whose first lengths are clamped; everything else is the model's own."""

    def __init__(self, model, generator: RefinementGenerator):
        self._model = model
        self._generator = generator
        limits = [model.max_positions()[1], model.decoder.max_positions(), generator.max_length]
        self.limit = int(min(limit for limit in limits if limit))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def enable_ensemble(self, models):
        self._model.enable_ensemble([getattr(model, "_model", model) for model in models])

    def initialize_output_tokens(self, encoder_out, src_tokens):
        out = self._model.initialize_output_tokens(encoder_out, src_tokens)
        self._encoder_out = encoder_out
        self._source = src_tokens
        lengths = out.output_tokens.ne(self._model.pad).sum(1)
        if int(lengths.max()) <= self.limit:
            return out
        return self._blank(out, lengths)

    def regenerate_length_beam(self, decoder_out, beam_size):
        lengths = decoder_out.output_tokens.ne(self._model.pad).sum(1, keepdim=True)
        if self._generator.length_candidates == "top-k":
            lengths = self._most_likely(beam_size)
        else:
            steps = torch.arange(beam_size, device=lengths.device) - beam_size // 2
            lengths = lengths + steps
        return self._blank(decoder_out, lengths.flatten())

    def _most_likely(self, count: int) -> Tensor:
        """(B, count) the most likely lengths that fit, best first."""
        decoder = self._model.decoder
        scores = decoder.forward_length(normalize=True, encoder_out=self._encoder_out)
        lengths = torch.arange(scores.size(1), device=scores.device).expand(scores.shape)
        if decoder.pred_length_offset:
            source = self._source.ne(self._model.pad).sum(1, keepdim=True)
            lengths = lengths - 128 + source
        fits = (lengths >= 2) & (lengths <= self.limit)
        best = scores.masked_fill(~fits, -float("inf")).topk(count, 1).indices
        return lengths.gather(1, best)

    def _blank(self, out, lengths: Tensor):
        """``bos unk .. unk eos`` rows of (N,) lengths, clamped to what the model can hold."""
        model = self._model
        lengths = lengths.clamp(min=2, max=self.limit)
        place = torch.arange(int(lengths.max()), device=lengths.device).unsqueeze(0)
        tokens = torch.full_like(place, model.unk).expand(len(lengths), -1).clone()
        tokens[place.ge(lengths.unsqueeze(1))] = model.pad
        tokens[:, 0] = model.bos
        tokens.scatter_(1, lengths.unsqueeze(1) - 1, model.eos)
        scores = out.output_scores.new_zeros(tokens.shape)
        return out._replace(output_tokens=tokens, output_scores=scores)


@contextmanager
def _guarded(model, limit: int):
    """While it lasts, a Levenshtein model inserts no more placeholders than fit.

    It deletes, inserts placeholders and fills them in one method; what its decoder
    says is all that can be held back from outside. Attention is held back altogether:
    stock code mixes up the rows of it where only some sentences change, and dies.
    """
    decoder = model.decoder
    if not hasattr(decoder, "forward_mask_ins"):
        yield
        return
    names = ("forward_word_del", "forward_mask_ins", "forward_word_ins")
    stock = {name: getattr(decoder, name) for name in names}

    def without_attention(name):
        return lambda *args, **options: (stock[name](*args, **options)[0], None)

    def bounded(*args, prev_output_tokens, **options):
        scores, _ = stock["forward_mask_ins"](
            *args, prev_output_tokens=prev_output_tokens, **options
        )
        return _bound_insertions(scores, prev_output_tokens.ne(model.pad), limit), None

    for name in stock:
        setattr(decoder, name, bounded if name == "forward_mask_ins" else without_attention(name))
    try:
        yield
    finally:
        for name in stock:
            delattr(decoder, name)


def _bound_insertions(scores: Tensor, real: Tensor, limit: int) -> Tensor:
    """(B, T - 1, N) scores of inserting 0..N-1 placeholders after each token but the last,
    changed where the most likely numbers would make a row of ``real`` (B, T) too long."""
    wanted = scores.argmax(2).masked_fill(~real[:, 1:], 0)
    room = (limit - real.sum(1, keepdim=True)).clamp(min=0)
    before = wanted.cumsum(1) - wanted
    allowed = torch.minimum(wanted, (room - before).clamp(min=0))
    cut = allowed.ne(wanted).unsqueeze(2)
    keep = torch.zeros_like(scores, dtype=torch.bool).scatter_(2, allowed.unsqueeze(2), True)
    return scores.masked_fill(cut & ~keep, -float("inf"))


def _without_bos(source: Tensor, lengths: Tensor, bos: int, pad: int):
    """The same sources without their first token, if all of them begin with bos."""
    rows = [row[row.ne(pad)] for row in source]
    if not all(len(row) > 1 and int(row[0]) == bos for row in rows):
        return source, lengths
    out = source.new_full((source.size(0), source.size(1) - 1), pad)
    for i, row in enumerate(rows):
        out[i, : len(row) - 1] = row[1:]
    return out, lengths - 1


def _remove_repeats(hypothesis: dict):
    """Keep the first of equal neighbours; scores of tokens stay beside their tokens."""
    entries: List[dict] = [hypothesis, *hypothesis.get("history", [])]
    for entry in entries:
        tokens = entry["tokens"]
        keep = torch.ones_like(tokens, dtype=torch.bool)
        keep[1:] = tokens[1:] != tokens[:-1]
        entry["tokens"] = tokens[keep]
        for name in ("positional_scores", "hypo_attn", "alignment"):
            if entry.get(name) is not None:
                entry[name] = entry[name][keep]
