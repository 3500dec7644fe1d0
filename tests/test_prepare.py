"""The scripts that prepare text: what training reads is what the references say, line by line."""

import json
import math
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from fairseq_eisl.noise.gpt2 import byte_alphabet
from tests.test_scripts import bash
from tests.toy import ROOT, preprocess

PREPARE = ROOT / "scripts/prepare"
SPLITS = {"train": 200, "valid": 12, "test": 9}
WORDS = "the cat sat on a mat with two dogs under trees caf\u00e9 10\u00a0000 green".split(" ")
# White space of many kinds, characters that are none, marks of segmentations, fairseq's symbols.
ODD = [
    "10\u00a0000\u202feuros for \u300012\u2009kg",
    "y1 \r z",
    "a\tb\x1fc\u2028d\x85e\x0bf\x0cg",
    "ca\u200bt e\u0301 \u200d \ufeffx so\u00adft",
    "<s> </s> <pad> <unk> a<unk>b",
    "\u00a0 first and last \u3000",
    "\u2585 x@@ y ##z w</w>",
]


def write(folder: Path):
    """{train,valid,test}.{en,de}: the same plain lines on both sides, odd ones at other places."""
    folder.mkdir()
    for split, size in SPLITS.items():
        for side in ("en", "de"):
            lines = [
                " ".join(WORDS[(7 * i + j * j) % len(WORDS)] for j in range(3 + i % 5)) + f" {i}"
                for i in range(size)
            ]
            for number, odd in enumerate(ODD):
                lines[1 + number if side == "en" else size - 2 - number] += f" {odd}"
            end = "\r\n" if (split, side) == ("valid", "de") else "\n"
            text = end.join(lines) + ("" if (split, side) == ("test", "en") else end)
            mark = "\ufeff" if (split, side) == ("train", "en") else ""
            (folder / f"{split}.{side}").write_bytes((mark + text).encode())
    return folder


def words(path: Path) -> list:
    """The words of each line, as the rule has it."""
    text = path.read_bytes().decode().lstrip("\ufeff").replace("\r\n", "\n")
    return [line.split() for line in text.removesuffix("\n").split("\n")]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    return write(tmp_path_factory.mktemp("odd") / "text")


@pytest.fixture(scope="module")
def prepared(odd):
    """The folder that text.sh makes of it, and what it says."""
    folder = odd.parent / "prepared"
    done = bash(PREPARE / "text.sh", folder, "en", "de", "--data", odd)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


@pytest.fixture(scope="module")
def encoded(odd):
    """Pieces of the text as it is, not of the prepared one."""
    pytest.importorskip("sentencepiece")
    folder = odd.parent / "encoded"
    done = bash(PREPARE / "encode_sentencepiece.sh", odd, folder, "en", "de", 300, "\u2581<unk>")
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


def test_text_of_ones_own(odd, prepared):
    folder, said = prepared
    for split, size in SPLITS.items():
        for side in ("en", "de"):
            text = (folder / f"{split}.{side}").read_bytes().decode()
            assert text.endswith("\n") and len(text.splitlines()) == text.count("\n") == size
            assert [line.split(" ") for line in text.splitlines()] == words(odd / f"{split}.{side}")
    assert "test.en: " in said and f"of {SPLITS['test']} lines hold white space other" in said
    assert f"12 of {SPLITS['valid']} lines end as on Windows" in said
    assert f"valid: {SPLITS['valid']} pairs" in said


def test_pieces_are_reversible(odd, encoded):
    """What --remove-bpe sentencepiece gives back are the words of the text, in every line."""
    folder, said = encoded
    for split in SPLITS:
        for side in ("en", "de"):
            # As fairseq-preprocess reads it: universal line ends, pieces parted at any \s+.
            lines = (folder / f"{split}.{side}").read_text(encoding="utf-8").split("\n")
            assert lines.pop() == ""
            pieces = [line.split() for line in lines]
            text = ["".join(line).replace("\u2581", " ").split() for line in pieces]
            assert text == words(odd / f"{split}.{side}")
    assert "test.en: " in said and "hold white space other" in said


