"""The operators against their definitions: exactly where possible, else by their rates."""

import itertools
from collections import Counter
from random import Random

import pytest

from fairseq_eisl.noise import operators as ops
from fairseq_eisl.noise.operators import example_rng

SEEDS = range(1000)
TOLERANCE = 0.02  # of a rate, over 1,000 seeds of 40 words: eight standard deviations
WORDS = [f"w{i}" for i in range(40)]
VOCABULARY = ["v0", "v1", "v2", "v3"]

# Every operator at some strength, and at the strength at which it must do nothing.
OPERATORS = {
    "swap": lambda w, r, on=True: ops.swap(w, r, 3 if on else 0),
    "permute": lambda w, r, on=True: ops.permute(w, r) if on else list(w),
    "repeat": lambda w, r, on=True: ops.repeat(w, r, 0.5 if on else 0.0),
    "blank": lambda w, r, on=True: ops.blank(w, r, 0.5 if on else 0.0, "_"),
    "drop": lambda w, r, on=True: ops.drop(w, r, 0.5 if on else 0.0),
    "substitute": lambda w, r, on=True: ops.substitute(w, r, 0.5 if on else 0.0, VOCABULARY),
    "insert": lambda w, r, on=True: ops.insert(w, r, 0.5 if on else 0.0, VOCABULARY),
    "synthetic": lambda w, r, on=True: ops.synthetic(w, r, 5 if on else 0, "_"),
    "released": lambda w, r, on=True: ops.synthetic_released(w, r, 5 if on else 0, "_", VOCABULARY),
}
each_operator = pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)


class Script(Random):
    """A stream that gives the listed numbers, then the last of them for ever."""

    def __init__(self, *numbers):
        super().__init__(0)
        self.numbers = itertools.chain(numbers, itertools.repeat(numbers[-1]))

    def random(self):
        return next(self.numbers)


def over_seeds(operator, *args, words=WORDS):
    """The results of an operator under many seeds."""
    return [operator(words, example_rng(seed, 0), *args) for seed in SEEDS]


def share(results, wanted):
    """How many of ``wanted``, on average, a word of the input."""
    return sum(wanted(r) for r in results) / len(results) / len(WORDS)


@each_operator
def test_rate_zero_is_identity(operator):
    for seed in range(50):
        assert operator(WORDS, Random(seed), on=False) == WORDS


@each_operator
def test_short_sentences_and_no_side_effects(operator):
    for words in ([], ["a"], ["a", "b"]):
        for seed in range(50):
            before = list(words)
            out = operator(words, Random(seed))
            assert words == before and out is not words
            assert bool(out) == bool(words)
    assert operator([], Random(0)) == []


@each_operator
def test_same_stream_same_noise(operator):
    assert operator(WORDS, example_rng(3, 4)) == operator(WORDS, example_rng(3, 4))
    assert operator(WORDS, example_rng(3, 4)) != operator(WORDS, example_rng(3, 5))


def test_stream_depends_on_each_argument():
    keys = list(itertools.product(range(4), range(12), range(3)))  # (1, 11) is not (11, 1)
    assert len({example_rng(*key).random() for key in keys}) == len(keys)


def test_stream_stays_the_same_for_ever():
    """Published results name a seed; these values were drawn with version 0.1.0."""
    assert example_rng(1, 0).random() == 0.05076548952934046
    words = "a man in a blue shirt is standing".split()
    assert (
        ops.synthetic(words, example_rng(1, 0), 5, "_") == "_ _ is in _ blue shirt is _ _ _".split()
    )


@pytest.mark.parametrize("count", [1, 2, 5, 39, 1000])
def test_swap_follows_its_definition(count):
    for seed in range(200):
        order = ops._permutation(len(WORDS), Random(seed))
        expected = list(WORDS)
        for i in range(min(count, len(WORDS) - 1)):
            a, b = order[i], order[i + 1]
            expected[a], expected[b] = expected[b], expected[a]
        assert ops.swap(WORDS, Random(seed), count) == expected


