"""What a clean text says of the n-grams of noisy targets: which of them noise has made."""

from typing import Iterable, List, NamedTuple, Sequence, Tuple, Union

import torch
from torch import Tensor

from .ngram_weights import NGramWeights

_CHUNK = 2**22  # tokens that are counted at a time


class NGramCounts(NamedTuple):
    """How often tokens and pairs of neighbours stand in a text."""

    tokens: Tensor
    """(V,) int64, by token id."""
    pairs: Tensor
    """(K,) int64, rising: ``first * V + second`` of each pair that there is."""
    pair_counts: Tensor
    """(K,) int64."""


def count_ngrams(sentences: Iterable[Union[Tensor, Sequence[int]]], vocabulary: int) -> NGramCounts:
    """The counts of a text.

    Args:
        sentences: token ids, 1-d tensors or lists. A token outside of the vocabulary counts
            nothing, nor do the pairs that it has a part in.
        vocabulary: V, the number of ids.

    >>> counts = count_ngrams([[0, 1, 0, 1], [1]], 2)
    >>> counts.tokens.tolist(), counts.pairs.tolist(), counts.pair_counts.tolist()
    ([2, 3], [1, 2], [2, 1])
    """
    counts = NGramCounts(
        torch.zeros(vocabulary, dtype=torch.int64),
        *torch.zeros(2, 0, dtype=torch.int64),
    )
    waiting: List[Tensor] = []
    size = 0
    for sentence in sentences:
        # A token that is none stands between sentences: no pair reaches across.
        waiting += [torch.as_tensor(sentence, dtype=torch.int64), torch.tensor([-1])]
        size += len(sentence) + 1
        if size >= _CHUNK:
            counts, waiting, size = _added(counts, torch.cat(waiting)), [], 0
    return _added(counts, torch.cat(waiting)) if waiting else counts


def _added(counts: NGramCounts, ids: Tensor) -> NGramCounts:
    vocabulary = len(counts.tokens)
    known = ids.ge(0) & ids.lt(vocabulary)
    tokens = counts.tokens + torch.bincount(ids[known], minlength=vocabulary)
    both = known[:-1] & known[1:]
    keys, often = (ids[:-1] * vocabulary + ids[1:])[both].unique(return_counts=True)
    pairs, place = torch.cat([counts.pairs, keys]).unique(return_inverse=True)
    pair_counts = torch.zeros_like(pairs)
    pair_counts.index_add_(0, place, torch.cat([counts.pair_counts, often]))
    return NGramCounts(tokens, pairs, pair_counts)


