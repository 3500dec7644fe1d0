"""Words that stand out in an output: repeated ones, and those of the reference that it lacks."""

from collections import Counter
from typing import List, NamedTuple


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
