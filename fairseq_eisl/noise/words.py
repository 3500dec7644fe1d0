"""Words over sub-word pieces: which pieces belong together, from the symbols alone.

Noise acts on whole words. A word that a segmenter has split into several pieces
must move, repeat or be blanked as one unit; this module finds those units in
sequences of dictionary ids.
"""

from typing import Dict, List, Optional, Sequence, Tuple

from .gpt2 import Speller, plain_text
from .segmentation import KINDS, SCHEMES, is_number, is_padding_word

Ids = Tuple[int, ...]
_MASK = "<mask>"


class WordUnits:
    """Splits id sequences into words.

    Args:
        symbols: the dictionary's symbols, in id order.
        specials: how many leading symbols are special.
        unk: the id of the unknown symbol (a normal word, or a piece of one).
        scheme: one of ``SCHEMES``.
        gpt2_pieces: for numeric GPT-2 dictionaries, the map of :func:`read_gpt2_encoder`.

    Raises:
        ValueError: an unknown scheme, a dictionary without the scheme's mark (all of a sentence
            would be one word), or an encoder.json that lacks the dictionary's numbers.

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
        self._speller = None
        if scheme == "gpt2" and gpt2_pieces:
            lost = [s for s in pieces[specials:] if is_number(s) and s not in gpt2_pieces]
            if lost:
                raise ValueError(
                    f"encoder.json has no piece for {len(lost):,} of the dictionary's numbers, "
                    f"such as {lost[0]}: it is not the one that the text was split with"
                )
            pieces = [gpt2_pieces.get(s, KINDS[scheme].before + s) for s in pieces]
            numbers = {p: int(number) for number, p in gpt2_pieces.items() if is_number(number)}
            self._speller = Speller(numbers)
        self._padding = {i for i, symbol in enumerate(symbols) if is_padding_word(symbol)}
        marks = KINDS[scheme]
        # Denoising's mask is no word to put in for another, with the mark of a word or without.
        masks = (_MASK, f"{marks.before}{_MASK}{marks.after}")
        self._masks = {i for i, symbol in enumerate(symbols) if symbol in masks}
        # A mark after the last piece is a mark before the first one, read backwards.
        self._backwards = bool(marks.after)
        self._mark_text = mark = (marks.before or marks.after)[:: -1 if self._backwards else 1]
        if self._backwards:
            pieces = [piece[::-1] for piece in pieces]
        # glued[i]: piece i continues the word before it; open[i]: the next piece continues i.
        self._glued = [False] * len(pieces)
        self._open = [False] * len(pieces)
        for i, piece in enumerate(pieces[specials:], specials):
            if mark:
                self._glued[i] = not piece.startswith(mark)
            if marks.goes_on:
                self._open[i] = piece.endswith(marks.goes_on)
            if marks.continues:
                self._glued[i] = piece.startswith(marks.continues) and piece != marks.continues
        words = [i for i in range(specials, len(pieces)) if i not in self._padding]
        if mark and words and all(self._glued[i] for i in words):
            raise ValueError(
                f"the segmentation {scheme} writes {marks.before or marks.after!r} at a word's "
                f"{'end' if self._backwards else 'start'}, and no symbol of the dictionary has it; "
                f"choose from {', '.join(SCHEMES)}"
            )
        if marks.unknown_inside:
            # An unknown piece stands after the piece that opened its word ("\u2581 <unk>").
            self._glued[unk] = True
        self._unsplit = not any(self._glued) and not any(self._open)
        self._pieces = pieces
        self._ids: Dict[str, int] = {}
        if mark:
            self._ids = {piece: i for i, piece in enumerate(pieces) if i >= specials}
        self._mark = self._ids.get(mark)
        self._longest = max(map(len, self._ids), default=0)

    def split(self, ids: Sequence[int]) -> List[Ids]:
        """Group piece ids into words; concatenating the words gives ``ids`` again."""
        if self._unsplit:
            return [(i,) for i in ids]
        glued, opening = self._glued, self._open
        words: List[List[int]] = []
        word: List[int] = []
        is_open = False
        for i in reversed(ids) if self._backwards else ids:
            if word and (is_open or glued[i]):
                word.append(i)
            else:
                word = [i]
                words.append(word)
            is_open = opening[i]
        if self._backwards:
            return [tuple(reversed(w)) for w in reversed(words)]
        return [tuple(w) for w in words]

    def joints(self) -> Tuple[List[bool], List[bool], bool]:
        """By piece id: whether it belongs to the word of its neighbour before it (``glued``), and
        whether its neighbour behind it belongs to its own (``open``); and whether before and
        behind are meant from the end of the sentence.
        """
        return list(self._glued), list(self._open), self._backwards

    def join(
        self, words: Sequence[Ids], original: Sequence[int] = (), blank: Ids = ()
    ) -> List[int]:
        """Word units back to one sequence of ids.

        Plain concatenation, unless the sentence they come from (``original``) starts
        without the mark of a word, as GPT-2 writes sentences. Then that first word
        gets the mark wherever it is not the first, and the new first word loses it.
        (Where the mark stands at the end of words, the same holds of the last word.)
        The word ``blank`` is never written in other pieces.
        """
        edge = original[-1 if self._backwards else 0] if original else None
        if edge is None or not self._glued[edge] or not self._mark_text:
            return [i for word in words for i in word]
        if self._backwards:
            words, blank = [word[::-1] for word in reversed(words)], blank[::-1]
        bare = edge != self._unk  # an unknown piece tells nothing of marks
        out: List[int] = []
        for position, word in enumerate(words):
            if position > 0 and self._glued[word[0]]:
                word = self._with_mark(word)
            elif position == 0 and bare and word[0] == self._mark and word == blank:
                word = word[1:] or word
            elif position == 0 and bare and not self._glued[word[0]] and word != blank:
                word = self._without_mark(word)
            out += word
        return out[::-1] if self._backwards else out

    def _with_mark(self, word: Ids) -> Ids:
        """A word that began its sentence, as it is written within one."""
        text = self._text(word)
        spelled = self._spelled(self._mark_text + text) if text is not None else None
        if spelled is not None:
            return spelled
        marked = self._ids.get(self._mark_text + self._pieces[word[0]])
        if marked is not None and word[0] >= self._specials:
            return (marked, *word[1:])
        if self._mark is not None:
            return (self._mark, *word)
        covered = self._covered(self._mark_text + text) if text is not None else None
        return covered or word

    def _without_mark(self, word: Ids) -> Ids:
        """A word from within a sentence, as it is written at the start of one."""
        text = self._text(word)
        if text is not None and text != self._mark_text:
            text = text[len(self._mark_text) :]
            spelled = self._spelled(text)
            if spelled is not None:
                return spelled
        if word[0] == self._mark and len(word) > 1:
            return word[1:]
        plain = self._ids.get(self._pieces[word[0]][len(self._mark_text) :])
        if plain is not None:
            return (plain, *word[1:])
        covered = self._covered(text) if text is not None else None
        return covered or word

    def _text(self, word: Ids) -> Optional[str]:
        """The pieces of a word put together, None where one of them is no piece of a word."""
        if any(i < self._specials or i in self._padding for i in word):
            return None
        return "".join(self._pieces[i] for i in word)

    def _spelled(self, text: str) -> Optional[Ids]:
        """A word in the pieces that its segmentation gives it, if that can be told."""
        pieces = self._speller.spell(text) if self._speller else None
        if pieces is None or any(piece not in self._ids for piece in pieces):
            return None
        return tuple(self._ids[piece] for piece in pieces)

    def _covered(self, text: str) -> Optional[Ids]:
        """A word in pieces of the dictionary, long ones first; None where they do not cover it."""
        # ways[i]: the length of the first piece on the way from place i to the end.
        ways: Dict[int, int] = {len(text): 0}
        for start in range(len(text) - 1, -1, -1):
            if start > 0 and text.startswith(self._mark_text, start):
                continue  # a piece with the mark would begin a word of its own
            for length in range(min(self._longest, len(text) - start), 0, -1):
                if text[start : start + length] in self._ids and start + length in ways:
                    ways[start] = length
                    break
        out, start = [], 0
        while start < len(text):
            if start not in ways:
                return None
            out.append(self._ids[text[start : start + ways[start]]])
            start += ways[start]
        return tuple(out)

    @property
    def keeps_length(self) -> bool:
        """Whether :meth:`join` never adds a piece."""
        return not self._mark_text

    def special(self, i: int) -> bool:
        """Whether id ``i`` is a special symbol that noise must never touch."""
        return i < self._specials and i != self._unk

    def blank(self, i: int) -> Ids:
        """Id ``i`` as a whole word.

        A piece without the mark of a word comes beside a bare mark, as sentencepiece
        writes an unknown word; otherwise it would be glued to its neighbour.
        """
        if not self._glued[i] or self._mark is None:
            return (i,)
        return (i, self._mark) if self._backwards else (self._mark, i)

    def vocabulary(self) -> List[Ids]:
        """All single pieces that are whole words by themselves, in id order."""
        no_words = self._padding | self._masks | {self._mark}
        return [
            (i,)
            for i in range(self._specials, len(self._open))
            if not self._open[i] and not self._glued[i] and i not in no_words
        ]


def whole_words(symbols: Sequence[str], scheme: str) -> List[str]:
    """The symbols of a dictionary of pieces that are words by themselves, without their marks.

    >>> whole_words(["\u2581the", "s", "\u2581", "\u2581cat"], "sentencepiece")
    ['the', 'cat']
    """
    units, marks = WordUnits(["<unk>", *symbols], 1, 0, scheme), KINDS[scheme]
    found = [symbols[i - 1] for (i,) in units.vocabulary()]
    words = [word[len(marks.before) : len(word) - len(marks.after)] for word in found]
    return plain_text(words) if scheme == "gpt2" else words
