import pytest

from fairseq_eisl.evaluation.leftovers import check_pieces

PLAIN = ["two dogs run .", "", "e-mail me @ home", "naïve 東京 words"]


def refusal(texts, references=()):
    with pytest.raises(ValueError) as error:
        check_pieces(texts, "gen.out", references)
    return str(error.value)


def test_plain_words_pass():
    check_pieces(PLAIN, "gen.out")
    check_pieces(PLAIN, "gen.out", PLAIN)
    check_pieces([], "gen.out", [])
    check_pieces(["", ""], "gen.out", ["a b c", "d e f"])


@pytest.mark.parametrize(
    "text, value",
    [
        ("▁two ▁do gs", "--remove-bpe sentencepiece"),
        ("two do@@ gs", "--remove-bpe subword_nmt"),
        ("two do@@", "--remove-bpe subword_nmt"),
        ("two Ġdogs", "--bpe gpt2"),
    ],
)
def test_pieces_are_found_and_the_option_is_named(text, value):
    message = refusal(PLAIN + [text])
    assert value in message and "gen.out: sentence 4" in message


def test_words_glued_by_removing_sentencepieces_from_subword_nmt():
    """``two do@@ gs run`` under --remove-bpe sentencepiece loses its spaces."""
    assert "--remove-bpe subword_nmt" in refusal(["twodo@@gsrun", "acat", "x"])


def test_one_address_with_two_at_signs_is_no_fault():
    check_pieces(PLAIN * 5 + ["a@@b"], "gen.out")


def test_words_glued_without_a_trace_show_against_the_references():
    references = ["two dogs run in a field .", "a man sits ."]
    check_pieces(["a", "."], "gen.out", references)  # a collapsed model
    assert "one long word" in refusal(["twodogsruninafield.", "amansits."], references)


def test_bare_gpt2_ids_show_against_the_references():
    assert "--bpe gpt2" in refusal(["64 582", "734 6844"], ["a man", "two dogs"])
    check_pieces(["64 582"], "gen.out", ["64 582"])  # a toy corpus of numbers


def test_references_without_spaces_between_words_are_no_fault():
    check_pieces(["東京は晴れです", "猫が走る"], "gen.out", ["東京は晴れ", "犬が走る"])
