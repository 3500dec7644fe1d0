import json
import math
import subprocess
import sys

import pytest

from fairseq_eisl.evaluation.metrics.bleu import TOKENIZERS, bleu
from fairseq_eisl.evaluation.metrics.chrf import chrf
from fairseq_eisl.evaluation.metrics.length import length_error, length_ratio
from fairseq_eisl.evaluation.metrics.repetition import repetition_rate
from fairseq_eisl.evaluation.metrics.ter import ter
from fairseq_eisl.evaluation.metrics.texts import WORD_SIGNATURE
from fairseq_eisl.evaluation.metrics.unk import unk_rate

HYPOTHESES = [
    "ein mann fährt auf einem fahrrad .",
    "",
    "a man rides a a bike .",
    "東京 の 猫 — “ quoted ” …",
    "Two Dogs run , and run , in THE field .",
]
REFERENCES = [
    "ein mann fährt mit einem fahrrad .",
    "nothing was said .",
    "a man rides a bike .",
    "東京 の 犬 — “ quoted ” …",
    "two dogs run in the field .",
]


@pytest.mark.parametrize("tokenize", TOKENIZERS)
@pytest.mark.parametrize("lowercase", [False, True])
def test_signature_says_what_changes_the_score(tokenize, lowercase):
    signature = bleu(HYPOTHESES, REFERENCES, tokenize, lowercase).signature
    assert (
        f"tok:{tokenize}|" in signature and f"case:{'lc' if lowercase else 'mixed'}|" in signature
    )


@pytest.mark.parametrize("options", [["none"], ["13a", "-lc"]])
def test_bleu_equals_the_sacrebleu_command(tmp_path, options):
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-w", "6", "--force"]
    done = subprocess.run(
        [*command, "--tokenize", *options], cwd=tmp_path, stdout=subprocess.PIPE, check=True
    )
    theirs = json.loads(done.stdout)
    ours = bleu(HYPOTHESES, REFERENCES, options[0], lowercase="-lc" in options)
    assert ours.score == pytest.approx(theirs["score"], abs=1e-5)
    assert ours.signature == theirs["signature"]


@pytest.mark.parametrize(
    "score, options", [(chrf, ["chrf"]), (ter, ["ter", "--ter-case-sensitive"])]
)
def test_chrf_and_ter_equal_the_sacrebleu_command(tmp_path, score, options):
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "hyp", "-w", "6", "-m", *options]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    theirs = json.loads(done.stdout)
    ours = score(HYPOTHESES, REFERENCES)
    assert ours.score == pytest.approx(theirs["score"], abs=1e-5)
    assert ours.signature == theirs["signature"]


@pytest.mark.parametrize("score, same", [(chrf, 100.0), (ter, 0.0)])
def test_the_case_of_chrf_and_ter_counts_unless_lowered(score, same):
    text, upper = ["a man rides a bike ."], ["A MAN RIDES A BIKE ."]
    assert score(text, text).score == pytest.approx(same)
    assert score(upper, text).score != pytest.approx(same)
    assert "case:mixed|" in score(upper, text).signature
    assert score(upper, text, lowercase=True).score == pytest.approx(same)
    assert "case:lc|" in score(upper, text, lowercase=True).signature


def test_ter_counts_edits_and_moves():
    """One insertion of 4 words; a block moved is one edit; 4 superfluous words of 2."""
    assert ter(["a b d"], ["a b c d"]).score == 25.0
    assert ter(["c d a b"], ["a b c d"]).score == 25.0
    assert ter(["a b x x x x"], ["a b"]).score == 200.0


def test_empty_hypotheses_have_a_chrf_and_a_ter():
    assert chrf([""], ["a b"]).score == 0.0
    assert ter([""], ["a b"]).score == 100.0


def test_identical_texts():
    score = bleu(REFERENCES, REFERENCES)
    assert score.score == pytest.approx(100.0)
    assert score.brevity_penalty == 1.0
    assert score.system_length == score.reference_length == 32
    assert length_ratio(REFERENCES, REFERENCES) == 1.0