def test_a_perfect_copy_scores_100(odd, encoded, tmp_path):
    """Through fairseq-preprocess and the dictionary, scored against the text as it is."""
    from fairseq.data import Dictionary, data_utils

    preprocess_flags = ("--srcdict", str(encoded[0] / "dict.txt"), "--joined-dictionary")
    preprocess(encoded[0], tmp_path / "bin", *preprocess_flags)
    dictionary = Dictionary.load(str(tmp_path / "bin/dict.de.txt"))
    assert dictionary.index("\u2581<unk>") != dictionary.unk() and len(dictionary) % 8 == 0
    log = []
    for side in ("en", "de"):
        path = str(tmp_path / f"bin/test.en-de.{side}")
        data = data_utils.load_indexed_dataset(path, dictionary)
        assert len(data) == SPLITS["test"]
    for number in range(len(data)):
        text = dictionary.string(data[number], "sentencepiece", unk_string="<unk>")
        log.append(f"H-{number}\t-0.1\t{text}\n")
    (tmp_path / "log").write_text("".join(log), encoding="utf-8")
    references = [" ".join(line) for line in words(odd / "test.de")]
    assert [line.split("\t", 2)[2].strip() for line in log] == references
    # What a reader is shown of a reference with pieces' marks in its words is not of this test.
    (tmp_path / "reference").write_text(
        (odd / "test.de").read_bytes().decode().replace("x@@ ", "x "), encoding="utf-8", newline=""
    )
    (tmp_path / "log").write_text("".join(log).replace("x@@ ", "x "), encoding="utf-8")
    command = [sys.executable, "-m", "fairseq_eisl.evaluation", "score", "--log", tmp_path / "log"]
    command += ["--reference", tmp_path / "reference", "--rows", tmp_path / "rows.csv"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    head, row = (tmp_path / "rows.csv").read_text().splitlines()
    row = dict(zip(head.split(","), row.split(",")))
    assert float(row["bleu"]) == 100 and float(row["chrf"]) == 100 and float(row["ter"]) == 0


def test_gpt2_pieces_have_the_lines_of_the_text(odd, tmp_path):
    """With a BPE of GPT-2's kind: the bytes, and two merges."""
    from fairseq.data.encoders.gpt2_bpe_utils import get_encoder

    gpt2 = tmp_path / "bpe"
    gpt2.mkdir()
    encoder = {piece: i for i, piece in enumerate([*byte_alphabet(), "th", "the"])}
    (gpt2 / "encoder.json").write_text(json.dumps(encoder))
    (gpt2 / "vocab.bpe").write_text("#version: 0.2\nt h\nth e\n")
    done = bash(PREPARE / "encode_gpt2.sh", odd, tmp_path / "out", "en", "de", gpt2)
    assert done.returncode == 0, done.stderr
    assert "hold white space other" in done.stderr
    bpe = get_encoder(str(gpt2 / "encoder.json"), str(gpt2 / "vocab.bpe"))
    for split in SPLITS:
        for side in ("en", "de"):
            lines = (tmp_path / f"out/{split}.{side}").read_text().splitlines()
            text = [bpe.decode(map(int, line.split())) for line in lines]
            assert text == [" ".join(line) for line in words(odd / f"{split}.{side}")]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"{split}.{side}" for split in SPLITS for side in ("en", "de")} | {
        "encode.log"
    }


def test_a_stream_of_pieces(odd, encoded):
    """Standard input to standard output, by the same rule."""
    command = [sys.executable, PREPARE / "sentencepiece_bpe.py", "encode"]
    command += ["--model", encoded[0] / "bpe.model"]
    environment = {"PYTHONPATH": str(ROOT), "LC_ALL": "C", "PYTHONUTF8": "0"}

    def encode(data):
        return subprocess.run(command, input=data, capture_output=True, env=environment)

    done = encode((odd / "test.en").read_bytes())
    assert done.stdout == (encoded[0] / "test.en").read_bytes()
    assert b"standard input: 4 of 9 lines hold white space" in done.stderr
    assert done.stderr.count(b"\n") == 1
    done = encode(b"a\n\xff\n")
    assert done.returncode == 1 and b"standard input, line 2: no UTF-8 text" in done.stderr


