import pytest

from fairseq_eisl.evaluation.examples import (
    CHANGED,
    RANDOM,
    WORST,
    choose,
    format_examples,
    mark_repetitions,
    pick,
)


@pytest.mark.parametrize(
    "text, marked",
    [
        ("a a a b a", "a [a] [a] b a"),
        ("", ""),
        ("猫 猫", "猫 [猫]"),
        ("a  b", "a b"),
    ],
)
def test_repetitions_are_marked(text, marked):
    assert mark_repetitions(text) == marked


def test_the_same_seed_picks_the_same_sentences():
    chosen = pick(5, 1000, seed=1)
    assert chosen == pick(5, 1000, seed=1) == sorted(set(chosen)) and len(chosen) == 5
    assert chosen != pick(5, 1000, seed=2)
    assert pick(5, 3, seed=1) == [0, 1, 2]


def test_side_by_side():
    text = format_examples(
        ["null", "ein mann ."],
        ["zero", "a man ."],
        {"CE": ["", "a a man . ."], "EISL-long-name": ["zero", ""]},
        [1, 0],
    )
    assert text.splitlines() == [
        "sentence 1",
        "  source          ein mann .",
        "  reference       a man .",
        "  CE              a [a] man . [.]",
        "                    missing: -",
        "  EISL-long-name  (empty)",
        "                    missing: a man .",
        "",
        "sentence 0",
        "  source          null",
        "  reference       zero",
        "  CE              (empty)",
        "                    missing: zero",
        "  EISL-long-name  zero",
        "                    missing: -",
    ]


def test_counts_must_agree():
    with pytest.raises(ValueError, match="1 sentences of CE for 2"):
        format_examples(["a", "b"], ["a", "b"], {"CE": ["a"]}, [0])


def test_the_most_changed_and_the_worst_are_chosen():
    reference = [f"the sentence number {i} ." for i in range(20)]
    systems = {"CE": list(reference), "EISL": list(reference)}
    systems["CE"][3] = systems["EISL"][5] = "q"  # better, worse
    systems["CE"][7] = systems["EISL"][7] = "x"  # bad, as it was
    chosen = choose(6, reference, systems, seed=1)
    assert set(chosen.numbers[CHANGED]) == {3, 5} and chosen.numbers[WORST][0] == 7
    found = [i for numbers in chosen.numbers.values() for i in numbers]
    assert len(found) == len(set(found)) == 6  # random ones fill up what has not changed
    assert chosen.chrf["EISL"][5] < 5 and chosen.chrf["CE"][5] == pytest.approx(100)
    other = choose(6, reference, systems, seed=2)
    assert other.numbers[CHANGED] == chosen.numbers[CHANGED]
    assert other.numbers[RANDOM] != chosen.numbers[RANDOM]


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_no_more_than_there_are(count):
    texts = ["a b", "c d", ""]
    chosen = choose(count, texts, {"CE": ["x", "", "y"], "EISL": ["a", "c d", ""]}, seed=1)
    found = [i for numbers in chosen.numbers.values() for i in numbers]
    assert len(found) == len(set(found)) == min(count, 3)
    alone = choose(count, texts, {"CE": texts}, seed=1).numbers
    assert CHANGED not in alone and sum(map(len, alone.values())) == min(count, 3)
