import pytest

from fairseq_eisl.evaluation.readers.subword_check import check_pieces, collapsed

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
    assert collapsed(["a", "."], references) is None
    glued = ["twodogsruninafield.", "amansits."]
    assert "one long word" in collapsed(glued, references)
    check_pieces(glued, "gen.out", references)  # a collapsed model may say that: it has a score


def test_bare_gpt2_ids_show_against_the_references():
    assert "--bpe gpt2" in refusal(["64 582", "734 6844"], ["a man", "two dogs"])
    check_pieces(["64 582"], "gen.out", ["64 582"])  # a toy corpus of numbers


def test_references_without_spaces_between_words_are_no_fault():
    check_pieces(["東京は晴れです", "猫が走る"], "gen.out", ["東京は晴れ", "犬が走る"])


@pytest.mark.parametrize(
    "text",
    [
        "Il - \u0120urnata hija sabi\u0127a .",  # Maltese
        "@@ -1 +1 @@",  # a diff
        "load \u2581\u2581\u2581 75 %",  # a bar
        "the sign \u2581 is no word",
    ],
)
def test_signs_of_the_text_are_no_pieces(text):
    check_pieces([text], "ref.txt")
    check_pieces([text] * 3, "gen.out", [text] * 3)


@pytest.mark.parametrize("text", ["two do@@ gs", "\u2581two \u2581do gs", "two \u0120do gs"])
def test_one_line_among_many_is_text_and_what_the_reference_has_is_text(text):
    check_pieces(["two dogs run ."] * 60 + [text], "ref.txt")
    check_pieces([text] + ["a b"] * 26, "gen.out", [text] + ["a b"] * 26)
    assert "sentence 0" in refusal([text] * 2 + ["a b"] * 58, ["two dogs run ."] * 60)


def test_a_collapsed_output_has_words_for_it():
    references = ["two dogs run in a field .", "a man sits ."]
    assert collapsed(["", " "], references) == "every sentence is empty"
    assert collapsed(["<unk><unk><unk><unk>", ""], references)
    assert collapsed(["two dogs", ""], references) is None
    check_pieces(["2 2 2", "2"], "gen.out", references)