@pytest.mark.parametrize("count", [1, 3, 10, 50])
def test_swap_moves_count_plus_one_words_anywhere(count):
    """Swaps along an order of positions make one cycle: o[0]'s word ends at o[count]."""
    moved = min(count, len(WORDS) - 1) + 1
    results = over_seeds(ops.swap, count)
    assert all(sorted(r) == sorted(WORDS) for r in results)
    assert all(sum(a != b for a, b in zip(r, WORDS)) == moved for r in results)
    for position in (0, 20, -1):
        rate = sum(r[position] != WORDS[position] for r in results) / len(results)
        # One draw a seed only: the standard deviation is up to 1.6%.
        assert rate == pytest.approx(moved / len(WORDS), abs=0.05)


def test_permute_is_uniform():
    counts = Counter(
        tuple(ops.permute(["a", "b", "c"], example_rng(seed, 1))) for seed in range(9000)
    )
    assert len(counts) == 6
    assert all(n / 9000 == pytest.approx(1 / 6, abs=TOLERANCE) for n in counts.values())


def test_permute_preserves_words_and_moves_the_ends():
    results = over_seeds(ops.permute)
    assert all(sorted(r) == sorted(WORDS) for r in results)
    for position in (0, -1):
        rate = sum(r[position] != WORDS[position] for r in results) / len(results)
        assert rate == pytest.approx(39 / 40, abs=TOLERANCE)


def test_literal_examples():
    abc = ["a", "b", "c"]
    assert ops.repeat(abc, Script(0.29, 0.3, 0.1), 0.3) == ["a", "a", "b", "c", "c"]
    assert ops.blank(abc, Script(0.29, 0.3, 0.1), 0.3, "_") == ["_", "b", "_"]
    assert ops.drop(abc, Script(0.29, 0.3, 0.1), 0.3) == ["b"]
    # A hit draws once more, for the word: 0.5 and 0.99 of four words are v2 and v3.
    draws = (0.29, 0.5, 0.3, 0.1, 0.99)
    assert ops.substitute(abc, Script(*draws), 0.3, VOCABULARY) == ["v2", "b", "v3"]
    assert ops.insert(abc, Script(*draws), 0.3, VOCABULARY) == ["a", "v2", "b", "c", "v3"]


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 1.0])
def test_noise_hits_the_share_of_words_that_was_asked_for(p):
    repeated = over_seeds(ops.repeat, p)
    assert share(repeated, len) - 1 == pytest.approx(p, abs=TOLERANCE)
    for result in repeated:  # only copies, next to their words, at most one each
        groups = [(word, len(list(run))) for word, run in itertools.groupby(result)]
        assert [word for word, _ in groups] == WORDS
        assert max(n for _, n in groups) <= 2

    blanked = over_seeds(ops.blank, p, "_")
    assert share(blanked, lambda r: r.count("_")) == pytest.approx(p, abs=TOLERANCE)
    for result in blanked:
        assert all(new in (old, "_") for new, old in zip(result, WORDS))

    dropped = over_seeds(ops.drop, p)
    assert 1 - share(dropped, len) == pytest.approx(min(p, 39 / 40), abs=TOLERANCE)
    assert all(result == [w for w in WORDS if w in result] for result in dropped)

    substituted = over_seeds(ops.substitute, p, VOCABULARY)
    inserted = over_seeds(ops.insert, p, VOCABULARY)
    assert all(len(result) == len(WORDS) for result in substituted)
    assert all([w for w in result if w in WORDS] == WORDS for result in inserted)
    for results in (substituted, inserted):
        for word in VOCABULARY:  # drawn uniformly
            rate = share(results, lambda r, word=word: r.count(word))
            assert rate == pytest.approx(p / 4, abs=TOLERANCE)


