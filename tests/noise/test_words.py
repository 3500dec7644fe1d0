"""Words over sub-word pieces: noise never takes a piece from its word."""

import json
from pathlib import Path
from random import Random

import pytest

from fairseq_eisl.noise import (
    Context,
    WordUnits,
    detect_scheme,
    example_rng,
    parse_noise,
    read_gpt2_encoder,
)
from fairseq_eisl.noise.gpt2 import Speller, byte_alphabet

GPT2 = Path(__file__).resolve().parents[2].parent / "shared/data/gpt2_bpe"
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
UNK = 3
SEEDS = range(1000)
SENTENCES = [
    "Two young, White males are outside near many bushes.",
    "a man in a blue shirt is standing on a ladder cleaning a window .",
    "The the THE the antidisestablishmentarianism of words",
    "unbelievable undoing",
    "hello",
]


class Text:
    """A dictionary with its word units, between symbols and ids."""

    def __init__(self, scheme, pieces, names=None):
        self.symbols = SPECIALS + pieces
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols)}
        self.units = WordUnits(self.symbols, 4, UNK, scheme, names)
        self.scheme, self.names = scheme, names or {}
        self.vocabulary = self.units.vocabulary()

    def encode(self, pieces):
        pieces = pieces.split() if isinstance(pieces, str) else pieces
        return [self.ids.get(piece, UNK) for piece in pieces]

    def pieces(self, ids):
        return [self.names.get(self.symbols[i], self.symbols[i]) for i in ids]

    def words(self, ids):
        """The words a reader sees after detokenisation."""
        pieces = self.pieces(ids)
        if self.scheme in ("none", "subword_nmt", "wordpiece", "joiner"):
            text = (" ".join(pieces) + " ").replace("@@ ", "").replace(" ##", "")
            return text.replace("\uffed ", "").replace(" \uffed", "").split()
        marks = {"gpt2": "\u0120", "end_of_word": "</w>", "eow": "_EOW", "underscore": "_"}
        marks["letter"] = "|"
        text = "".join(pieces).replace(marks.get(self.scheme, "\u2581"), " ")
        if self.scheme == "gpt2":
            text = text.replace("<unk>", " <unk> ")  # it has no piece with a space
        if self.scheme in ("end_of_word", "eow"):
            text = text.replace("<unk>", "<unk> ")  # nothing says more of it
        return text.split()

    def corrupt(self, ids, spec, seed=1, blank=UNK):
        noise = parse_noise(spec)
        context = Context(self.units.blank(blank), self.vocabulary)
        words = noise(self.units.split(ids), example_rng(seed, 0), context)
        return self.units.join(words, ids, context.blank)

    def check(self, sentences):
        """What must hold of every segmentation; sentences are lists of ids."""
        rates = {name: [0, 0] for name in ("first moved", "last moved", "blanked")}
        for seed in SEEDS:
            ids = sentences[seed % len(sentences)]
            words = self.words(ids)
            assert [i for word in self.units.split(ids) for i in word] == ids
            assert self.corrupt(ids, "repeat:0,shuffle:0,blank:0,drop:0,synthetic:0", seed) == ids
            noisy = self.words(self.corrupt(ids, "shuffle:all", seed))
            assert sorted(noisy) == sorted(words)
            if len(set(words)) == len(words):
                for name, position in (("first moved", 0), ("last moved", -1)):
                    rates[name][0] += noisy[position] != words[position]
                    rates[name][1] += 1 - 1 / len(words)
            twice = [w for w in words for _ in range(2)]
            assert self.words(self.corrupt(ids, "repeat:1", seed)) == twice
            kept = iter(words)  # a subsequence of the words, none of them torn
            assert all(w in kept for w in self.words(self.corrupt(ids, "drop:0.5", seed)))
            blanked = self.words(self.corrupt(ids, "blank:0.5", seed))
            assert len(blanked) == len(words)
            for new, old in zip(blanked, words):
                assert new in (old, "<unk>")
                rates["blanked"][0] += 2 * (new != old)
                rates["blanked"][1] += old != "<unk>"
        for name, (seen, expected) in rates.items():
            assert seen / expected == pytest.approx(1, abs=0.05), name


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