def test_a_text_in_pieces_is_refused(encoded, tmp_path):
    done = bash(PREPARE / "text.sh", tmp_path / "out", "en", "de", "--data", encoded[0])
    assert done.returncode == 2 and "in sentencepieces already" in done.stderr


@pytest.fixture
def corpus(tmp_path):
    """A small plain corpus that a test may spoil."""
    folder = tmp_path / "text"
    folder.mkdir()
    for split in SPLITS:
        for side in ("en", "de", "fr"):
            (folder / f"{split}.{side}").write_text("a b c\nb c d\nc d e\n" * 3)
    return folder


@pytest.mark.parametrize(
    "script, flags",
    [
        ("text.sh", ["OUT", "en", "de", "--data", "TEXT"]),
        ("wmt.sh", ["OUT", "en", "de", "--data", "TEXT"]),
        ("encode_sentencepiece.sh", ["TEXT", "OUT", "en", "de", "30"]),
        ("encode_gpt2.sh", ["TEXT", "OUT", "en", "de", "BPE"]),
    ],
)
@pytest.mark.parametrize(
    "file, data, message",
    [
        ("valid.de", b"a\nb\n", "valid.de has 2: they must be translations of one another"),
        ("train.de", b"a\nb\xff\n", "train.de: line 2: no UTF-8 text"),
        ("test.de", b"", "has no file test.de (or an empty one)"),
    ],
)
def test_a_text_that_does_not_fit_is_one_line(corpus, script, flags, file, data, message):
    if script == "encode_sentencepiece.sh":
        pytest.importorskip("sentencepiece")
    (corpus / file).write_bytes(data)
    places = {"OUT": corpus.parent / "out", "TEXT": corpus, "BPE": corpus.parent / "bpe"}
    (corpus.parent / "bpe").mkdir()
    for name in ("encoder.json", "vocab.bpe"):  # texts are looked at before they are used
        (corpus.parent / "bpe" / name).write_text('{"a": 0}\n')
    done = bash(PREPARE / script, *(places.get(word, word) for word in flags))
    assert done.returncode == 2 and message in done.stderr
    if script.startswith("encode"):
        assert not (corpus.parent / "out").exists() or not any((corpus.parent / "out").iterdir())
    said = [line for line in done.stderr.splitlines() if not line.startswith(("[", "note: "))]
    assert len(said) == 1, done.stderr


@pytest.mark.parametrize("flags", [["30"], ["BPE"]], ids=["sentencepiece", "gpt2"])
@pytest.mark.parametrize("dest", ["text", "sub/../text", "link"])
def test_a_text_is_never_written_over_by_its_pieces(corpus, flags, dest):
    (corpus.parent / "sub").mkdir()
    (corpus.parent / "link").symlink_to(corpus)
    (corpus.parent / "BPE").mkdir()
    for name in ("encoder.json", "vocab.bpe"):
        (corpus.parent / "BPE" / name).write_text("{}\n")
    script = "encode_gpt2.sh" if flags == ["BPE"] else "encode_sentencepiece.sh"
    flags = [corpus.parent / word if word == "BPE" else word for word in flags]
    before = {path: path.read_bytes() for path in corpus.iterdir()}
    folder = corpus.parent / dest.replace("text", corpus.name)
    done = bash(PREPARE / script, corpus, folder, "en", "de", *flags)
    assert done.returncode == 2 and "the text would be written over" in done.stderr
    assert {path: path.read_bytes() for path in corpus.iterdir()} == before


