import pytest

from fairseq_eisl.evaluation.marks import missing_words, words_of


@pytest.mark.parametrize(
    "text, repeated",
    [("a a a b a", [1, 2]), ("", []), ("猫 猫", [1]), (" a  b ", []), ("A a", [])],
)
def test_repeated_words(text, repeated):
    words = words_of(text)
    assert [word.text for word in words] == text.split()
    assert [i for i, word in enumerate(words) if word.repeated] == repeated


@pytest.mark.parametrize(
    "hypothesis, reference, missing",
    [
        ("a b", "b a", []),
        ("", "a b a", ["a", "b", "a"]),
        ("a a", "a b a a", ["b", "a"]),
        ("a b c", "", []),
    ],
)
def test_missing_words_are_counted(hypothesis, reference, missing):
    assert missing_words(hypothesis, reference) == missing