# -- GPT-2 -----------------------------------------------------------------------------------

GPT2_PIECES = [
    *("hel", "lo", "\u0120hel", "\u0120wor", "ld", "wor", "\u0120", "!", "\u0120a", "a", "<|e|>"),
]


@pytest.fixture(params=["symbols", "numbers"])
def gpt2_text(request, tmp_path):
    """GPT-2 pieces as symbols, and as the numbers of an encoder.json."""
    if request.param == "symbols":
        return Text("gpt2", GPT2_PIECES)
    path = tmp_path / "encoder.json"
    path.write_text(json.dumps({piece: i + 20 for i, piece in enumerate(GPT2_PIECES)}))
    numbers = [str(i + 20) for i in range(len(GPT2_PIECES))]
    return Text("gpt2", [*numbers, "madeupword0000"], read_gpt2_encoder(str(path)))


def test_gpt2(gpt2_text):
    ids = {piece: i for i, piece in enumerate(GPT2_PIECES, 4)}

    def encode(line):
        return [ids.get(piece, UNK) for piece in line.split()]

    hello_world_a = encode("hel lo \u0120wor ld \u0120a")
    assert gpt2_text.units.split(hello_world_a) == [(4, 5), (7, 8), (12,)]
    gpt2_text.check(
        [
            hello_world_a,
            encode("! \u0120hel lo ! \u0120a"),  # "!" has no piece with a space
            encode("\u0120a \u0120wor ld !"),  # starts with a space, and keeps it
            encode("a zzz \u0120a"),
        ]
    )
    # The first word gets the space it lacked, the new first word loses its own.
    assert gpt2_text.corrupt(encode("hel lo \u0120wor ld"), "shuffle:1") == encode(
        "wor ld \u0120hel lo"
    )
    assert gpt2_text.corrupt(encode("! \u0120a"), "shuffle:1") == encode("a \u0120 !")
    assert gpt2_text.corrupt(encode("a \u0120 !"), "shuffle:1") == encode("! \u0120a")
    assert gpt2_text.corrupt(encode("\u0120a \u0120hel"), "shuffle:1") == encode(
        "\u0120hel \u0120a"
    )
    assert gpt2_text.corrupt(encode("hel lo \u0120a"), "repeat:1") == encode(
        "hel lo \u0120hel lo \u0120a \u0120a"
    )
    drawn = [w for (w,) in gpt2_text.units.vocabulary()]
    assert drawn == encode("\u0120hel \u0120wor \u0120a")
    # A blank that carries no space itself stays apart from its neighbours.
    noisy = gpt2_text.corrupt(hello_world_a, "blank:1", blank=ids["<|e|>"])
    assert gpt2_text.words(noisy) == ["<|e|>"] * 3


@pytest.fixture
def spelled():
    """A small BPE of GPT-2's kind: the bytes, then merges in the order they were learnt."""
    merges = ["\u0120h", "el", "lo", "\u0120w", "or", "ld", "\u0120wor", "\u0120world", "hel"]
    merges += ["\u0120hel", "\u0120hello", "\u0120a", "'s"]
    encoder = {piece: i for i, piece in enumerate([*byte_alphabet(), *merges])}
    names = {str(i): piece for piece, i in encoder.items()}
    return Text("gpt2", list(names), names), Speller(encoder)


