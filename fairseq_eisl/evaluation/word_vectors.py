"""Vectors of words: read from a file, or made from a text by its neighbouring words."""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from ..common.files import read_lines

SIZE, WINDOW, MOST = 100, 4, 4000
_SHIFT = 0.75  # of the counts of neighbours, so that rare ones say less (Levy et al., 2015)
_ROUNDS, _SPARE = 4, 10
_LEAST = 10  # numbers of a vector: fewer may stand in a sentence
_APART = re.compile("[ \t]+")  # other white space, such as a no-break space, is part of a word


class WordVectors(NamedTuple):
    """places: the row of each word. about: where they come from, for a signature."""

    places: Dict[str, int]
    rows: np.ndarray
    about: str

    def of(self, words: Sequence[str]) -> np.ndarray:
        """(n, E) vectors of those of the words that have one."""
        found = [self.places[word] for word in words if word in self.places]
        return self.rows[found]


def read_word_vectors(path: str) -> WordVectors:
    """Of a file in GloVe's text format (a word and its numbers a line, with spaces or tabs between
    them; a first line of two counts, as word2vec has, is left out), or trained on the file where it
    is plain text.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is empty, no UTF-8 text, or its vectors are not of one size or too short.
    """
    lines, first = read_lines(path), 1
    if len(lines[0].split()) == 2 and all(part.isdecimal() for part in lines[0].split()):
        lines, first = lines[1:], 2
    name = os.path.basename(path)
    head = _entry(next(filter(str.strip, lines), ""))
    size = len(head.numbers) if head else 0
    if size < _LEAST:
        if head and all(map(_entry, filter(str.strip, lines))):
            raise ValueError(
                f"{path}: every line is a word and numbers ({size} in the first): no plain text, "
                f"and vectors have {_LEAST} numbers or more"
            )
        return train_word_vectors([line.split() for line in lines], name)
    places: Dict[str, int] = {}
    rows: List[List[float]] = []
    for number, line in enumerate(lines, first):
        entry = _entry(line)
        if entry is None or len(entry.numbers) != size:
            raise ValueError(f"{path}: line {number}: a word and as many numbers as before it")
        places.setdefault(entry.word, len(rows))
        rows.append(entry.numbers)
    return WordVectors(places, np.array(rows, dtype=np.float32), f"vectors:{name}-{size}")


class _Entry(NamedTuple):
    word: str
    numbers: List[float]


def _entry(line: str) -> Optional[_Entry]:
    """A word and its numbers; None where the line is something else."""
    word, *parts = _APART.split(line.strip(" \t"))
    try:
        return _Entry(word, [float(part) for part in parts]) if parts else None
    except ValueError:
        return None


def train_word_vectors(
    sentences: Sequence[Sequence[str]],
    name: str,
    size: int = SIZE,
    window: int = WINDOW,
    most: int = MOST,
    seed: int = 1,
) -> WordVectors:
    """Unit vectors of the most frequent words: the largest directions of their positive pointwise
    mutual information with their neighbours (Levy, Goldberg and Dagan, 2015).

    Args:
        sentences: of words.
        name: of the text, for the signature.
        size: numbers of a vector, at most.
        window: words on either side that are neighbours.
        most: words that get a vector.
        seed: of the start of the iteration that finds the directions.

    Raises:
        ValueError: no two words stand beside each other.
    """
    counts: Dict[str, int] = {}
    for words in sentences:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    known = sorted(counts, key=lambda word: (-counts[word], word))[:most]
    places = {word: place for place, word in enumerate(known)}
    table = _information(_neighbours(sentences, places, window), len(known))
    if not table.any():
        raise ValueError("no two words of the text stand beside each other more than by chance")
    rows = _directions(table, min(size, len(known)), seed)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    kept = {word: place for word, place in places.items() if norms[place, 0] > 1e-6}
    about = f"vectors:ppmi-svd-{rows.shape[1]}-window{window}-{name}"
    return WordVectors(kept, (rows / np.maximum(norms, 1e-6)).astype(np.float32), about)


def _neighbours(sentences, places: Dict[str, int], window: int) -> np.ndarray:
    """Flat places in the square table, one for each pair of neighbours."""
    ids, owners = [], []
    for number, words in enumerate(sentences):
        for word in words:
            ids.append(places.get(word, -1))
            owners.append(number)
    word, owner = np.array(ids, dtype=np.int64), np.array(owners, dtype=np.int64)
    found = [np.zeros(0, dtype=np.int64)]
    for apart in range(1, window + 1):
        left, right = word[:-apart], word[apart:]
        pairs = (owner[:-apart] == owner[apart:]) & (left >= 0) & (right >= 0)
        left, right = left[pairs], right[pairs]
        found += [left * len(places) + right, right * len(places) + left]
    return np.concatenate(found)


def _information(pairs: np.ndarray, words: int) -> np.ndarray:
    """(words, words) positive pointwise mutual information."""
    table = np.bincount(pairs, minlength=words * words).reshape(words, words).astype(np.float32)
    rows = table.sum(1, keepdims=True)
    columns = table.sum(0, keepdims=True) ** _SHIFT
    expected = rows * columns / max(columns.sum(), 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(table / expected)
    information[~np.isfinite(information)] = 0.0
    return np.maximum(information, 0.0)


def _directions(table: np.ndarray, size: int, seed: int) -> np.ndarray:
    """Rows of U S^1/2 of the truncated singular value decomposition, by subspace iteration."""
    start = np.random.default_rng(seed).standard_normal((len(table), size + _SPARE))
    basis, _ = np.linalg.qr(table @ start.astype(np.float32))
    for _ in range(_ROUNDS):
        basis, _ = np.linalg.qr(table @ (table.T @ basis))
    left, values, _ = np.linalg.svd(basis.T @ table, full_matrices=False)
    return (basis @ left[:, :size]) * np.sqrt(values[:size])
