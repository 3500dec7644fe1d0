"""Words over GPT-2's pieces, as symbols and as numbers."""

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
from tests.noise.word_texts import SEEDS, SENTENCES, SPECIALS, UNK, Text

GPT2 = Path(__file__).resolve().parents[2].parent / "shared/data/gpt2_bpe"

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