def test_gpt2_words_are_spelled_anew(spelled):
    """Noise on ids equals the ids of noisy text, at the start of a sentence and within it."""
    text, speller = spelled
    numbers = {piece: number for number, piece in text.names.items()}

    def encode(line):
        first, *rest = line.replace("\u00e9", "\u00c3\u00a9").split(" ")
        pieces = [p for word in [first, *("\u0120" + w for w in rest)] for p in speller.spell(word)]
        return text.encode([numbers[piece] for piece in pieces])

    assert text.pieces(encode("hello hello")) == ["hel", "lo", "\u0120hello"]
    assert text.pieces(encode("world world a's 's")) == [
        *("w", "or", "ld", "\u0120world", "\u0120a", "'s", "\u0120", "'", "s")
    ]
    noise = parse_noise("shuffle:all,repeat:0.3")
    lines = ["hello world", "world a caf\u00e9 hello .", "a's world !", "caf\u00e9 hello a 's"]
    for seed in SEEDS:
        line = lines[seed % len(lines)]
        noisy = noise(line.split(), example_rng(seed, 0), Context("unk"))
        assert text.corrupt(encode(line), noise.text, seed) == encode(" ".join(noisy))
    assert speller.spell("a\u00a0b") is None  # a character outside the alphabet of bytes
    assert speller.spell("\u00e9") is None  # no UTF-8
    assert speller.spell("a\u0120b") is None  # two words


def test_gpt2_without_ranks_loses_the_mark_as_well():
    """Symbols alone do not tell the merges; pieces that cover the word do."""
    text = Text("gpt2", ["a", "\u0120world", "wor", "l", "d", "\u0120", "ld"])
    assert text.pieces(text.corrupt(text.encode("a \u0120world"), "shuffle:1")) == [
        *("wor", "ld", "\u0120", "a")
    ]
    # A blank stays one symbol, wherever it stands.
    blanked = text.corrupt(text.encode("a \u0120world"), "blank:1", blank=text.ids["\u0120world"])
    assert text.pieces(blanked) == ["\u0120world"] * 2


def test_encoder_json_that_does_not_fit(tmp_path):
    path = tmp_path / "encoder.json"
    for bad in ("", "[1]", "{}", "l o\nw e", "\ufffd"):
        path.write_text(bad)
        with pytest.raises(ValueError, match=r"encoder\.json is not a GPT-2 encoder\.json"):
            read_gpt2_encoder(str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not a GPT-2"):
        read_gpt2_encoder(str(path))
    with pytest.raises(ValueError, match="no piece for 2 of the dictionary's numbers, such as 7"):
        WordUnits(SPECIALS + ["7", "8", "9", "madeupword0000"], 4, UNK, "gpt2", {"9": "a"})


def test_gpt2_of_bart():
    """The dictionary of BART: 50,260 symbols, numbers of GPT-2's encoder.json."""
    if not GPT2.is_dir():
        pytest.skip(f"no GPT-2 files in {GPT2}")
    names = read_gpt2_encoder(str(GPT2 / "encoder.json"))
    lines = (GPT2 / "dict.txt").read_text(encoding="utf-8").splitlines()
    symbols = [line.split()[0] for line in lines]
    assert detect_scheme(SPECIALS + symbols, 4) == "gpt2"
    text = Text("gpt2", symbols, names)
    numbers = {piece: number for number, piece in names.items()}

    def encode(line):
        """Pieces cut at random, so that words come in several pieces."""
        rng, out, rest = Random(line), [], line.replace(" ", "\u0120")
        while rest:
            fit = [n for n in range(1, 9) if rest[:n] in numbers and "\u0120" not in rest[1:n]]
            out.append(numbers[rest[: rng.choice(fit[-3:])]])
            rest = rest[len(names[out[-1]]) :]
        return text.encode(out)

    sentences = [encode(s) for s in SENTENCES]
    assert [text.words(ids) for ids in sentences] == [s.split() for s in SENTENCES]
    text.check(sentences)
    assert all(names[symbols[i - 4]][0] == "\u0120" for (i,) in text.units.vocabulary())
    for ids in sentences:  # only the first word of a sentence lacks the mark
        for seed in range(50):
            first, *rest = text.units.split(text.corrupt(ids, "shuffle:all", seed))
            assert "\u0120" not in "".join(text.pieces(first))
            assert all(text.pieces(word)[0].startswith("\u0120") for word in rest)


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
