"""Words over sub-word pieces: noise never takes a piece from its word."""

import pytest

from fairseq_eisl.noise import (
    WordUnits,
    detect_scheme,
)
from tests.noise.word_texts import SENTENCES, SPECIALS, UNK, Text

# -- no segmentation, subword-nmt ------------------------------------------------------------


def test_whole_words():
    text = Text("none", "a b c d madeupword0000".split())
    assert text.units.split([4, 7, 4]) == [(4,), (7,), (4,)]
    text.check([text.encode(s) for s in ("a b c d", "d c b", "b a")])
    assert text.units.vocabulary() == [(4,), (5,), (6,), (7,)]  # nothing that only fills up


def test_subword_nmt():
    text = Text("subword_nmt", "al@@ ph@@ a x y @@ b".split())
    ids = text.encode("x al@@ ph@@ a y al@@ x b")
    assert text.units.split(ids) == [(7,), (4, 5, 6), (8,), (4, 7), (10,)]
    text.check([ids, text.encode("al@@ ph@@ a x"), text.encode("al@@ zzz b")])
    assert text.units.split(text.encode("al@@ zzz b")) == [(4, UNK), (10,)]
    assert {(4,), (5,)}.isdisjoint(text.units.vocabulary())  # "al@@" alone is no word
    assert text.units.blank(UNK) == (UNK,)


def test_special_symbols():
    for scheme in ("none", "subword_nmt", "sentencepiece", "gpt2"):
        units = Text(scheme, ["a", "\u2581b", "\u0120c"]).units
        assert [units.special(i) for i in range(7)] == [True] * 3 + [False] * 4
    # A task may have more special symbols than the four.
    assert WordUnits(SPECIALS + ["<mask>", "a"], 5, UNK, "none").special(4)


def test_unknown_scheme():
    with pytest.raises(ValueError, match="'spm'.*none, subword_nmt, sentencepiece, gpt2"):
        WordUnits(SPECIALS, 4, UNK, "spm")


# -- sentencepiece ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentencepiece_text(tmp_path_factory):
    spm = pytest.importorskip("sentencepiece")
    prefix = str(tmp_path_factory.mktemp("spm") / "m")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5),
        model_prefix=prefix,
        vocab_size=60,
        minloglevel=2,
        num_threads=1,
    )
    model = spm.SentencePieceProcessor(model_file=prefix + ".model")
    pieces = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    return Text("sentencepiece", pieces), model


def test_sentencepiece(sentencepiece_text):
    text, model = sentencepiece_text
    assert detect_scheme(text.symbols, 4) == "sentencepiece"
    sentences = [text.encode(model.encode(s, out_type=str)) for s in SENTENCES]
    assert max(map(len, text.units.split(sentences[0]))) > 2  # words do have several pieces
    assert [text.words(ids) for ids in sentences] == [s.split() for s in SENTENCES]
    text.check(sentences)
    noisy = text.corrupt(sentences[0], "shuffle:all", 3)
    assert sorted(model.decode(text.pieces(noisy)).split()) == sorted(SENTENCES[0].split())


def test_sentencepiece_unknown_piece(sentencepiece_text):
    """A character that the model does not know comes as a mark and an unknown piece."""
    text, model = sentencepiece_text
    ids = text.encode(model.encode("hello \u2603 young a\u2603", out_type=str))
    mark = text.ids["\u2581"]
    assert (mark, UNK) in text.units.split(ids)
    assert len(text.units.split(ids)) == 4
    # A blank is written in the same way, and alone is a word.
    assert text.units.blank(UNK) == (mark, UNK)
    assert text.corrupt(ids, "blank:1") == [mark, UNK] * 4
    # A sentence that starts with an unknown piece stays a sentence of whole words.
    (word,) = text.vocabulary[0]
    assert text.corrupt([UNK, word], "shuffle:1") == [word, mark, UNK]
    text.check([ids, [UNK, *ids]])


