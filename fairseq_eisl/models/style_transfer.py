"""Style transfer trained on text that is not parallel (Tian, Hu and Yu, 2018, arXiv 1810.06526).

An encoder-decoder rewrites; a classifier and a language model, which learn from the real text, say
whether what was rewritten has the wanted style and is fluent.
"""

import contextlib
import logging
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

import torch
from fairseq import utils
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model
from torch import Tensor, nn

from .style_decoder import SoftText, StyleDecoder
from .style_encoder import StyleEncoder
from .style_language_model import StyleLanguageModel
from .text_cnn import TextCNN, embedded

logger = logging.getLogger(__name__)


@dataclass
class TextCNNConfig(FairseqDataclass):
    embed_dim: int = field(default=100, metadata={"help": "numbers of a word's embedding"})
    embed_path: Optional[str] = field(
        default=None,
        metadata={
            "help": "word vectors to begin with, of --embed-dim numbers, in the text format of "
            "fairseq's --encoder-embed-path (GloVe's with a line of counts before it)"
        },
    )
    classifier_channels: int = field(
        default=128, metadata={"help": "filters of each width in the classifier of styles"}
    )
    classifier_widths: str = field(
        default="3,4,5", metadata={"help": "words of its windows, separated by commas"}
    )
    dropout: float = field(default=0.5, metadata={"help": "dropout probability"})


@dataclass
class StyleTransferModelConfig(TextCNNConfig):
    hidden_size: int = field(
        default=700, metadata={"help": "numbers of encoder's and decoder's states"}
    )
    style_size: int = field(
        default=200, metadata={"help": "of them, those that say the style; the rest is content"}
    )
    lm_hidden_size: int = field(
        default=700, metadata={"help": "numbers of the language model's state"}
    )


class StyleOutputs(NamedTuple):
    """What the parts of the model say of a batch; the last ones only where it was transferred."""

    classified: Tensor
    """(B, 2) logits of the classifier on the real sentences."""
    language: Tensor
    """(B, S, V) logits of the language model on the real sentences, in their own style."""
    soft: Optional[SoftText] = None
    """The sentences in the other style."""
    soft_classified: Optional[Tensor] = None
    """(B, 2) logits of the classifier, which is a constant here, on them."""
    soft_language: Optional[Tensor] = None
    """(B, T, V) logits of the language model, a constant too, on them in the other style."""
    soft_vectors: Optional[Tensor] = None
    """(B, T, E) their embedded words, the table being a constant."""
    content_vectors: Optional[Tensor] = None
    """(B, S, E) embedded words of the real sentences in the same table, without gradient."""


