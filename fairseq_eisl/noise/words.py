"""Words over sub-word pieces: which pieces belong together, from the symbols alone.

Noise acts on whole words. A word that a segmenter has split into several pieces
must move, repeat or be blanked as one unit; this module finds those units in
sequences of dictionary ids.
"""

import json
import re
from typing import List, Optional, Sequence, Tuple

SCHEMES = ("none", "subword_nmt", "sentencepiece", "gpt2")
_SPM = "\u2581"  # the mark that sentencepiece puts before the first piece of a word
_GPT2 = "\u0120"  # the same for GPT-2's byte-level BPE
_MARKS = {"sentencepiece": _SPM, "gpt2": _GPT2}

Ids = Tuple[int, ...]


def detect_scheme(symbols: Sequence[str], specials: int) -> str:
    """Guess the segmentation from a dictionary's symbols.

    ``specials``: how many leading symbols are special (bos, pad, eos, unk).

    >>> detect_scheme(["<s>", "a", "al@@", "x"], 1)
    'subword_nmt'
    """
    own = symbols[specials:]
    # A few marks prove nothing: web text draws bars with "\u2581", and Maltese has the letter
    # "\u0120". "@@" comes last, as GPT-2 has pieces such as "@@@@".
    if sum(s.startswith(_SPM) for s in own) > 0.01 * len(own):
        return "sentencepiece"
    if sum(s.startswith(_GPT2) for s in own) > 0.1 * len(own):
        return "gpt2"
    if any(len(s) > 2 and s.endswith("@@") for s in own):
        return "subword_nmt"
    # GPT-2's BPE as BART and RoBERTa use it: the symbols are the numbers of encoder.json.
    numbers = [int(s) for s in own if _is_number(s)]
    if len(numbers) > 0.99 * len(own) and max(numbers, default=0) > 10_000:
        return "gpt2"
    return "none"


def _is_number(symbol: str) -> bool:
    return re.fullmatch("[0-9]{1,9}", symbol) is not None


def is_padding_word(symbol: str) -> bool:
    """Whether a symbol only fills a fairseq dictionary up to a multiple of 8."""
    return re.fullmatch(r"madeupword\d{4}", symbol) is not None


def read_gpt2_encoder(path: str) -> dict:
    """Map GPT-2 piece ids (as text, the symbols of BART's dictionary) to pieces.

    Raises ValueError if the file at ``path`` is anything else.
    """
    try:
        with open(path, encoding="utf-8") as f:
            encoder = json.load(f)
    except ValueError:  # no JSON, or not even text
        encoder = None
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
            lost = [s for s in pieces[specials:] if _is_number(s) and s not in gpt2_pieces]
            if lost:
                raise ValueError(
                    f"encoder.json has no piece for {len(lost):,} of the dictionary's numbers, "
                    f"such as {lost[0]}: it is not the one that the text was split with"
                )
            pieces = [gpt2_pieces.get(s, _GPT2 + s) for s in pieces]
        # glued[i]: piece i continues the word before it; open[i]: the next piece continues i.
        self._glued = [False] * len(pieces)
        self._open = [False] * len(pieces)
        mark = _MARKS.get(scheme)
        for i, piece in enumerate(pieces):
            if scheme == "subword_nmt":
                self._open[i] = i >= specials and piece.endswith("@@")
            elif mark is not None:
                self._glued[i] = i >= specials and not piece.startswith(mark)
        if scheme == "sentencepiece":
            # An unknown piece stands after the piece that opened its word ("\u2581 <unk>").
            self._glued[unk] = True
        self._unsplit = not any(self._glued) and not any(self._open)
        self._mark = pieces.index(mark) if mark in pieces else None
        self._padding = {i for i, symbol in enumerate(symbols) if is_padding_word(symbol)}
        # The same piece with the mark and without it, as GPT-2 starts a sentence without one.
        self._marked, self._bare = {}, {}
        if mark is not None:
            by_piece = {piece: i for i, piece in enumerate(pieces) if i >= specials}
            for piece, i in by_piece.items():
                other = by_piece.get(mark + piece)
                if other is not None and self._glued[i]:
                    self._marked[i], self._bare[other] = other, i

    def split(self, ids: Sequence[int]) -> List[Ids]:
        """Group piece ids into words; concatenating the words gives ``ids`` again."""
        if self._unsplit:
            return [(i,) for i in ids]
        glued, opening = self._glued, self._open
        words: List[List[int]] = []
        word: List[int] = []
        is_open = False
        for i in ids:
            if word and (is_open or glued[i]):
                word.append(i)
            else:
                word = [i]
                words.append(word)
            is_open = opening[i]
        return [tuple(w) for w in words]

    def join(self, words: Sequence[Ids], original: Sequence[int] = ()) -> List[int]:
        """Word units back to one sequence of ids.

        Plain concatenation, unless the sentence they come from (``original``) starts
        without the mark of a word, as GPT-2 writes sentences. Then that first word
        gets the mark wherever it is not the first, and the new first word loses it.
        """
        if not original or not self._glued[original[0]]:
            return [i for word in words for i in word]
        bare = original[0] != self._unk  # an unknown piece tells nothing of marks
        out: List[int] = []
        for position, (first, *rest) in enumerate(words):
            if position > 0 and self._glued[first]:
                if first in self._marked:
                    first = self._marked[first]
                elif self._mark is not None:
                    out.append(self._mark)
            elif position == 0 and bare:
                if first == self._mark and rest:
                    first, *rest = rest
                first = self._bare.get(first, first)
            out += [first, *rest]
        return out

    @property
    def keeps_length(self) -> bool:
        """Whether :meth:`join` never adds a piece."""
        return self.scheme not in _MARKS

    def special(self, i: int) -> bool:
        """Whether id ``i`` is a special symbol that noise must never touch."""
        return i < self._specials and i != self._unk

    def blank(self, i: int) -> Ids:
        """Id ``i`` as a whole word.

        A piece without the mark of a word comes after a bare mark, as sentencepiece
        writes an unknown word; otherwise it would be glued to its neighbour.
        """
        return (self._mark, i) if self._glued[i] and self._mark is not None else (i,)

    def vocabulary(self) -> List[Ids]:
        """All single pieces that are whole words by themselves, in id order."""
        no_words = self._padding | {self._mark}
        return [
            (i,)
            for i in range(self._specials, len(self._open))
            if not self._open[i] and not self._glued[i] and i not in no_words
        ]
