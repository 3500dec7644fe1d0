"""Decoding with fairseq's non-autoregressive models: lengths that fit, candidates, reranking."""

from contextlib import ExitStack
from typing import Any, Dict, List, Optional

import torch
from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
from fairseq.models.nat import (
    CMLMNATransformerModel,
    FairseqNATModel,
    IterNATransformerModel,
    NATransformerModel,
)
from torch import Tensor

from .blanks import (
    check_length_factor,
    check_predicts_length,
    drop_blanks,
    drop_repeats,
    stretched,
    unwritten,
)
from .decoder_methods import held_back
from .model_scores import unwrapped

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
        length_factor: multiplies the number of words of every length that is tried (1 or above).
        blank: id of a symbol that is dropped after decoding, before repeats are; None for none.
        search: further arguments of ``forward_decoder``, of models that take some.
        max_length: most tokens of a hypothesis, bos and eos included (and never more
            than the models have positions for).

    The others are the stock arguments.
    """

    adaptive: bool
    reranking: bool

    def __init__(
        self,
        *args,
        length_candidates: str = "contiguous",
        remove_repeats: bool = False,
        max_length: Optional[int] = None,
        length_factor: float = 1.0,
        blank: Optional[int] = None,
        search: Optional[Dict[str, Any]] = None,
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
        check_length_factor("--length-factor", length_factor)
        self.length_candidates, self.remove_repeats = length_candidates, remove_repeats
        self.max_length, self.length_factor, self.blank = max_length, length_factor, blank
        self.search = search or {}

    @torch.no_grad()
    def generate(self, models, sample, prefix_tokens=None, constraints=None):
        """Hypotheses of a batch, as the stock generator returns them."""
        models = [unwrapped(model) for model in models]
        self._check(models)
        own, reranker = (models[:-1], models[-1]) if self.reranking else (models, None)
        limit = self._limit(own, reranker)
        choice = self.length_candidates, self.length_factor
        given: List[Any] = [_Bounded(model, limit, *choice, self.search) for model in own]
        with ExitStack() as stack:
            stack.callback(setattr, self, "adaptive", self.adaptive)
            stack.callback(setattr, self, "reranking", self.reranking)
            if self.beam_size > 1:
                # Stock compares the candidates' scores in numpy, which takes none from a GPU.
                # Those of a reranker pass through ``rerank``, so let all of them.
                given.append(reranker or OwnScores())
                self.reranking = True
            if isinstance(own[0], CMLMNATransformerModel):
                # It masks its least likely words again after each pass but the last. Stock takes
                # two equal outputs for the end, and would return one with its masks.
                self.adaptive = False
            for context in held_back(own, limit, self):
                stack.enter_context(context)
            found = super().generate(given, sample, prefix_tokens, constraints)
        for hypothesis in (hypothesis for hypotheses in found for hypothesis in hypotheses):
            if self.blank is not None:
                drop_blanks(hypothesis, self.blank)
            if self.remove_repeats:
                drop_repeats(hypothesis)
        return found

    def _check(self, models):
        flag = "--iter-decode-with-external-reranker"
        if self.reranking and len(models) < 2:
            raise ValueError(f"{flag} needs two models, --path NAT.pt:AR.pt")
        if self.reranking and self.beam_size < 2:
            raise ValueError(
                f"{flag} chooses among length candidates; it needs --iter-decode-with-beam 2 or "
                f"more, not {self.beam_size}"
            )
        if self.reranking and isinstance(models[-1], FairseqNATModel):
            raise ValueError(
                f"{flag}: the last model of --path must be autoregressive; "
                f"{type(models[-1]).__name__} is not"
            )
        own = models[: len(models) - int(self.reranking)]
        for model in own:
            name = type(model).__name__
            if not isinstance(model, FairseqNATModel):
                raise ValueError(
                    f"--path: {name} is autoregressive; decode it with --task noisy_translation"
                )
            if self.beam_size > 1 and not model.allow_length_beam:
                raise ValueError(
                    f"--iter-decode-with-beam {self.beam_size}: {name} predicts no length, so "
                    "there are no length candidates"
                )
            check_predicts_length(model, self.length_factor)
            if len(own) > 1 and not model.allow_ensemble:
                raise ValueError(f"--path: {name} decodes alone, not in an ensemble of {len(own)}")

    def _limit(self, own, reranker) -> int:
        """Most tokens of a hypothesis."""
        limits = [self.max_length]
        for model in own:
            limits += [model.max_positions()[1], model.decoder.max_positions()]
        if reranker is not None:
            # It reads eos and the words. A model is free to write a word in place of bos or eos.
            limits.append(reranker.max_positions()[1] - 1)
        return int(min(limit for limit in limits if limit is not None))

    def rerank(self, reranker, finalized, encoder_input, beam_size):
        """Score hypotheses by an autoregressive model: mean log-probability (nats) a token.

        What is scored is what a reader gets to see, and the end: the words without any bos,
        eos, pad or blank, of which a non-autoregressive model may write some in the midst, and
        one eos. Its sources begin with bos, the reranker's do not.
        """
        if isinstance(reranker, OwnScores):
            scores = torch.stack([hypotheses[0]["score"] for hypotheses in finalized])
        else:
            source, lengths = encoder_input
            source, lengths = _without_bos(source, lengths, self.bos, self.pad)
            repeat = torch.arange(len(source), device=source.device).repeat_interleave(beam_size)
            encoded = reranker.encoder(source, src_lengths=lengths)
            encoded = reranker.encoder.reorder_encoder_out(encoded, repeat)
            special = source.new_tensor(self._no_words())
            rows = [hypotheses[0]["tokens"] for hypotheses in finalized]
            rows = [row[~torch.isin(row, special)] for row in rows]
            target = source.new_full((len(rows), 1 + max(map(len, rows))), self.pad)
            for i, row in enumerate(rows):
                target[i, : len(row)] = row
                target[i, len(row)] = self.eos
            # Autoregressive models start from eos. They never look ahead, so that what comes
            # after the end of a shorter hypothesis does not matter.
            prefix = target.roll(1, dims=1)
            prefix[:, 0] = self.eos
            output = reranker.decoder(prefix, encoder_out=encoded)
            log_probs = reranker.get_normalized_probs(output, log_probs=True)
            scores = log_probs.gather(2, target.unsqueeze(2)).squeeze(2).float()
            real = target.ne(self.pad)
            scores = scores.masked_fill(~real, 0.0).sum(1) / real.sum(1)
        scores = scores.float()
        scores = scores.masked_fill(self._worse(finalized, beam_size, scores), -float("inf"))
        for hypotheses, score in zip(finalized, scores.cpu()):
            hypotheses[0]["score"] = score
        return finalized

    def _no_words(self) -> List[int]:
        """Symbols that a reader does not get to see."""
        blank = [] if self.blank is None else [self.blank]
        return [self.bos, self.eos, self.pad, *blank]

    def _worse(self, finalized, beam_size: int, scores: Tensor) -> Tensor:
        """(B * beam,) bool, the candidates that must not be chosen whatever they score.

        One without a word (bos, eos, blanks) is certain of all its tokens, and would beat every
        translation that has some. Where no candidate of a sentence has a word, they stay. One
        without any token has no mean.
        """
        special = self._no_words()
        empty = [
            all(token in special for token in hypotheses[0]["tokens"].tolist())
            for hypotheses in finalized
        ]
        without = torch.tensor(empty, device=scores.device).view(-1, beam_size)
        worse = without & ~without.all(1, keepdim=True)
        return worse.flatten() | scores.isnan()


class OwnScores:
    """Stands in for a reranker where candidates keep the scores that they have."""

    def eval(self):
        return self


class _Bounded:
    """A model whose first lengths are clamped; everything else is the model's own.

    Args:
        limit: most tokens of a hypothesis.
        candidates: how a length beam chooses, one of ``LENGTH_CANDIDATES``.
        factor: what the words of a length are multiplied by.
        search: further arguments of the model's ``forward_decoder``.
    """

    def __init__(self, model, limit: int, candidates: str, factor: float, search: Dict[str, Any]):
        self._model, self._limit, self._search = model, limit, search
        self._candidates, self._factor = candidates, factor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def enable_ensemble(self, models):
        self._model.enable_ensemble([model._model for model in models])

    def forward_encoder(self, encoder_input):
        out = self._model.forward_encoder(encoder_input)
        # An ensemble keeps the states of all layers. Nobody needs them, and stock reorders them
        # in place, so that choosing some sentences for one step loses the others' for good.
        out["encoder_states"] = []
        return out

    def initialize_output_tokens(self, encoder_out, src_tokens):
        out = self._model.initialize_output_tokens(encoder_out, src_tokens)
        self._encoder_out, self._source = encoder_out, src_tokens
        self._predicted = out.output_tokens.ne(self._model.pad).sum(1)
        lengths = stretched(self._predicted, self._factor)
        if self._factor == 1 and int(lengths.max()) <= self._limit:
            return out
        return self._unwritten(out, lengths)

    def regenerate_length_beam(self, decoder_out, beam_size):
        if self._candidates == "top-k":
            lengths = self._most_likely(beam_size)
        else:
            steps = torch.arange(beam_size, device=self._predicted.device) - beam_size // 2
            longest = 2 + int((self._limit - 2) / self._factor)
            around = self._predicted.clamp(max=longest).unsqueeze(1) + steps
            lengths = stretched(around, self._factor)
        return self._unwritten(decoder_out, lengths.flatten())

    def forward_decoder(self, decoder_out, encoder_out, **options):
        if not isinstance(self._model, CMLMNATransformerModel):
            options.update(self._search)
            return self._model.forward_decoder(decoder_out, encoder_out, **options)
        if decoder_out.step == 0:
            self._fixed = decoder_out.output_tokens.ne(self._model.unk)
        # The least likely positions are masked again. A word that the model is sure of has a
        # log-probability of 0, as have bos, eos and padding: these must rank above it.
        decoder_out.output_scores.masked_fill_(self._fixed, 1.0)
        out = self._model.forward_decoder(decoder_out, encoder_out, **options)
        out.output_scores.masked_fill_(self._fixed, 0.0)
        return out

    def _most_likely(self, count: int) -> Tensor:
        """(B, count) the most likely lengths, best first; those out of bounds are clamped."""
        decoder = self._model.decoder
        scores = decoder.forward_length(normalize=True, encoder_out=self._encoder_out)
        lengths = torch.arange(scores.size(1), device=scores.device).expand(scores.shape)
        if decoder.pred_length_offset:
            lengths = lengths - 128 + self._source.ne(self._model.pad).sum(1, keepdim=True)
        lengths = stretched(lengths, self._factor).clamp(min=2, max=self._limit)
        # Clamped lengths coincide; their probabilities add up, so that all candidates differ.
        # float64 tells apart the small ones of a model that is sure of its length.
        mass = scores.new_zeros(len(scores), int(lengths.max()) + 1, dtype=torch.double)
        mass.scatter_add_(1, lengths, scores.double().exp())
        mass[:, :2] = -1.0  # no such length: these come last, and are clamped
        best = mass.topk(min(count, mass.size(1)), 1).indices
        return best[:, torch.arange(count, device=best.device).clamp(max=best.size(1) - 1)]

    def _unwritten(self, out, lengths: Tensor):
        """``bos unk .. unk eos`` rows of (N,) lengths, clamped to what the model can hold."""
        tokens = unwritten(lengths.clamp(min=2, max=self._limit), self._model)
        scores = out.output_scores.new_zeros(tokens.shape)
        return out._replace(output_tokens=tokens, output_scores=scores)


def _without_bos(source: Tensor, lengths: Tensor, bos: int, pad: int):
    """(B, S) sources, padded on either side, without the bos that they begin with;
    padded on the right."""
    first = source.ne(pad).int().argmax(1)
    begins = source.gather(1, first.unsqueeze(1)).squeeze(1).eq(bos).long()
    lengths = lengths - begins
    place = torch.arange(int(lengths.max()), device=source.device).unsqueeze(0)
    tokens = source.gather(1, ((first + begins).unsqueeze(1) + place).clamp(max=source.size(1) - 1))
    return tokens.masked_fill(place.ge(lengths.unsqueeze(1)), pad), lengths