def test_sentencepiece_vocabulary(sentencepiece_text):
    text, _ = sentencepiece_text
    drawn = [text.symbols[i] for (i,) in text.units.vocabulary()]
    assert drawn and all(s.startswith("\u2581") and len(s) > 1 for s in drawn)
    assert drawn == [s for s in text.symbols if s in set(drawn)]  # in the dictionary's order


def test_sentencepiece_without_a_bare_mark():
    text = Text("sentencepiece", ["\u2581a", "b"])
    assert text.units.blank(UNK) == (UNK,)  # nothing better can be written
    assert text.units.blank(4) == (4,)


def test_sentencepiece_without_a_mark_at_the_start():
    """Models trained with add_dummy_prefix=false."""
    text = Text("sentencepiece", ["a", "\u2581a", "b", "\u2581c", "\u2581"])
    text.check([text.encode("a b \u2581c \u2581a"), text.encode("b a \u2581a")])
    ids = text.encode("a b \u2581c")
    assert text.corrupt(ids, "shuffle:1") == text.encode("\u2581c \u2581a b")


# -- other kinds of pieces -------------------------------------------------------------------


def test_wordpiece():
    """BERT's: every piece but the first begins with ##."""
    text = Text("wordpiece", "un ##believ ##able play ##ing a ## .".split())
    ids = text.encode("un ##believ ##able a play ##ing ## .")
    assert text.units.split(ids) == [(4, 5, 6), (9,), (7, 8), (10,), (11,)]
    sentences = ("un ##believ ##able a play ##ing", "play ##ing a zzz ##able", "a . ##able")
    text.check([text.encode(sentence) for sentence in sentences])
    assert text.units.vocabulary() == [(4,), (7,), (9,), (10,), (11,)]
    assert text.units.blank(UNK) == (UNK,)


@pytest.mark.parametrize("scheme, mark", [("end_of_word", "</w>"), ("eow", "_EOW")])
def test_mark_at_the_end_of_words(scheme, mark):
    pieces = [piece.replace("$", mark) for piece in "un believ able$ play ing$ a$ .$".split()]
    text = Text(scheme, pieces)
    ids = [4, 5, 6, 9, 7, 8, 10]
    assert text.units.split(ids) == [(4, 5, 6), (9,), (7, 8), (10,)]
    text.check([ids, [9, 7, 8, 10], [7, UNK, 9, UNK, 4, 6]])
    assert text.units.split([7, UNK, 9, UNK]) == [(7, UNK), (9,), (UNK,)]
    assert text.units.vocabulary() == [(6,), (8,), (9,), (10,)]


def test_letters():
    """A bar ends a word, the last one of a sentence or not."""
    text = Text("letter", "a b c |".split())
    ids = text.encode("a b | c | b a |")
    assert text.units.split(ids) == [(4, 5, 7), (6, 7), (5, 4, 7)]
    text.check([ids, text.encode("a b | c | b a"), text.encode("c | a zzz | b")])
    assert text.corrupt(text.encode("a b | c"), "shuffle:1") == text.encode("c | a b")
    assert text.units.blank(UNK) == (UNK, 7)


def test_underscores():
    text = Text("underscore", "_a b _c _".split())
    ids = text.encode("_a b _c b b _a")
    assert text.units.split(ids) == [(4, 5), (6, 5, 5), (4,)]
    text.check([ids, text.encode("_c _ zzz _a b")])


def test_joiner():
    text = Text("joiner", "a b \uffedc d\uffed .".split())
    ids = text.encode("a \uffedc d\uffed b .")
    assert text.units.split(ids) == [(4, 6), (7, 5), (8,)]
    text.check([ids, text.encode("b a d\uffed a")])