def test_lengths_and_brevity_penalty():
    """4 words for 8: exp(1 - 8/4)."""
    score = bleu(["a b c d"], ["a b c d e f g h"])
    assert (score.system_length, score.reference_length) == (4, 8)
    assert score.brevity_penalty == pytest.approx(math.exp(-1))
    assert score.score == pytest.approx(100 * math.exp(-1))
    assert length_ratio(["a b c d"], ["a b c d e f g h"]) == 0.5


def test_lower_casing_is_off_unless_asked_for():
    text, upper = ["a man rides a bike ."], ["A MAN RIDES A BIKE ."]
    assert bleu(upper, text).score < 50
    assert bleu(upper, text, lowercase=True).score == pytest.approx(100.0)


def test_tokenised_text_draws_no_warning_and_plain_scoring_of_it_does(caplog):
    lines = ["a man sits ."] * 100
    bleu(lines, lines)
    assert not caplog.records
    bleu(lines, lines, tokenize="13a")
    assert "detokenize" in caplog.text


@pytest.mark.parametrize("hypotheses", [[""], ["", ""], ["x y z"]])
def test_nothing_in_common_is_zero(hypotheses):
    assert bleu(hypotheses, ["a b c d"] * len(hypotheses)).score == 0.0


@pytest.mark.parametrize("score", [bleu, chrf, ter, length_error, length_ratio])
@pytest.mark.parametrize(
    "hypotheses, references, message",
    [
        (["a"] * 3, ["a"] * 4, "3 hypotheses for 4 references"),
        ([], ["a"], "0 hypotheses for 1 references"),
        ([], [], "no sentences"),
        ("a man", ["a man"], "not one string"),
        (["a man"], "a man", "not one string"),
    ],
)
def test_wrong_inputs_are_refused(score, hypotheses, references, message):
    with pytest.raises(ValueError, match=message):
        score(hypotheses, references)


def test_unknown_tokenizer_names_the_choices():
    with pytest.raises(ValueError, match="none, 13a, intl.*'moses'"):
        bleu(["a"], ["a"], tokenize="moses")


@pytest.mark.parametrize(
    "texts, percentage",
    [
        (["a a b b b c"], 50.0),  # 3 of 6
        (["a a", "a b"], 25.0),  # pooled over the corpus, not averaged over sentences
        (["a", "a"], 0.0),  # never across sentences
        (["a b a b"], 0.0),  # immediate repetitions alone
        (["a  a"], 50.0),
        (["A a"], 0.0),
        (["猫 猫", ""], 50.0),
        ([". ."], 50.0),
    ],
)
def test_repetition_rate(texts, percentage):
    assert repetition_rate(texts) == percentage


@pytest.mark.parametrize(
    "hypotheses, references, words",
    [
        (["a b c", "a"], ["a b", "a b c"], 1.5),  # 1 too many and 2 too few do not cancel
        (["a", "b"], ["c", "d"], 0.0),
        (["", "a  b\t"], ["a b c", "x y"], 1.5),
        ([""], [""], 0.0),
    ],
)
def test_length_error(hypotheses, references, words):
    assert length_error(hypotheses, references) == words
    assert length_error(references, hypotheses) == words


def test_unknown_words_count_when_glued_too():
    assert unk_rate(["a<unk> b <unk> c", ""]) == 50.0
    assert unk_rate(["a b"]) == 0.0
    assert unk_rate(["a ⁇"], unknown="⁇") == 50.0


def test_a_rate_of_no_words_is_not_zero():
    assert math.isnan(repetition_rate(["", " "]))
    assert math.isnan(unk_rate([""]))
    assert math.isnan(length_ratio(["a"], [""]))
    assert length_ratio([""], ["a"]) == 0.0


@pytest.mark.parametrize("rate", [repetition_rate, unk_rate])
def test_one_string_is_no_corpus(rate):
    with pytest.raises(ValueError, match="not one string"):
        rate("a a b")


def test_word_measures_have_a_signature():
    for part in ("split:space", "dedup:no", "case:mixed", "version:"):
        assert part in WORD_SIGNATURE