@contextlib.contextmanager
def without_gradient(module: nn.Module) -> Iterator[None]:
    """Within the block the parameters of ``module`` are constants; its inputs keep gradients."""
    learned = [p for p in module.parameters() if p.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def embedding(cfg: TextCNNConfig, dictionary) -> nn.Embedding:
    """A table of words, with the vectors of ``--embed-path`` where there is one."""
    table = nn.Embedding(len(dictionary), cfg.embed_dim, dictionary.pad())
    nn.init.normal_(table.weight, std=0.1)
    if cfg.embed_path:
        vectors = utils.parse_embedding(cfg.embed_path)
        sizes = {len(vector) for vector in vectors.values()}
        if sizes != {cfg.embed_dim}:
            raise ValueError(
                f"--embed-path {cfg.embed_path}: vectors of {sorted(sizes)} numbers, but "
                f"--embed-dim is {cfg.embed_dim}"
            )
        utils.load_embedding(vectors, dictionary, table)
    nn.init.zeros_(table.weight[dictionary.pad()])
    return table


def classifier(cfg: TextCNNConfig, dictionary) -> TextCNN:
    """The convolutional classifier that the flags describe, with a table of words of its own."""
    try:
        widths = [int(width) for width in str(cfg.classifier_widths).split(",")]
    except ValueError:
        widths = []
    if not widths or min(widths) < 1:
        raise ValueError(
            f"--classifier-widths {cfg.classifier_widths}: whole numbers of 1 or more are needed, "
            "separated by commas, e.g. 3,4,5"
        )
    return TextCNN(embedding(cfg, dictionary), cfg.classifier_channels, widths, cfg.dropout)


@register_model("style_transfer", dataclass=StyleTransferModelConfig)
class StyleTransferModel(FairseqEncoderDecoderModel):
    """Encoder, decoder, classifier and language model; each of the last two has its own words.

    One optimiser for all of them is as good as one for each: no parameter of the classifier or the
    language model has a gradient from what the generator is trained on, and none of the generator
    from what they are trained on.
    """

    def __init__(self, encoder, decoder, classifier: TextCNN, language: StyleLanguageModel):
        super().__init__(encoder, decoder)
        self.classifier, self.language = classifier, language
        self.num_updates = 0

    @classmethod
    def build_model(cls, cfg: StyleTransferModelConfig, task):
        """Raises ValueError, which names the flag."""
        dictionary = task.source_dictionary
        if not 0 < cfg.style_size < cfg.hidden_size:
            raise ValueError(
                f"--style-size {cfg.style_size}: 1 or more, and less than --hidden-size "
                f"{cfg.hidden_size}, of which the rest is for the content"
            )
        words = embedding(cfg, dictionary)
        return cls(
            StyleEncoder(dictionary, words, cfg.hidden_size, cfg.style_size, cfg.dropout),
            StyleDecoder(dictionary, words, cfg.hidden_size, cfg.dropout),
            classifier(cfg, dictionary),
            StyleLanguageModel(
                embedding(cfg, dictionary), cfg.lm_hidden_size, dictionary.eos(), cfg.dropout
            ),
        )

    def set_num_updates(self, num_updates: int):
        """What schedules of the training go by."""
        super().set_num_updates(num_updates)
        self.num_updates = num_updates

    def forward(  # type: ignore[override]
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor],
        prev_output_tokens: Tensor,
        styles: Tensor,
        **transfer: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """(B, S, V) logits of the sentences in their own style, given the words before, and what
        the decoder says besides; with ``transfer`` (arguments of :meth:`outputs`), its entry
        ``outputs`` has the rest."""
        encoded = self.encoder.encode(src_tokens)
        logits, extra = self.decoder(prev_output_tokens, self.encoder.with_style(encoded, styles))
        if transfer:
            extra = {**extra, "outputs": self.outputs(encoded, src_tokens, styles, **transfer)}
        return logits, extra

    def outputs(
        self,
        encoded: Dict[str, Tensor],
        tokens: Tensor,
        styles: Tensor,
        *,
        content_mask: Optional[Tensor],
        temperature: Optional[float],
        seeds: Optional[Tensor] = None,
        feedback: str = "straight-through",
    ) -> StyleOutputs:
        """The classifier and the language model on the sentences, and both on the sentences in the
        other style.

        Args:
            encoded: of the encoder.
            tokens: (B, S) the sentences.
            styles: (B,) their styles.
            content_mask: (B, S) bool, their content words; none, if None.
            temperature, seeds, feedback: of :meth:`StyleDecoder.soft_decode`; nothing is
                transferred where there is no temperature.
        """
        mask = encoded["mask"]
        if content_mask is None:
            content_mask = torch.zeros_like(mask)
        real = (
            self.classifier(tokens, mask),
            self.language(tokens, styles, tokens, content_mask),
        )
        if temperature is None:
            return StyleOutputs(*real)
        other = 1 - styles
        soft = self.decoder.soft_decode(
            self.encoder.with_style(encoded, other), mask.sum(1), temperature, seeds, feedback
        )
        with without_gradient(self.classifier), without_gradient(self.language):
            classified = self.classifier(soft.weights, soft.mask)
            language = self.language(soft.weights, other, tokens, content_mask)
        table = self.decoder.embed_tokens
        with torch.no_grad():
            content = table(tokens)
        with without_gradient(table):
            vectors = embedded(table, soft.weights)
        return StyleOutputs(*real, soft, classified, language, vectors, content)
