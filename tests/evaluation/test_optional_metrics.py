import sys
import types

import pytest

from fairseq_eisl.evaluation.metrics.bleu import bleu
from fairseq_eisl.evaluation.metrics.bleu_detok import detokenize, detokenized_bleu
from fairseq_eisl.evaluation.metrics.bleurt import bleurt

TOKENISED = ["a man , in a hat .", "it is red ."]
PLAIN = ["a man, in a hat.", "it is red."]


@pytest.fixture
def moses(monkeypatch):
    """Stands in for sacremoses, which the tests do not install."""
    languages = []

    class MosesDetokenizer:
        def __init__(self, lang):
            languages.append(lang)

        def detokenize(self, words):
            return " ".join(words).replace(" ,", ",").replace(" .", ".")

    module = types.SimpleNamespace(MosesDetokenizer=MosesDetokenizer)
    monkeypatch.setitem(sys.modules, "sacremoses", module)
    return languages


@pytest.fixture
def scorer(monkeypatch):
    """Stands in for bleurt: the share of equal words."""

    class BleurtScorer:
        def __init__(self, checkpoint):
            self.checkpoint = checkpoint

        def score(self, *, references, candidates):
            pairs = [(r.split(), c.split()) for r, c in zip(references, candidates)]
            return [sum(a == b for a, b in zip(r, c)) / len(r) for r, c in pairs]

    score = types.SimpleNamespace(BleurtScorer=BleurtScorer)
    monkeypatch.setitem(sys.modules, "bleurt", types.SimpleNamespace(score=score))
    monkeypatch.setitem(sys.modules, "bleurt.score", score)


def test_detokenised_text_is_scored_with_13a(moses):
    assert detokenize(TOKENISED, "de") == PLAIN
    score = detokenized_bleu(TOKENISED, PLAIN, "de")
    assert score.score == pytest.approx(100.0) and moses == ["de", "de"]
    assert "tok:13a|" in score.signature and "|detok:sacremoses-de-" in score.signature
    assert score.signature.startswith(bleu(PLAIN, PLAIN, "13a").signature)


def test_case_counts_unless_lowered(moses):
    upper = [text.upper() for text in PLAIN]
    assert detokenized_bleu(TOKENISED, upper).score < 20
    assert detokenized_bleu(TOKENISED, upper, lowercase=True).score == pytest.approx(100.0)


def test_the_real_sacremoses():
    pytest.importorskip("sacremoses", reason="not installed with the tests")
    assert detokenize(['a man &apos;s bike , " nice " ( red ) .']) == [
        'a man\'s bike, "nice" (red).'
    ]


def test_bleurt_is_the_mean_of_the_sentences(scorer, tmp_path):
    folder = tmp_path / "BLEURT-20"
    folder.mkdir()
    score = bleurt(["a b", "a b c d"], ["a x", "a b c d"], f"{folder}/")
    assert score.score == 0.75
    assert score.signature.startswith("bleurt|checkpoint:BLEURT-20|mean:sentences|version:")


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    for name in ("sacremoses", "bleurt", "bleurt.score"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match="needs sacremoses: pip install sacremoses"):
        detokenized_bleu(TOKENISED, PLAIN)
    with pytest.raises(ValueError, match="needs the package bleurt"):
        bleurt(TOKENISED, PLAIN, str(tmp_path))
    with pytest.raises(ValueError, match="none: no folder with a BLEURT checkpoint"):
        bleurt(TOKENISED, PLAIN, "none")


@pytest.mark.parametrize("score", [detokenized_bleu, lambda h, r: bleurt(h, r, ".")])
def test_wrong_inputs_are_refused(score):
    with pytest.raises(ValueError, match="2 hypotheses for 1 references"):
        score(TOKENISED, PLAIN[:1])
    with pytest.raises(ValueError, match="no sentences"):
        score([], [])


@pytest.mark.parametrize("whole", [False, True])
def test_a_failure_inside_bleurt_is_one_line(scorer, monkeypatch, tmp_path, whole):
    class Broken:
        def __init__(self, checkpoint):
            raise RuntimeError("no variables\nand more")

    monkeypatch.setattr(sys.modules["bleurt.score"], "BleurtScorer", Broken)
    if whole:
        (tmp_path / "bleurt_config.json").write_text("{}")
    expected = "BLEURT failed: RuntimeError: no variables$" if whole else "no BLEURT checkpoint"
    with pytest.raises(ValueError, match=expected):
        bleurt(["a"], ["a"], str(tmp_path))
