"""The POS distance of Tian, Hu and Yu (2018, arXiv 1810.06526): do the nouns mean the same?"""

import math
from typing import Dict, NamedTuple, Optional, Sequence

import numpy as np

from ...common.part_of_speech import TAGGER, nouns
from ..word_vectors import WordVectors, read_word_vectors
from .registry import Column, Flag, Job, Metric, Signature, register
from .texts import check_pairs, installed_version, words_of

_VECTORS = Flag(
    "--word-vectors",
    "FILE",
    "vectors of words in GloVe's text format, or a text that they are made from: adds pos_distance "
    "between the nouns of the hypotheses and of --reference (the sources, in style transfer); "
    "needs textblob",
)


class PosDistance(NamedTuple):
    """distance: the mean over the pairs that are compared, NaN without any.

    skipped: the percentage of pairs that are not, as one side has no noun with a vector: there a
    lost noun costs nothing.
    """

    distance: float
    skipped: float
    signature: str


def noun_distance(source: np.ndarray, output: np.ndarray) -> Optional[float]:
    """Of the vectors of the nouns of two sentences; None where one of them has none.

    The k = min(|O|, |G|) smallest of all |O| |G| Euclidean distances, a vector being used as often
    as it comes, their mean, times 1 + ||O| - |G|| / |O|.

    Args:
        source: (|O|, E).
        output: (|G|, E).

    >>> noun_distance(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 1.0]]))
    1.5
    """
    if not len(source) or not len(output):
        return None
    apart = np.linalg.norm(source[:, None, :] - output[None, :, :], axis=2)
    least = np.sort(apart, axis=None)[: min(len(source), len(output))]
    return float(least.mean() * (1 + abs(len(source) - len(output)) / len(source)))


def pos_distance(
    hypotheses: Sequence[str], sources: Sequence[str], vectors: WordVectors
) -> PosDistance:
    """The mean of :func:`noun_distance` over the corpus; lower is better.

    Nouns are common ones in the singular (Penn's NN); those without a vector do not count.

    Raises:
        ValueError: textblob is not installed; unequal counts, or no sentences.
    """
    check_pairs(hypotheses, sources)
    found = []
    for output, source in zip(words_of(hypotheses), words_of(sources)):
        theirs, ours = (
            vectors.of([word for word, noun in zip(words, nouns(words)) if noun])
            for words in (source, output)
        )
        distance = noun_distance(theirs, ours)
        if distance is not None:
            found.append(distance)
    tagger = f"tagger:{TAGGER}-{installed_version('textblob')}"
    return PosDistance(
        sum(found) / len(found) if found else math.nan,
        100.0 * (len(hypotheses) - len(found)) / len(hypotheses),
        f"pos|NN|{tagger}|{vectors.about}|mean:pairs",
    )


def _compute(job: Job) -> Dict[str, str]:
    vectors = read_word_vectors(_VECTORS.value(job.options) or "")
    found = pos_distance(job.hypotheses, job.references, vectors)
    return {
        "pos_distance": f"{found.distance:.3f}",
        "pos_skipped": f"{found.skipped:.1f}",
        "pos_signature": found.signature,
    }


register(
    Metric(
        "pos_distance",
        (
            Column("pos_distance", "POS distance"),
            Column("pos_skipped", "POS distance, pairs skipped, %"),
        ),
        _compute,
        Signature("pos_signature"),
        said="POS distance {pos_distance}, {pos_skipped} % skipped ({pos_signature})",
        flags=(_VECTORS,),
        place=18,
    )
)