def test_a_part_of_a_text(corpus, tmp_path):
    (corpus / "mono.train.de").write_bytes(b"m\tn\no\rp\n")
    (corpus / "mono.valid.de").write_bytes(b"q")
    flags = ("--data", corpus, "--size", 4, "--monolingual")
    done = bash(PREPARE / "text.sh", tmp_path / "out", "en", "de", *flags)
    assert done.returncode == 0, done.stderr
    lines = {p.name: p.read_text().count("\n") for p in (tmp_path / "out").iterdir()}
    assert lines.pop("mono.train.de") == 2 and lines.pop("mono.valid.de") == 1
    assert lines == {
        f"{split}.{s}": 4 if split == "train" else 9 for split in SPLITS for s in ("en", "de")
    }
    assert (tmp_path / "out/mono.train.de").read_text() == "m n\no p\n"


def test_six_files_wherever_they_lie(corpus, tmp_path):
    own = [tmp_path / f"my {name}" for name in "abcdef"]
    for number, path in enumerate(own):
        path.write_text(f"{number} x\n" * 3)
    done = bash(PREPARE / "text.sh", tmp_path / "out", "en", "de", "--files", *own, "--size", 2)
    assert done.returncode == 0, done.stderr
    names = [f"{split}.{side}" for split in ("train", "valid", "test") for side in ("en", "de")]
    for number, name in enumerate(names):
        lines = 2 if name.startswith("train") else 3
        assert (tmp_path / "out" / name).read_text() == f"{number} x\n" * lines


@pytest.mark.parametrize(
    "flags, message",
    [
        ([], "usage: text.sh DEST SOURCE TARGET --data DIR"),
        (["OUT", "en", "de"], "--data DIR is needed"),
        (["OUT", "en", "de", "--files", "TEXT"], "--files needs six files: of en and de in turns"),
        (["OUT", "en", "de", "--files", *"abcdef"], "--files: there is no file a"),
        (["OUT", "en", "de", "--data", "TEXT", "--files", *"abcdef"], "one of them is enough"),
        (["--data", "TEXT", "en"], "DEST, the folder to write to, comes first, not --data"),
        (["OUT", "en", "en", "--data", "TEXT"], "both en; two sides are needed"),
        (["OUT", "en", "a/b", "--data", "TEXT"], "not 'a/b'"),
        (["OUT", "en", "de", "--data", "nowhere"], "there is no folder nowhere"),
        (["OUT", "en", "nl", "--data", "TEXT"], "has no file train.nl"),
        (["OUT", "en", "de", "--data", "TEXT", "--size", "0"], "a whole number above 0, not '0'"),
        (["OUT", "en", "de", "--data", "TEXT", "--size", "10"], "has 9 lines, fewer than 10"),
        (["OUT", "en", "de", "--data", "TEXT", "--test", "x"], "unknown option --test"),
        (["OUT", "en", "de", "--data", "TEXT", "--monolingual"], "has no file mono.train.de"),
        (["TEXT", "en", "de", "--data", "TEXT"], "train.en: it would be written over"),
    ],
)
def test_wrong_options_of_text(corpus, flags, message):
    places = {"OUT": corpus.parent / "out", "TEXT": corpus}
    done = bash(PREPARE / "text.sh", *(places.get(word, word) for word in flags))
    assert done.returncode == 2 and message in done.stderr
    assert all(path.read_text() == "a b c\nb c d\nc d e\n" * 3 for path in corpus.iterdir())


# -- the blank of a dictionary ---------------------------------------------------------------


def spm(*arguments):
    pytest.importorskip("sentencepiece")
    command = [sys.executable, PREPARE / "sentencepiece_bpe.py", *map(str, arguments)]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("words", [5_000, 80_000])
