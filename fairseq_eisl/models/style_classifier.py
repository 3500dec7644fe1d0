"""The classifier of styles as a model of its own: the judge of what others have rewritten."""

from fairseq.models import BaseFairseqModel, register_model
from torch import Tensor

from .style_transfer import TextCNNConfig, classifier
from .text_cnn import TextCNN


@register_model("style_classifier", dataclass=TextCNNConfig)
class StyleClassifierModel(BaseFairseqModel):
    """A convolutional network over words (3, 4 and 5 at a time), trained with ``--criterion
    style_classification`` on the real sentences."""

    def __init__(self, network: TextCNN, pad: int):
        super().__init__()
        self.network, self.pad = network, pad

    @classmethod
    def build_model(cls, cfg: TextCNNConfig, task):
        """Raises ValueError, which names the flag."""
        return cls(classifier(cfg, task.source_dictionary), task.source_dictionary.pad())

    def forward(self, src_tokens: Tensor, **unused) -> Tensor:
        """(B, 2) logits of the styles of (B, S) sentences, padded on the right."""
        return self.network(src_tokens, src_tokens.ne(self.pad))

    def max_positions(self):
        """It reads sentences of any length."""
        return 100_000
