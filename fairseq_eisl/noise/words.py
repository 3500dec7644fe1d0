"""Words over sub-word pieces: which pieces belong together, from the symbols alone.

Noise acts on whole words. A word that a segmenter has split into several pieces
must move, repeat or be blanked as one unit; this module finds those units in
sequences of dictionary ids.
"""

import json
from typing import List, Optional, Sequence, Tuple

SCHEMES = ("none", "subword_nmt", "sentencepiece", "gpt2")
_SPM = "\u2581"  # the mark that sentencepiece puts before the first piece of a word
_GPT2 = "\u0120"  # the same for GPT-2's byte-level BPE

Ids = Tuple[int, ...]


def detect_scheme(symbols: Sequence[str], specials: int) -> str:
    """Guess the segmentation from a dictionary's symbols.

    ``specials``: how many leading symbols are special (bos, pad, eos, unk).

    >>> detect_scheme(["<s>", "a", "al@@", "x"], 1)
    'subword_nmt'
    """
    own = symbols[specials:]
    if any(s.startswith(_SPM) for s in own):
        return "sentencepiece"
    if any(len(s) > 2 and s.endswith("@@") for s in own):
        return "subword_nmt"
    if any(s.startswith(_GPT2) for s in own):
        return "gpt2"
    numeric = sum(s.isdigit() for s in own)
    # GPT-2's BPE as BART and RoBERTa use it: the symbols are the ids of encoder.json.
    if len(own) > 10_000 and numeric > 0.99 * len(own):
        return "gpt2"
    return "none"


def read_gpt2_encoder(path: str) -> dict:
    """Map GPT-2 piece ids (as text, the symbols of BART's dictionary) to pieces."""
    with open(path, encoding="utf-8") as f:
        encoder = json.load(f)
    if not isinstance(encoder, dict) or not encoder:
        raise ValueError(f"{path} is not a GPT-2 encoder.json (a map from pieces to numbers)")
    return {str(number): piece for piece, number in encoder.items()}


class WordUnits:
    """Splits id sequences into words.

    Args:
        symbols: the dictionary's symbols, in id order.
        specials: how many leading symbols are special.
        unk: the id of the unknown symbol (a normal word, or a piece of one).
        scheme: one of ``SCHEMES``.
        gpt2_pieces: for numeric GPT-2 dictionaries, the map of :func:`read_gpt2_encoder`.

    >>> units = WordUnits(["<s>", "<pad>", "</s>", "<unk>", "al@@", "x", "b"], 4, 3, "subword_nmt")
    >>> units.split([4, 5, 6])
    [(4, 5), (6,)]
    """

    def __init__(
        self,
        symbols: Sequence[str],
        specials: int,
        unk: int,
        scheme: str,
        gpt2_pieces: Optional[dict] = None,
    ):
        if scheme not in SCHEMES:
            raise ValueError(f"unknown segmentation {scheme!r}; choose from {', '.join(SCHEMES)}")
        self.scheme = scheme
        self._specials = specials
        self._unk = unk
        pieces = list(symbols)
        if scheme == "gpt2" and gpt2_pieces:
            pieces = [gpt2_pieces.get(s, _GPT2 + s) for s in pieces]
        # glued[i]: piece i continues the word before it; open[i]: the next piece continues i.
        self._glued = [False] * len(pieces)
        self._open = [False] * len(pieces)
        for i, piece in enumerate(pieces):
            if scheme == "subword_nmt":
                self._open[i] = i >= specials and piece.endswith("@@")
            elif scheme == "sentencepiece":
                # An unknown piece stands after the piece that opened its word ("\u2581 <unk>").
                self._glued[i] = (i >= specials or i == unk) and not piece.startswith(_SPM)
            elif scheme == "gpt2":
                self._glued[i] = i >= specials and not piece.startswith(_GPT2)
        self._word_mark = pieces.index(_SPM) if _SPM in pieces else None
        # GPT-2 writes a word differently at the start of a sentence (no leading space).
        self._spaced, self._bare = {}, {}
        if scheme == "gpt2":
            by_piece = {piece: i for i, piece in enumerate(pieces) if i >= specials}
            for piece, i in by_piece.items():
                other = by_piece.get(piece[1:] if piece.startswith(_GPT2) else _GPT2 + piece)
                if other is not None and len(piece) > 1:
                    (self._bare if piece.startswith(_GPT2) else self._spaced)[i] = other
            self._space = by_piece.get(_GPT2)

    def split(self, ids: Sequence[int]) -> List[Ids]:
        """Group piece ids into words; concatenating the words gives ``ids`` again."""
        words: List[List[int]] = []
        for i in ids:
            if words and (self._glued[i] or self._open[words[-1][-1]]):
                words[-1].append(i)
            else:
                words.append([i])
        return [tuple(w) for w in words]

    def join(self, words: Sequence[Ids]) -> List[int]:
        """Word units back to one sequence of ids.

        Plain concatenation, but for GPT-2, whose pieces carry the space before a
        word: a word that came from the start of a sentence gets its space when it
        stands elsewhere, and the first word loses it.
        """
        if self.scheme != "gpt2":
            return [i for word in words for i in word]
        out: List[int] = []
        for position, (first, *rest) in enumerate(words):
            if position == 0:
                first = self._bare.get(first, first)
            elif self._glued[first]:
                if first in self._spaced:
                    first = self._spaced[first]
                elif self._space is not None:
                    out.append(self._space)
            out += [first, *rest]
        return out

    def special(self, i: int) -> bool:
        """Whether id ``i`` is a special symbol that noise must never touch."""
        return i < self._specials and i != self._unk

    def blank(self, i: int) -> Ids:
        """Id ``i`` as a whole word.

        Under sentencepiece an unknown word is the word mark and the unknown
        piece; without the mark it would be glued to its neighbour in the output.
        """
        if self.scheme == "sentencepiece" and self._glued[i] and self._word_mark is not None:
            return (self._word_mark, i)
        return (i,)

    def vocabulary(self) -> List[Ids]:
        """All single pieces that are whole words by themselves, in id order."""
        return [
            (i,)
            for i in range(self._specials, len(self._open))
            if not self._open[i] and not self._glued[i] and i != self._word_mark
        ]