class CleanTextWeights:
    """N-grams that noisy targets have more often than a clean text of the language count less.

    The weight of an n-gram is the ratio of its probabilities in the two texts, up to a cap:

    .. math:: w(g) = \\min(\\mathrm{cap}, (r\\, c(g) + k) / (n(g) + k)), \\quad k = s \\max(1, r)

    with its counts c in the clean text and n in the noisy one, r the size (tokens) of the noisy
    text over that of the clean one, and s the smoothing, in occurrences in the smaller text: what a
    small clean text lacks may still be language. This is importance weighting under a
    shift of the distribution (Shimodaira, 2000), of n-grams where Moore and Lewis (2010) choose
    sentences by the same ratio. What noise has made of the targets, such as blanks, words
    that follow themselves, or neighbours that were none, is frequent in them alone.

    What the noisy text does not have counts as if it had it once: it does stand in a target, whose
    noise was drawn anew. An id outside of the vocabulary weighs 1.

    Args:
        clean: counts of the clean text.
        noisy: of the targets, with the same ids.
        smoothing: s, above 0: an n-gram that the clean text lacks weighs k / (n + k).
        cap: no weight is above it; 1 or above.

    Raises:
        ValueError: a number that cannot be meant, or vocabularies of other sizes.

    Blanks (2) stand in the noisy text alone:

    >>> clean, noisy = count_ngrams([[0, 1], [0, 1]], 3), count_ngrams([[0, 2], [2, 1]], 3)
    >>> weights = CleanTextWeights(clean, noisy, smoothing=1.0, cap=5.0)(torch.tensor([[0, 2]]))
    >>> [[round(w, 2) for w in row] for row in (*weights.tokens.tolist(), *weights.pairs.tolist())]
    [[1.5, 0.33], [0.5]]
    """

    def __init__(
        self, clean: NGramCounts, noisy: NGramCounts, smoothing: float = 0.3, cap: float = 5.0
    ):
        check_numbers(smoothing, cap)
        if len(clean.tokens) != len(noisy.tokens):
            raise ValueError(
                f"the texts must have one vocabulary, not {len(clean.tokens)} and "
                f"{len(noisy.tokens)} ids"
            )
        self.vocabulary = len(noisy.tokens)
        # In float64: counts, and the keys of pairs, are exact there.
        share = noisy.tokens.sum().double() / clean.tokens.sum().clamp(min=1).double()

        added = smoothing * share.clamp(min=1)

        def ratio(often: Tensor, seen: Tensor) -> Tensor:
            return ((often * share + added) / (seen.clamp(min=1) + added)).clamp(max=cap).float()

        self.tokens = ratio(clean.tokens, noisy.tokens)
        self._keys = torch.cat([noisy.pairs, clean.pairs]).unique()
        often, seen = (
            _lookup(self._keys, each.pairs, each.pair_counts, 0) for each in (clean, noisy)
        )
        self.pairs = ratio(often, seen)
        self._unknown = min(cap, float(added / (1 + added)))
        self._counts = noisy

    def __call__(self, targets: Tensor) -> NGramWeights:
        """The weights of (B, S) int64 targets; ids outside of the vocabulary (padding) weigh 1."""
        if self.tokens.device != targets.device:
            self.tokens, self.pairs = self.tokens.to(targets.device), self.pairs.to(targets.device)
            self._keys = self._keys.to(targets.device)
        known = targets.ge(0) & targets.lt(self.vocabulary)
        ids = targets.masked_fill(~known, 0)
        tokens = torch.where(known, self.tokens[ids], 1.0)
        keys = ids[:, :-1] * self.vocabulary + ids[:, 1:]
        both = known[:, :-1] & known[:, 1:]
        pairs = _lookup(keys, self._keys, self.pairs, self._unknown).masked_fill(~both, 1.0)
        return NGramWeights(tokens, pairs)

    def means(self) -> Tuple[float, float]:
        """The mean weight of a token and of a pair of the noisy text."""
        tokens = self._counts.tokens.double()
        pairs = _lookup(self._keys.cpu(), self._counts.pairs, self._counts.pair_counts, 0).double()
        return (
            float((self.tokens.cpu() * tokens).sum() / tokens.sum().clamp(min=1)),
            float((self.pairs.cpu() * pairs).sum() / pairs.sum().clamp(min=1)),
        )

    def least(self, most: int) -> List[Tuple[int, float, float]]:
        """(id, weight, share of the noisy text) of the tokens whose low weights matter most."""
        share = self._counts.tokens.double() / self._counts.tokens.sum().clamp(min=1)
        lost = share * (1 - self.tokens.cpu().double())
        order = lost.argsort(descending=True)[:most].tolist()
        return [(i, float(self.tokens[i]), float(share[i])) for i in order if lost[i] > 0]


def _lookup(keys: Tensor, among: Tensor, values: Tensor, lacking: float) -> Tensor:
    """The values of keys, which are ``among``'s, a rising list; ``lacking`` of one that is none."""
    if not len(among):
        return values.new_full(keys.shape, lacking)
    place = torch.searchsorted(among, keys.contiguous()).clamp(max=len(among) - 1)
    return torch.where(among[place].eq(keys), values[place], lacking)


def check_numbers(smoothing: float, cap: float):
    """Raise ValueError unless they can be meant; it begins with the name of the number."""
    if not 0 < smoothing < float("inf"):
        raise ValueError(f"smoothing must be a finite number above 0, not {smoothing}")
    if not cap >= 1:
        raise ValueError(f"cap must be 1 or above (inf: none), not {cap}")