def test_sentencepiece_with_the_mark_at_the_end(tmp_path):
    """treat_whitespace_as_suffix: the last piece of a word has the mark."""
    spm = pytest.importorskip("sentencepiece")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 5),
        model_prefix=str(tmp_path / "m"),
        vocab_size=60,
        treat_whitespace_as_suffix=True,
        minloglevel=2,
        num_threads=1,
    )
    model = spm.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    pieces = [model.id_to_piece(i) for i in range(3, model.get_piece_size())]
    assert detect_scheme(SPECIALS + pieces, 4) == "sentencepiece_suffix"
    text = Text("sentencepiece_suffix", pieces)
    sentences = [text.encode(model.encode(s, out_type=str)) for s in SENTENCES]
    assert max(map(len, text.units.split(sentences[0]))) > 2
    assert [text.words(ids) for ids in sentences] == [s.split() for s in SENTENCES]
    text.check(sentences)
    mark = text.ids["\u2581"]
    assert text.units.blank(UNK) == (UNK, mark)
    # The last word lacks the mark (add_dummy_prefix=false), and gets it where it is not the last.
    text = Text("sentencepiece_suffix", ["a", "b", "a\u2581", "b\u2581", "\u2581"])
    text.check([[4, 6, 5], [7, 6, 4, 5], [6, UNK, 8, 5]])
    assert text.corrupt([6, 5], "shuffle:1") == [7, 4]


@pytest.mark.parametrize("scheme", ["sentencepiece", "sentencepiece_suffix", "gpt2", "end_of_word"])
def test_a_dictionary_without_the_mark_is_refused(scheme):
    """A whole sentence would be one word."""
    with pytest.raises(ValueError, match=f"{scheme} writes .* no symbol of the dictionary has it"):
        WordUnits([*SPECIALS, "a", "b@@", "madeupword0000"], 4, UNK, scheme)


# -- which segmentation a dictionary has -----------------------------------------------------

PLAIN = [f"word{i}" for i in range(500)]


@pytest.mark.parametrize(
    ("symbols", "scheme"),
    [
        ([], "none"),
        (["un", "##able", "play", "##ing"], "wordpiece"),
        (PLAIN + ["##", "####", "##1"], "none"),
        (["un", "able</w>", "a</w>"], "end_of_word"),
        (["un", "able_EOW", "a_EOW", "b@@"], "eow"),
        (["un", "able\u2581", "a\u2581", "\u2581"], "sentencepiece_suffix"),
        (["\u2581un", "able", "\u2581\u2581", "a\u2581"] + ["\u2581x"] * 5, "sentencepiece"),
        (["\uffed.", "a", "(\uffed"], "joiner"),
        ([chr(i) for i in range(97, 230)] + ["\u2581", "madeupword0000"], "sentencepiece"),
        ([chr(i) for i in range(97, 230)] + ["|"], "letter"),  # chr(124) is among them, too
        ([chr(i) for i in range(0x4E00, 0x5E00)] + ["|", "\u2581"], "none"),  # Chinese words
        (["_a", "b", "_", "c"], "underscore"),
        (PLAIN + ["_", "_a", "|"], "none"),
        (PLAIN, "none"),
        (["a", "b", "@@", "c"], "none"),
        (["a", "b", "al@@"], "subword_nmt"),
        (["\u2581", "a", "b"], "sentencepiece"),
        (["\u2581a", "b@@", "\u0120"], "sentencepiece"),
        (["\u0120a", "b", "c"], "gpt2"),
        (["\u0120the", "\u0120a", "ing", "@@@@"], "gpt2"),  # GPT-2 has the piece "@@@@"
        (PLAIN + ["\u2581", "\u2581\u2581"], "none"),  # bars in web text
        (PLAIN + ["\u0120esù", "\u0120unju", "\u0120gantija"], "none"),  # Maltese
        (PLAIN + ["\u0120esù", "j@@"], "subword_nmt"),
        ([str(i) for i in range(200)], "none"),  # numbers that are words
        ([str(i) for i in range(257, 50257, 50)] + ["madeupword0000"], "gpt2"),
        ([str(i) for i in range(257, 50257, 50)] + PLAIN, "none"),
        (["²"] * 5, "none"),
    ],
)
def test_detection(symbols, scheme):
    assert detect_scheme(SPECIALS + symbols, 4) == scheme
