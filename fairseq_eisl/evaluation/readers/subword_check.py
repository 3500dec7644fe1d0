"""Subword pieces where words should be: the wrong ``--remove-bpe`` found and named.

A mark of pieces may be a sign of the text: Maltese words begin with ``Ġ``, a diff has ``@@`` of
its own, a drawing may have ``▁``. So what counts is how the marks stand in the sentences that
have them, how many sentences have them, and whether the references have them, too.
"""

import re
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence

FLAG = "--plain-words"
_GLUED = re.compile(r"\w@@\w|[^\W\d_]\u0120\w")
_SENTENCEPIECE = "generate with --remove-bpe sentencepiece"
_SUBWORD_NMT = "generate with --remove-bpe subword_nmt"
_GPT2 = "generate with --bpe gpt2 and the encoder.json and vocab.bpe of the preprocessing"
# Shares of the sentences from which on marks are pieces: where the references are known to have
# none of the kind, and otherwise.
_FEW, _SOME = 0.02, 0.1


class _Kind(NamedTuple):
    """looks: whether one sentence, as words, looks as if it were in pieces of this kind."""

    looks: Callable[[List[str]], bool]
    remedy: str


def _begins(mark: str, words: List[str]) -> bool:
    """Half of the words, or the first and a quarter of them, begin with the mark of a word."""
    marked = [w.startswith(mark) and w.strip(mark) != "" for w in words]
    needed = 4 if marked and marked[0] else 2
    return sum(marked) * needed >= len(words)


def _sentencepiece(words: List[str]) -> bool:
    # "\u2581 <unk>": a mark alone stands before a piece that has none.
    words = [w for i, w in enumerate(words) if w != "\u2581" or i + 1 == len(words)]
    return any("\u2581" in w for w in words) and _begins("\u2581", words)


def _gpt2(words: List[str]) -> bool:
    # The first word of a sentence has no mark.
    later = words[1:]
    return any(w.startswith("\u0120") for w in later) and _begins("\u0120", later)


def _subword_nmt(words: List[str]) -> bool:
    return any(w.endswith("@@") and w.strip("@") != "" for w in words)


_KINDS = (
    _Kind(_sentencepiece, _SENTENCEPIECE),
    _Kind(_subword_nmt, _SUBWORD_NMT),
    _Kind(_gpt2, _GPT2),
)


def leftovers(
    texts: Sequence[str],
    references: Sequence[str] = (),
    sentences: Optional[Sequence[int]] = None,
) -> Iterator[str]:
    """What looks like subword pieces, a sentence for people each; nothing for plain words.

    ``references``: the plain words of the same sentences; pieces that they hold as well are text.
    ``sentences``: which sentence each text is of, where that is not its place.

    >>> list(leftovers(["a man", "a wo@@ man"]))
    ["sentence 1 holds subword pieces ('a wo@@ man'): generate with --remove-bpe subword_nmt"]
    """
    sentences = range(len(texts)) if sentences is None else sentences
    split = [text.split() for text in texts]
    wanted = [text.split() for text in references]
    filled = sum(map(bool, split))
    for kind in _KINDS:
        marked = [i for i, words in enumerate(split) if words and kind.looks(words)]
        in_text = any(words and kind.looks(words) for words in wanted)
        share = _FEW if references and not in_text else _SOME
        if marked and len(marked) >= share * filled:
            i = marked[0]
            yield f"sentence {sentences[i]} holds subword pieces ({texts[i][:60]!r}): {kind.remedy}"
            return
    glued = [i for i, text in enumerate(texts) if _GLUED.search(text)]
    in_text = any(map(_GLUED.search, references))
    if not in_text and len(glued) > 0.1 * len(texts):
        yield (
            f"words are glued together ({texts[glued[0]][:60]!r}, sentence {sentences[glued[0]]}): "
            f"{_SUBWORD_NMT}"
        )
        return
    found = {w for words in split for w in words}
    expected = {w for words in wanted for w in words}
    # A model that has learnt nothing may say one number everywhere; bare ids are many.
    numbers = len(found) > 2 and all(w.isdigit() for w in found)
    if numbers and expected and not all(w.isdigit() for w in expected):
        first = next(words for words in split if words)
        yield f"numbers instead of words ({' '.join(first)[:60]!r}): {_GPT2}"


def check_pieces(
    texts: Sequence[str],
    name: str,
    references: Sequence[str] = (),
    sentences: Optional[Sequence[int]] = None,
) -> None:
    """Refuse texts that hold subword pieces, or words that a wrong removal glued together; more
    under :func:`leftovers`.

    Raises:
        ValueError: names the first sentence, the right option, and the flag to go on with.
    """
    for what in leftovers(texts, references, sentences):
        raise ValueError(f"{name}: {what}; if these are plain words, {FLAG}")


def collapsed(texts: Sequence[str], references: Sequence[str]) -> Optional[str]:
    """What is odd about the words of an output that can be scored all the same; else None.

    A model that has learnt nothing says one long word, or nothing; so does a good one whose
    spaces were removed.

    >>> collapsed(["", ""], ["a b c", "d e f"])
    'every sentence is empty'
    """
    words = [text.split() for text in texts]
    filled = [each for each in words if each]
    wanted = [word for text in references for word in text.split()]
    if not wanted:
        return None
    if not filled:
        return "every sentence is empty"
    # One long word a sentence against references of several ordinary ones.
    length = sum(map(len, wanted)) / len(wanted)
    one_word = all(len(each) == 1 and len(each[0]) > 2 * length for each in filled)
    if one_word and len(wanted) >= 3 * len(references):
        return (
            f"every sentence is one long word ({filled[0][0][:60]!r}): a model that has learnt "
            "nothing, or the spaces were removed by --remove-bpe sentencepiece from text without "
            "sentencepieces (then use subword_nmt for '@@ ', none for plain words)"
        )
    return None