def test_a_vocabulary_that_fits_the_text(tmp_path, words):
    """Six times the root of the words, beside the characters; a size far above that is told."""
    rng = Random(1)
    text = [" ".join(f"{rng.randrange(20_000):x}" for _ in range(10)) for _ in range(words // 10)]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in text))
    done = spm("train", "--size=auto", "--model", tmp_path / "m", tmp_path / "text")
    size = 17 + 6 * math.isqrt(words)  # 16 digits and the space
    assert done.returncode == 0 and f"{size} pieces for {words} words" in done.stderr
    assert (tmp_path / "m.vocab").read_text().count("\n") == size
    for given, said in ((4 * size, False), (4 * size + 1, True)):
        done = spm("train", f"--size={given}", "--model", tmp_path / "m", tmp_path / "text")
        assert done.returncode == 0 and (f"about {size} fit" in done.stderr) == said
    assert spm("train", "--size=many", "--model", tmp_path / "m", tmp_path / "text").returncode == 2


BLANKS = ["\u2581<unk>", "\u2581a/b", "\u2581&", "\u2581.*", "\u2581[", "\u2581\\1", "\u2581$HOME"]


@pytest.mark.parametrize("fillers", [0, 1, 3])
def test_a_blank_keeps_the_size_of_a_dictionary(tmp_path, fillers):
    """It takes a filler's place; without one it is appended, up to fairseq's next multiple of 8."""
    from fairseq.data import Dictionary

    pieces = [f"p{i}" for i in range(12 - fillers)] + [f"madeupword{i:04d}" for i in range(fillers)]
    path = tmp_path / "dict.en.txt"
    path.write_text("".join(f"{p} {0 if p.startswith('m') else 9}\n" for p in pieces))
    blank = BLANKS[fillers]
    done = spm("blank", f"--symbol={blank}", path, tmp_path / "dict.txt")
    assert done.returncode == 0, done.stderr
    old, new = Dictionary.load(str(path)), Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(old) == 16 and len(new) == (16 if fillers else 24)
    assert new.index(blank) == 16 - (fillers or 0)
    same = len(old) - fillers
    assert new.symbols[:same] == old.symbols[:same]
    assert new.symbols[new.index(blank) + 1 :] == (
        old.symbols[same + 1 :] or [f"madeupword{i:04d}" for i in range(0 if fillers else 7)]
    )


@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_is_taken_as_it_is(tmp_path, blank):
    (tmp_path / "dict").write_text("a 1\nmadeupword0000 0\n")
    assert spm("blank", f"--symbol={blank}", tmp_path / "dict", tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"a 1\n{blank} 0\n"


@pytest.mark.parametrize(
    "blank, message",
    [
        ("", "the blank must be one word"),
        (" ", "the blank must be one word"),
        ("\u2581", "the blank must be one word"),
        ("\u2581a b", "the blank must be one word"),
        ("\u2581a\u2581b", "the blank must be one word"),
        ("\u2581a\u00a0", "the blank must be one word"),
        ("unk", "must begin with \u2581 (U+2581), as \u2581unk"),
        ("<unk>", "a symbol of fairseq's own"),
        ("\u2581the", "a piece of the text already"),
    ],
)
def test_a_blank_that_cannot_be_one(tmp_path, blank, message):
    (tmp_path / "dict").write_text("a 1\n\u2581the 1\nmadeupword0000 0\n", encoding="utf-8")
    done = spm("blank", f"--symbol={blank}", tmp_path / "dict", tmp_path / "out")
    assert done.returncode == 1 and message in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
    # Known before anything is learnt, or at least before anything is written.
    (tmp_path / "text").write_text("the cat the dog the\n" * 9)
    done = spm(
        "train", "--size=40", "--model", tmp_path / "m", f"--blank={blank}", tmp_path / "text"
    )
    assert done.returncode == 1 and message in done.stderr
    assert not list(tmp_path.glob("*m.*"))


@pytest.mark.parametrize(
    "text, size, message",
    [
        ("the cat\n" * 9, 3, "3 pieces are too few: the text needs 9 for its characters"),
        ("the cat\n", 0, "--size: more than 3 pieces are needed"),
        ("\n \n", 30, "text: there is no word to learn from"),
        ("", 30, "text: the file is empty"),
    ],
)
def test_a_text_that_teaches_nothing(tmp_path, text, size, message):
    (tmp_path / "text").write_text(text)
    done = spm("train", f"--size={size}", "--model", tmp_path / "m", tmp_path / "text")
    assert done.returncode == 1 and message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
