"""A ``<pad>`` that stands in the text: a word that the dictionary lacks, not padding."""

from fairseq.data import BaseWrapperDataset
from torch import Tensor


def as_unknown(tokens: Tensor, pad: int, unk: int) -> Tensor:
    """(T,) ids of a sentence before padding, with unk in place of pad.

    fairseq reads a word ``<pad>`` as padding. It would be masked from attention and loss, and
    whatever counts tokens by "not pad" would take the words after it for others.
    """
    literal = tokens.eq(pad)
    return tokens.masked_fill(literal, unk) if literal.any() else tokens


class LiteralPaddingDataset(BaseWrapperDataset):
    """One side of a corpus, sentence by sentence, through :func:`as_unknown`."""

    def __init__(self, dataset, pad: int, unk: int):
        super().__init__(dataset)
        self.pad, self.unk = pad, unk

    def __getitem__(self, index):
        return as_unknown(self.dataset[index], self.pad, self.unk)
