"""Words that stand out in an output: repeated ones, and those of the reference that it lacks."""

from collections import Counter
from typing import List, NamedTuple

_LONGEST = 6  # words of a phrase that is said again and again
_SAVED = 4  # words that must be left out for it to be worth a note


class Word(NamedTuple):
    """repeated: it equals the word before it."""

    text: str
    repeated: bool


def words_of(text: str) -> List[Word]:
    """The words between the spaces of a text, with their repetitions.

    >>> [word.text for word in words_of("a a man . .") if word.repeated]
    ['a', '.']
    """
    words = text.split()
    before = [None] + words[:-1]
    return [Word(word, word == last) for word, last in zip(words, before)]


class Piece(NamedTuple):
    """words: to be shown. more: how often the second half of them follows once more."""

    words: List[Word]
    more: int


def condensed(text: str) -> List[Piece]:
    """The words of a text; what is said again and again stands there twice, with a number.

    >>> [(" ".join(word.text for word in piece.words), piece.more) for piece in
    ...  condensed("a man man man man man man man runs")]
    [('a', 0), ('man man', 5), ('runs', 0)]
    """
    words = words_of(text)
    texts = [word.text for word in words]
    pieces: List[Piece] = []
    at = 0
    while at < len(words):
        for length in range(1, _LONGEST + 1):
            end = at + length
            while texts[end : end + length] == texts[at : at + length]:
                end += length
            more = (end - at) // length - 2
            if more * length >= _SAVED:
                pieces.append(Piece(words[at : at + 2 * length], more))
                at = end
                break
        else:
            if pieces and not pieces[-1].more:
                pieces[-1].words.append(words[at])
            else:
                pieces.append(Piece([words[at]], 0))
            at += 1
    return pieces


def missing_words(hypothesis: str, reference: str) -> List[str]:
    """Words of the reference that the hypothesis has less often, in the reference's order.

    >>> missing_words("a man sits", "a man and a dog")
    ['and', 'a', 'dog']
    """
    have = Counter(hypothesis.split())
    missing = []
    for word in reference.split():
        have[word] -= 1
        if have[word] < 0:
            missing.append(word)
    return missing
