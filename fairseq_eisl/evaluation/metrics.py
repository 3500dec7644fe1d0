"""Scores of a corpus against its references. Every score has a signature.

BLEU, chrF and TER carry sacrebleu's; the measures over words share :data:`WORD_SIGNATURE`.
Texts of different preparation (lower-cased or not, tokenised or not) or of
different signatures are not comparable.
"""

import math
from typing import List, NamedTuple, Sequence

from sacrebleu.metrics import BLEU, CHRF, TER

from .. import __version__

UNKNOWN = "<unk>"
WORD_SIGNATURE = (
    f"words|split:space|case:mixed|dedup:no|mean:corpus|unk:{UNKNOWN}|version:{__version__}"
)
TOKENIZERS = ("none", "13a", "intl", "zh", "char")  # those that need no download


class Bleu(NamedTuple):
    """score: 0 to 100. brevity_penalty: 0 to 1. Lengths: tokens of the whole corpus."""

    score: float
    brevity_penalty: float
    system_length: int
    reference_length: int
    signature: str


class Score(NamedTuple):
    """A number, and how it was computed."""

    score: float
    signature: str


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "none",
    lowercase: bool = False,
) -> Bleu:
    """Corpus BLEU by sacrebleu, one reference a sentence.

    ``tokenize="none"`` is for text that is tokenised already, on both sides, as in
    the Multi30k experiments; for plain text use ``13a``. The two are different
    scores and never compared.

    :raises ValueError: unequal counts, no sentences, or an unknown tokenizer.

    >>> score = bleu(["a man rides a bike ."], ["a man rides a bike ."])
    >>> round(score.score, 1), score.signature.split("|version")[0]
    (100.0, 'nrefs:1|case:mixed|eff:no|tok:none|smooth:exp')
    """
    check_pairs(hypotheses, references)
    if tokenize not in TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(TOKENIZERS)}, not {tokenize!r}")
    # force: no warning about tokenised text where the caller says that it is tokenised.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Bleu(
        score=result.score,
        brevity_penalty=result.bp,
        system_length=result.sys_len,
        reference_length=result.ref_len,
        signature=str(metric.get_signature()),
    )


def chrf(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Score:
    """Corpus chrF2 by sacrebleu, 0 to 100: characters up to order 6, whitespace left out.

    :raises ValueError: unequal counts, or no sentences.

    >>> round(chrf(["a man rides a bike ."], ["a man rides a bike ."]).score, 1)
    100.0
    """
    check_pairs(hypotheses, references)
    metric = CHRF(lowercase=lowercase)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(result.score, str(metric.get_signature()))


def ter(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Score:
    """Corpus translation edit rate by sacrebleu, in percent: lower is better, over 100 occurs.

    Case counts unless ``lowercase``, as in the other scores; sacrebleu's own command
    lower-cases for TER alone, and its signature says so.

    :raises ValueError: unequal counts, or no sentences.

    >>> round(ter(["a man rides bike ."], ["a man rides a bike ."]).score, 1)
    16.7
    """
    check_pairs(hypotheses, references)
    metric = TER(case_sensitive=not lowercase)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(result.score, str(metric.get_signature()))


def repetition_rate(texts: Sequence[str]) -> float:
    """Percentage (0 to 100) of words that equal the word before them, over the corpus.

    The first word of a sentence repeats nothing. NaN when there are no words.

    >>> repetition_rate(["a a b b b c"])
    50.0
    """
    sentences = _words(texts)
    repeated = sum(a == b for words in sentences for a, b in zip(words, words[1:]))
    return _percentage(repeated, sum(map(len, sentences)))


def length_ratio(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Words of all hypotheses divided by words of all references; NaN if those have none.

    :raises ValueError: unequal counts, or no sentences.

    >>> length_ratio(["a b c"], ["a b"])
    1.5
    """
    check_pairs(hypotheses, references)
    words = sum(map(len, _words(references)))
    return sum(map(len, _words(hypotheses))) / words if words else math.nan


def length_error(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Mean over the sentences of the absolute difference in length to the reference, in words.

    What is too short here and too long there does not cancel, as in :func:`length_ratio`.

    :raises ValueError: unequal counts, or no sentences.

    >>> length_error(["a b c", "a"], ["a b", "a b c"])
    1.5
    """
    check_pairs(hypotheses, references)
    pairs = zip(_words(hypotheses), _words(references))
    return sum(abs(len(ours) - len(theirs)) for ours, theirs in pairs) / len(hypotheses)


def unk_rate(texts: Sequence[str], unknown: str = UNKNOWN) -> float:
    """Percentage (0 to 100) of words that hold the unknown symbol; NaN if there are no words.

    Hold, not equal: removing sentencepieces glues ``<unk>`` to its neighbour.

    >>> unk_rate(["a <unk> b c"])
    25.0
    """
    words = [word for sentence in _words(texts) for word in sentence]
    return _percentage(sum(unknown in word for word in words), len(words))


def _words(texts: Sequence[str]) -> List[List[str]]:
    if isinstance(texts, str):
        raise ValueError("a list of sentences is needed, not one string")
    return [text.split() for text in texts]


def _percentage(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else math.nan


def check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """:raises ValueError: unequal counts, no sentences, or one string instead of a list."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError("lists of sentences are needed, not one string")
    if len(hypotheses) != len(references):
        raise ValueError(
            f"{len(hypotheses)} hypotheses for {len(references)} references: one for each is needed"
        )
    if not hypotheses:
        raise ValueError("no sentences to score (0 hypotheses, 0 references)")
