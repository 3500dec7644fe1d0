"""Minimum Bayes risk decoding: of many samples, the one that is most like the others.

Kumar and Byrne (NAACL 2004); with samples as candidates and as references, Eikema and Aziz
(COLING 2020, EMNLP 2022). The most likely output of a model is often an odd one (empty, or a copy
of the source), and what most samples say is not.
"""

import math
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from sacrebleu.metrics import BLEU, CHRF

Both = Tuple[float, float]


class Utility(NamedTuple):
    """How good a hypothesis would be, were another one the reference; 0 to 100.

    prepare: of a text, what is counted in it, once.
    both: of two such, the first as hypothesis and the second as reference, and the other way round.
    signature: sacrebleu's.
    """

    prepare: Callable[[str], Any]
    both: Callable[[Any, Any], Both]
    signature: str


def _sentence_bleu(tokenize: str, lowercase: bool) -> Utility:
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True, force=True)

    def prepare(text: str) -> Tuple[str, Any, List[int]]:
        words = metric._preprocess_segment(text)
        grams = metric._extract_reference_info([words])
        own = metric._compute_segment_statistics(words, grams)
        return words, grams, own[2 + metric.max_ngram_order :]

    def both(one: Any, other: Any) -> Both:
        # The lengths, matches and n-grams of the hypothesis; matches are the same both ways.
        stats = metric._compute_segment_statistics(one[0], other[1])
        matches = stats[2 : 2 + metric.max_ngram_order]
        back = [stats[1], stats[0], *matches, *other[2]]
        scores = (metric._compute_score_from_stats(each) for each in (stats, back))
        first, second = (each.score for each in scores)
        return first, second

    return Utility(prepare, both, _signature(metric))


def _chrf(tokenize: str, lowercase: bool) -> Utility:
    metric = CHRF(lowercase=lowercase)

    def prepare(text: str) -> List[Counter]:
        return metric._extract_reference_info([metric._preprocess_segment(text)])["ref_ngrams"][0]

    def both(one: List[Counter], other: List[Counter]) -> Both:
        stats: List[int] = []
        back: List[int] = []
        for ours, theirs in zip(one, other):
            ours_count, theirs_count, matches = metric._get_match_statistics(ours, theirs)
            stats += [ours_count, theirs_count, matches]
            back += [theirs_count, ours_count, matches]
        scores = (metric._compute_score_from_stats(each) for each in (stats, back))
        first, second = (each.score for each in scores)
        return first, second

    return Utility(prepare, both, _signature(metric))


def _signature(metric: Any) -> str:
    metric.corpus_score(["a"], [["a"]])  # else the number of references is not known
    return str(metric.get_signature())


_KINDS = {"sentence_bleu": _sentence_bleu, "chrf": _chrf}
UTILITIES = tuple(_KINDS)


def utility_of(name: str, tokenize: str = "none", lowercase: bool = False) -> Utility:
    """sacrebleu's score of single sentences: BLEU (smoothed, with the orders that there are) or
    chrF, whose n-grams are counted once a text.

    Raises:
        ValueError: an unknown name.

    >>> utility = utility_of("sentence_bleu")
    >>> one, other = map(utility.prepare, ("the cat sat down", "the cat sat on a mat"))
    >>> [round(score, 2) for score in utility.both(one, other)]  # the shorter one first
    [36.06, 30.21]
    """
    if name not in _KINDS:
        raise ValueError(f"utility={name!r} is unknown; choose from {', '.join(UTILITIES)}")
    return _KINDS[name](tokenize, lowercase)


class Choice(NamedTuple):
    """best: the place of the hypothesis. expected: the mean utility of each of them, 0 to 100."""

    best: int
    expected: List[float]


def choose(hypotheses: Sequence[str], utility: Utility) -> Choice:
    """The hypothesis with the highest mean utility against the others, the first of several.

    Equal hypotheses count as often as they occur, for one another, too. Of a single one the
    utility is NaN.

    Raises:
        ValueError: no hypotheses.

    >>> samples = ["a cat", "the cat sat", "the cat sat down", "the cat sat there"]
    >>> choose(samples, utility_of("sentence_bleu")).best
    1
    """
    if not hypotheses:
        raise ValueError("no hypotheses to choose from")
    count = Counter(hypotheses)
    prepared = [utility.prepare(text) for text in count]
    scores = [[0.0] * len(prepared) for _ in prepared]
    for i, one in enumerate(prepared):
        scores[i][i] = utility.both(one, one)[0]
        for j in range(i):
            scores[i][j], scores[j][i] = utility.both(one, prepared[j])
    others = len(hypotheses) - 1
    means: Dict[str, float] = {}
    for i, text in enumerate(count):
        # An exact sum: that of two hypotheses does not depend on the order of the samples.
        sums = [n * score for n, score in zip(count.values(), scores[i])]
        total = math.fsum([*sums, -scores[i][i]])
        means[text] = total / others if others else math.nan
    expected = [means[text] for text in hypotheses]
    best = max(range(len(expected)), key=expected.__getitem__)
    return Choice(best, expected)
