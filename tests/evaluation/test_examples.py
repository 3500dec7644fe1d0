import pytest

from fairseq_eisl.evaluation.examples import format_examples, mark_repetitions, pick


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