@pytest.mark.parametrize("position", [0, 39])
def test_every_position_is_hit_alike(position):
    """fairseq's own word noise never touches the first word."""
    word = WORDS[position]
    for results, hit in (
        (over_seeds(ops.repeat, 0.5), lambda r: r.count(word) == 2),
        (over_seeds(ops.blank, 0.5, "_"), lambda r: r.count(word) == 0),
        (over_seeds(ops.drop, 0.5), lambda r: r.count(word) == 0),
        (over_seeds(ops.substitute, 0.5, VOCABULARY), lambda r: r.count(word) == 0),
    ):
        assert sum(map(hit, results)) / len(results) == pytest.approx(0.5, abs=0.05)


def test_drop_never_empties_and_keeps_any_word():
    kept = Counter()
    for seed in range(6000):
        (word,) = ops.drop(["a", "b", "c"], example_rng(seed, 2), 1.0)
        kept[word] += 1
    assert all(n / 6000 == pytest.approx(1 / 3, abs=TOLERANCE) for n in kept.values())


# Draws of 0.999 hit no word and give the order 0, 1, 2, ...; k swaps then carry the
# first word to position k.
@pytest.mark.parametrize("preset", ["synthetic", "released"])
@pytest.mark.parametrize(
    ("level", "length", "swaps"),
    [
        (2, 10, 0),  # ceil(1.0) = 1: a single swap is skipped
        (1, 20, 0),  # also 1
        (1, 21, 2),  # ceil(1.05)
        (2, 20, 2),
        (6, 10, 3),  # 0.05 * 6 * 10 is 3.0000000000000004 in floating point
        (8, 7, 3),  # ceil(2.8)
        (9, 1, 0),
    ],
)
def test_swaps_of_synthetic_noise(preset, level, length, swaps):
    words, rng = list(range(length)), Script(0.999)
    if preset == "synthetic":
        out = ops.synthetic(words, rng, level, "_")
    else:
        out = ops.synthetic_released(words, rng, level, "_", VOCABULARY)
    assert out == words[1 : swaps + 1] + [0] + words[swaps + 1 :]


@pytest.mark.parametrize("level", [1, 4, 10])
def test_rates_of_synthetic_noise(level):
    rate = 0.05 * level
    results = over_seeds(ops.synthetic, level, "_")
    # Blanks are drawn first and may be repeated: n * p * (1 + p) of them are expected.
    blanks = share(results, lambda r: r.count("_"))
    assert blanks == pytest.approx(rate * (1 + rate), abs=TOLERANCE)
    assert share(results, len) == pytest.approx(1 + rate, abs=TOLERANCE)
    assert share(results, lambda r: sum(w in VOCABULARY for w in r)) == 0


@pytest.mark.parametrize("level", [1, 4, 10])
def test_rates_of_the_released_preset(level):
    results = over_seeds(ops.synthetic_released, level, "_", VOCABULARY)
    third = 0.1 * level / 3
    assert share(results, lambda r: r.count("_")) == pytest.approx(third, abs=TOLERANCE)
    new = share(results, lambda r: sum(w in VOCABULARY for w in r))
    assert new == pytest.approx(third, abs=TOLERANCE)
    twice = share(results, lambda r: sum(n == 2 for w, n in Counter(r).items() if w in WORDS))
    assert twice == pytest.approx(third, abs=TOLERANCE)
    if level == 10:  # every word is hit
        assert all(n != 1 for r in results for w, n in Counter(r).items() if w in WORDS)


def test_released_preset_literally():
    # Not hit; hit and repeated; hit and substituted (v3); hit and blanked.
    draws = Script(0.4, 0.1, 0.0, 0.1, 0.34, 0.99, 0.1, 0.67, 0.999)
    out = ops.synthetic_released(["a", "b", "c", "d"], draws, 4, "_", VOCABULARY)
    assert out == ["a", "b", "b", "v3", "_"]  # ceil(0.2 * 5) = 1 swap is skipped
