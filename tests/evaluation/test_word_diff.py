import pytest

from fairseq_eisl.evaluation.word_diff import condensed, missing_words, words_of


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


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("", []),
        ("a a a b a", [("a a a b a", 0)]),
        ("a " * 5, [("a a a a a", 0)]),  # too little to be worth a note
        ("a " * 200, [("a a", 198)]),
        ("x " + "a b " * 100 + "y", [("x", 0), ("a b a b", 98), ("y", 0)]),
        ("a b c a b c a b c a", [("a b c a b c a b c a", 0)]),
        ("a b c " * 4 + "a", [("a b c a b c", 2), ("a", 0)]),
        ("a " * 9 + "b " * 9, [("a a", 7), ("b b", 7)]),
    ],
)
def test_what_is_said_again_and_again_stands_there_twice(text, pieces):
    found = condensed(text)
    assert [(" ".join(word.text for word in piece.words), piece.more) for piece in found] == pieces
    again = [piece.words + piece.words[len(piece.words) // 2 :] * piece.more for piece in found]
    assert [word.text for words in again for word in words] == text.split()
