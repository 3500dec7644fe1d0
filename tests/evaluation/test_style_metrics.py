"""What rewritten sentences are scored with: nouns, people's references, vectors of words."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.metrics.perplexity import perplexity
from fairseq_eisl.evaluation.metrics.pos_distance import noun_distance, pos_distance
from fairseq_eisl.evaluation.word_vectors import WordVectors, read_word_vectors, train_word_vectors

from .logs import generation_log

TABLE = WordVectors({"soup": 0, "wine": 1, "staff": 2}, np.eye(3, dtype=np.float32), "vectors:x")


@pytest.mark.parametrize(
    "source, output, expected",
    [
        # Distances 1 and 18 ** .5: the least one, times 1 + |2 - 1| / 2.
        ([(0, 0), (3, 4)], [(0, 1)], 1.5),
        # The nearest vector serves twice: 1 and 1, no difference in number.
        ([(0, 0), (0, 2)], [(0, 1), (9, 9)], 1.0),
        # One noun of the source, two of the output: least 0, nothing to multiply.
        ([(1, 1)], [(1, 1), (5, 5)], 0.0),
        # 5, times 1 + |1 - 3| / 1.
        ([(0, 0)], [(3, 4), (30, 40), (30, 41)], 15.0),
    ],
)
def test_worked_out_distances(source, output, expected):
    found = noun_distance(np.array(source, float), np.array(output, float))
    assert found == pytest.approx(expected)


def test_without_a_noun_on_one_side_there_is_no_distance():
    assert noun_distance(np.zeros((0, 2)), np.ones((1, 2))) is None
    assert noun_distance(np.ones((1, 2)), np.zeros((0, 2))) is None


def nouns_of_the_table(monkeypatch):
    """A tagger that needs no package: what has a vector is a noun, and so is 'menu'."""
    where = "fairseq_eisl.evaluation.metrics.pos_distance.nouns"
    monkeypatch.setattr(where, lambda words: [w in TABLE.places or w == "menu" for w in words])


def test_the_corpus_distance_and_what_it_skips(monkeypatch):
    nouns_of_the_table(monkeypatch)
    sources = ["the soup is bad", "the menu was poor", "soup and wine", "staff"]
    outputs = ["the soup is good", "the menu was fine", "wine", "it is good"]
    found = pos_distance(outputs, sources, TABLE)
    # 0; skipped (no vector); 0 x 1.5; skipped (no noun).
    assert found.distance == 0 and found.skipped == 50
    other = pos_distance(["wine"], ["soup"], TABLE)
    assert other.distance == pytest.approx(2**0.5) and other.skipped == 0
    assert "vectors:x" in other.signature
    nothing = pos_distance(["good"], ["soup"], TABLE)
    assert np.isnan(nothing.distance) and nothing.skipped == 100


def test_the_tagger_knows_nouns():
    pytest.importorskip("textblob", reason="nouns need textblob")
    from fairseq_eisl.common.part_of_speech import nouns

    words = "the food was great and two waiters in Boston brought wine .".split()
    assert [w for w, noun in zip(words, nouns(words)) if noun] == ["food", "wine"]
    assert nouns([]) == []


def test_the_tagger_is_named_where_it_is_missing(monkeypatch):
    from fairseq_eisl.common.part_of_speech import nouns

    monkeypatch.setitem(sys.modules, "textblob.en", None)
    with pytest.raises(ValueError, match="tagging words needs textblob: pip install textblob"):
        nouns(["food"])


def corpus():
    """Words that stand in like places are alike: soup and stew are warm, ale and wine cold."""
    rng = np.random.default_rng(1)
    warm, cold = ("soup", "stew"), ("ale", "wine")
    lines = []
    for _ in range(400):
        kind = rng.integers(2)
        word, say = (warm, "hot tasty") if kind else (cold, "chilled fizzy")
        lines.append(f"the {say} {word[rng.integers(2)]} came".split())
    return lines


def test_trained_vectors_tell_what_stands_in_like_places():
    found = train_word_vectors(corpus(), "text", size=6)
    soup, stew, ale = found.of(["soup", "stew", "ale"])
    assert np.linalg.norm(soup - stew) < 0.5 * np.linalg.norm(soup - ale)
    norms = np.linalg.norm(found.rows[list(found.places.values())], axis=1)
    assert norms == pytest.approx(1, abs=1e-5)
    again = train_word_vectors(corpus(), "text", size=6)
    assert np.array_equal(again.rows, found.rows)
    assert len(found.of(["soup", "nothing"])) == 1


def test_vectors_of_a_file_or_of_a_text(tmp_path):
    path = tmp_path / "glove.txt"
    rows = "".join(f"{w} {' '.join(['0.5'] * 9)} {i}.25\n" for i, w in enumerate("abc"))
    path.write_text(rows)
    found = read_word_vectors(str(path))
    assert found.of(["c"])[0, -1] == 2.25 and found.about == "vectors:glove.txt-10"
    path.write_text("3 10\n" + rows)
    assert np.array_equal(read_word_vectors(str(path)).rows, found.rows)
    path.write_text(rows + "d 1 2\n")
    with pytest.raises(ValueError, match="line 4: a word and as many numbers as before it"):
        read_word_vectors(str(path))
    text = tmp_path / "text"
    text.write_text("".join(" ".join(words) + "\n" for words in corpus()))
    assert read_word_vectors(str(text)).about.startswith("vectors:ppmi-svd-")
    text.write_text("a\nb\n")
    with pytest.raises(ValueError, match="no two words of the text stand beside each other"):
        read_word_vectors(str(text))


@pytest.mark.parametrize("between", [" ", "\t", "  "])
def test_vectors_are_found_whatever_parts_their_numbers(tmp_path, between):
    path = tmp_path / "vectors"
    words = ["10\u00a0000", "wine", "2"]
    rows = [between.join([word, *["0.5"] * 9, f"{i}.25"]) for i, word in enumerate(words)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = read_word_vectors(str(path))
    assert list(found.places) == words and found.about == "vectors:vectors-10"
    assert found.of(["wine"])[0, -1] == 1.25


@pytest.mark.parametrize("head, line", [("", 2), ("2 10\n", 3)])
def test_a_wrong_line_of_vectors_is_that_of_the_file(tmp_path, head, line):
    path = tmp_path / "vectors"
    path.write_text(f"{head}a {'0.5 ' * 10}\nb 0.5\n")
    with pytest.raises(ValueError, match=f"vectors: line {line}: a word and as many numbers"):
        read_word_vectors(str(path))


@pytest.mark.parametrize("head", ["", "3 5\n"])
def test_vectors_that_are_too_short_are_not_taken_for_a_text(tmp_path, head):
    path = tmp_path / "vectors"
    lines = "".join(f"{word} 0.1 0.2 0.{i} 1e-3 -1\n" for i, word in enumerate("abc"))
    path.write_text(head + lines + "\n")
    with pytest.raises(ValueError, match="vectors: every line is a word and numbers .5 in the "
                       "first.: no plain text, and vectors have 10 numbers or more"):  # fmt: skip
        read_word_vectors(str(path))
    path.write_text(lines * 9 + "a b c came\n")
    assert read_word_vectors(str(path)).about.startswith("vectors:ppmi-svd-")


def test_scores_have_the_distance_and_peoples_references(tmp_path, monkeypatch, capsys):
    nouns_of_the_table(monkeypatch)
    texts = {
        "log": generation_log(["the soup is good", "wine is good here"]),
        "source": "the soup is bad\nwine is bad here\n",
        "human": "the soup is good\nthe wine here is good\n",
        "vectors": "".join(f"{w} {' '.join(['0.5'] * 9)} {i}\n" for w, i in TABLE.places.items()),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    flags = ["score", "--log", f"{tmp_path}/log", "--reference", f"{tmp_path}/source"]
    people = ["--human-reference", f"{tmp_path}/human"]
    assert main([*flags, *people, "--word-vectors", f"{tmp_path}/vectors"]) == 0
    said = capsys.readouterr().out
    assert "BLEU human " in said and "POS distance 0.000, 0.0 % skipped (pos|NN|" in said
    (tmp_path / "human").write_text("one line\n")
    with pytest.raises(SystemExit):
        main([*flags, *people])
    assert "human: 1 lines for the 2 hypotheses" in capsys.readouterr().err
    (tmp_path / "checkpoint.pt").write_text("x")
    with pytest.raises(SystemExit):
        main([*flags, "--style-classifier", f"{tmp_path}/checkpoint.pt"])
    assert "needs --wanted-styles FILE" in capsys.readouterr().err
    judge = ["--style-classifier", f"{tmp_path}/checkpoint.pt", "--wanted-styles"]
    for name, words in (("none", "No such file"), ("human", "1 lines for the 2 hypotheses")):
        with pytest.raises(SystemExit):
            main([*flags, *judge, f"{tmp_path}/{name}"])
        error = capsys.readouterr().err
        assert f"error: --wanted-styles {tmp_path}/{name}: {words}" in error


class FakeGPT2:
    """Stands in for transformers: letters are pieces, and every piece is as likely."""

    bos_token_id = 0

    @classmethod
    def from_pretrained(cls, folder, local_files_only):
        if not any(Path(folder).iterdir()):
            raise OSError("nothing there\nmore of it")
        return cls()

    def eval(self):
        return self

    def __call__(self, text):
        if isinstance(text, str):
            return {"input_ids": [ord(letter) % 50 for letter in text]}
        import torch

        return SimpleNamespace(logits=torch.zeros(*text.shape, 50))


def test_perplexity_by_a_folder_of_weights(tmp_path, monkeypatch):
    fake = SimpleNamespace(AutoModelForCausalLM=FakeGPT2, AutoTokenizer=FakeGPT2)
    monkeypatch.setitem(sys.modules, "transformers", fake)
    folder = tmp_path / "gpt2"
    folder.mkdir()
    with pytest.raises(ValueError, match="gpt2: no language model of transformers: nothing there$"):
        perplexity(["a b"], str(folder))
    (folder / "config.json").write_text("{}")
    found = perplexity(["a b", "", "soup"], str(folder))
    assert found.score == pytest.approx(50, rel=1e-5)
    assert found.signature.startswith("perplexity|gpt2|unit:piece+end|")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ValueError, match="needs transformers: pip install transformers"):
        perplexity(["a b"], str(folder))
    with pytest.raises(OSError):
        perplexity(["a b"], str(tmp_path / "nothing.pt"))
