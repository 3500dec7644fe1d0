"""Minimum Bayes risk decoding: against its definition, by sacrebleu's own sentence scores."""

import math
import random
import re

import pytest
from sacrebleu import sentence_bleu, sentence_chrf

from fairseq_eisl.common.rows import read_rows
from fairseq_eisl.evaluation.cli import mbr as command
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.mbr import UTILITIES, choose, utility_of
from fairseq_eisl.evaluation.readers.generation_log import read_generation_log
from fairseq_eisl.evaluation.readers.sample_log import read_samples

SCORES = {
    "sentence_bleu": lambda one, other: sentence_bleu(one, [other], tokenize="none").score,
    "chrf": lambda one, other: sentence_chrf(one, [other]).score,
}
each_utility = pytest.mark.parametrize("name", UTILITIES)


def literal(hypotheses, name):
    """The mean utility of each against the others, and the first best one."""
    means = []
    for i, one in enumerate(hypotheses):
        scores = [SCORES[name](one, other) for j, other in enumerate(hypotheses) if j != i]
        means.append(sum(scores) / len(scores))
    return next(i for i, mean in enumerate(means) if mean >= max(means) - 1e-9), means


def samples(seed, count=6):
    rng = random.Random(seed)
    words = "a the cat dog sat ran on in mat hat .".split()
    return [" ".join(rng.choices(words, k=rng.randint(0, 7))) for _ in range(count)]


@each_utility
@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_literal_definition(name, seed):
    hypotheses = samples(seed)
    hypotheses += hypotheses[: seed % 4]  # some of them twice
    best, means = literal(hypotheses, name)
    found = choose(hypotheses, utility_of(name))
    assert found.best == best
    assert found.expected == pytest.approx(means, abs=1e-9)


@each_utility
@pytest.mark.parametrize("lowercase", [False, True])
def test_the_scores_are_those_of_sacrebleu(name, lowercase):
    utility = utility_of(name, lowercase=lowercase)
    for one in (*samples(1), "A Cat", ""):
        for other in (*samples(2), "a cat", ""):
            given = [(text.lower() if lowercase else text) for text in (one, other)]
            expected = SCORES[name](*given), SCORES[name](*given[::-1])
            found = utility.both(utility.prepare(one), utility.prepare(other))
            assert found == pytest.approx(expected, abs=1e-9), (one, other)
    assert f"case:{'lc' if lowercase else 'mixed'}|" in utility.signature
    assert utility.signature.startswith("nrefs:1|")


def test_words_are_those_of_the_tokeniser():
    one, other = "a cat.", "a cat ."
    found = [
        choose([one, other], utility_of("sentence_bleu", tokenize=t)).expected[0]
        for t in ("none", "13a")
    ]
    assert found[0] < 60 and found[1] == pytest.approx(100)


@each_utility
def test_the_consensus_wins_over_a_copy_of_the_source(name):
    """The model's best hypothesis, and its most frequent one, is the source itself."""
    copy = "ein mann fährt ein rotes fahrrad ."
    others = [
        "a man rides a red bike .",
        "a man rides a red bicycle .",
        "a man is riding a red bike .",
        "the man rides a red bike .",
    ]
    chosen = choose([copy, copy, *others], utility_of(name))
    assert chosen.best == 2
    assert chosen.expected[0] == chosen.expected[1] < chosen.expected[2]


def test_equal_hypotheses_count_as_often_as_they_occur():
    """Alone, the second pair agrees more; three equal ones are the better consensus."""
    rare = ["the cat sat on the mat", "the cat sat on the hat"]
    often = "a dog ran"
    utility = utility_of("sentence_bleu")
    assert choose([often, *rare], utility).best == 1
    assert choose([often, *rare, often], utility).best == 0
    assert choose([*rare, often, often], utility).best == 2


@each_utility
def test_of_equally_good_ones_the_first_is_taken(name):
    utility = utility_of(name)
    assert choose(["a b", "c d", "a b", "c d"], utility).best == 0
    assert choose(["x", "y", "z"], utility).best == 0  # nothing in common
    assert choose(["", "", ""], utility).best == 0
    hypotheses = samples(5, 8)
    orders = [random.Random(seed).sample(hypotheses, 8) for seed in range(5)]
    assert len({each[choose(each, utility).best] for each in orders}) == 1


def test_one_has_no_utility_and_none_is_refused():
    found = choose(["a"], utility_of("chrf"))
    assert found.best == 0 and math.isnan(found.expected[0])
    with pytest.raises(ValueError, match="no hypotheses"):
        choose([], utility_of("chrf"))
    with pytest.raises(ValueError, match="'bleurt' is unknown; choose from sentence_bleu, chrf"):
        utility_of("bleurt")


# -- the command ---------------------------------------------------------------------------

REFERENCE = ["a man rides a bike .", "two dogs run .", "a red hat ."]
SAMPLES = [
    ["ein mann .", "a man rides bike .", "a man rides a bike .", "a man rides a bike"],
    ["two dogs run .", "two dogs run .", "dogs", "two cats run ."],
    ["", "a red hat .", "a red cap .", "a red hat"],
]


def log_of(samples, detokenised=False, references=None, sources=None):
    lines = ["2026-11-27 | INFO | fairseq_cli.generate | {'seed': 1}"]
    for i in reversed(range(len(samples))):
        lines.append(f"S-{i}\t{sources[i] if sources else f'quelle {i}'}")
        if references:
            lines.append(f"T-{i}\t{references[i]}")
        for n, text in enumerate(samples[i]):
            raw = text.replace("bike", "bi@@ ke") if detokenised else text
            lines.append(f"H-{i}\t{-0.5 - n}\t{raw}")
            if detokenised:
                lines.append(f"D-{i}\t{-0.5 - n}\t{text}")
            lines.append(f"P-{i}\t-0.1 -0.4")
    return "\n".join([*lines, "Generate test with beam=4: BLEU4 = 9.9"]) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCE))
    (tmp_path / "log").write_text(log_of(SAMPLES, references=REFERENCE))
    return tmp_path


def run(capsys, *argv):
    assert main(["mbr", *argv]) == 0
    return capsys.readouterr().out


@each_utility
def test_a_log_of_the_chosen_is_written_and_scored(folder, capsys, name):
    line = run(capsys, "--log", "log", "--utility", name, "--out", "out/mbr.log")
    assert "3 sentences of 4 samples" in line and name in line and line.count("\n") == 1
    assert utility_of(name).signature in line
    chosen = [each[literal(each, name)[0]] for each in SAMPLES]
    assert read_generation_log("out/mbr.log") == (chosen, REFERENCE)
    text = (folder / "out/mbr.log").read_text()
    assert re.findall(r"^([STHDP])-(\d)", text, re.M) == [(k, n) for n in "012" for k in "STH"]
    (score,) = re.findall(r"^H-1\t([\d.]+)\t", text, re.M)
    assert float(score) == pytest.approx(max(literal(SAMPLES[1], name)[1]), abs=1e-4)
    assert main(["score", "--log", "out/mbr.log", "--reference", "ref", "--rows", "r.csv"]) == 0
    assert read_rows("r.csv")[0]["sentences"] == "3"
    systems = ["--system", "first=log", "--system", "mbr=out/mbr.log"]
    assert main(["significance", "--reference", "ref", *systems, "-n", "20"]) == 0
    run(capsys, "--log", "log", "--utility", name, "--out", "again.log")
    assert (folder / "again.log").read_text() == text


def test_detokenised_lines_are_compared_and_their_raw_ones_stand_beside_them(folder, capsys):
    (folder / "log").write_text(log_of(SAMPLES, detokenised=True))
    run(capsys, "--log", "log", "--out", "mbr.log")
    (sentence, *_) = read_samples("mbr.log")
    best = SAMPLES[0][literal(SAMPLES[0], "sentence_bleu")[0]]
    assert sentence.plain == [best] and "bike" in best
    assert sentence.raw == [best.replace("bike", "bi@@ ke")] and sentence.reference is None


def test_logs_of_several_seeds_are_one(folder, capsys):
    whole = (folder / "log").read_text()
    run(capsys, "--log", "log", "--out", "whole.out")
    for name, part in (("one", slice(0, 2)), ("two", slice(2, 4))):
        parts = [each[part] for each in SAMPLES]
        (folder / name).write_text(log_of(parts, references=REFERENCE))
    line = run(capsys, "--log", "one", "two", "--out", "parts.out")
    assert "3 sentences of 4 samples" in line
    assert (folder / "parts.out").read_text() == (folder / "whole.out").read_text()
    (folder / "single").write_text(log_of([each[:1] for each in SAMPLES]))
    assert "of 5 samples" in run(capsys, "--log", "log", "--log", "single", "--out", "x")
    assert (folder / "log").read_text() == whole


def refused(capsys, *argv):
    with pytest.raises(SystemExit) as end:
        main(["mbr", *argv])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


OTHER = [["x", "y"]] * 3


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "--log other: the file is empty"),
        ("no log at all\n", "--log other: no H-<id> or D-<id> lines"),
        (log_of(OTHER[:2]), "--log other: 2 sentences, not 3: not the sentences of log"),
        (
            log_of(OTHER, sources=["q", "quelle 1", "quelle 2"]),
            "--log other: S-0 is 'q', not 'quelle 0': not the sentences of log",
        ),
        (
            log_of(OTHER, references=["a", *REFERENCE[1:]]),
            f"--log other: T-0 is 'a', not {REFERENCE[0]!r}: not the sentences of log",
        ),
        (log_of(OTHER, detokenised=True), "--log other: it has D lines: not the sentences of log"),
        (log_of(OTHER).replace("S-1\t", "S-0\t"), "--log other: id 0 more than once"),
        (log_of([*OTHER, []]), "--log other: no H line for id 3 (3 of 4 sentences"),
        (
            log_of(OTHER, detokenised=True).replace("D-1\t-1.5\ty\n", ""),
            "--log other: sentence 1 has 2 H lines and 1 D lines",
        ),
    ],
)
def test_another_log_that_does_not_fit_is_named(folder, capsys, text, words):
    (folder / "other").write_text(text)
    assert words in refused(capsys, "--log", "log", "other", "--out", "mbr.log")
    assert not (folder / "mbr.log").exists()


def test_one_hypothesis_a_sentence_is_nothing_to_choose_from(folder, capsys):
    (folder / "best").write_text(log_of([each[:1] for each in SAMPLES]))
    error = refused(capsys, "--log", "best", "--out", "mbr.log")
    assert "--log best: one hypothesis a sentence" in error and "--nbest 16" in error
    assert "--log none: No such file" in refused(capsys, "--log", "none", "--out", "mbr.log")


def test_a_log_is_not_written_over_and_pieces_are_not_compared(folder, capsys):
    assert "--out ./log: this is a --log" in refused(capsys, "--log", "log", "--out", "./log")
    (folder / "log").write_text(log_of([["a@@ b c", "a@@ b d"]] * 3))
    assert "--remove-bpe subword_nmt" in refused(capsys, "--log", "log", "--out", "mbr.log")
    run(capsys, "--log", "log", "--out", "mbr.log", "--plain-words")


def test_pieces_are_told_of_the_log_and_sentence_that_have_them(folder, capsys):
    pieces = [SAMPLES[0], SAMPLES[1], ["a red hat .", "a re@@ d hat .", "", ""]]
    (folder / "b").write_text(log_of(pieces, references=REFERENCE))
    error = refused(capsys, "--log", "log", "b", "--out", "mbr.log")
    assert "error: --log b: sentence 2 holds subword pieces ('a re@@ d hat .')" in error
    assert main(["mbr", "--log", "log", "b", "--out", "mbr.log", "--plain-words"]) == 0
    error = capsys.readouterr().err
    assert "b: sentence 2 holds" in error and error.count("\n") == 1
    glued = [SAMPLES[0], ["xwo@@yz"] * 4, SAMPLES[2]]
    (folder / "b").write_text(log_of(glued, references=REFERENCE))
    assert "--log b: words are glued together ('xwo@@yz', sentence 1)" in refused(
        capsys, "--log", "log", "b", "--out", "mbr.log"
    )


def test_an_earlier_output_is_replaced_and_nothing_else_is(folder, capsys):
    error = refused(capsys, "--log", "log", "--out", "ref")
    assert "--out ref: what is there is no log of hypotheses, it will not be replaced" in error
    assert (folder / "ref").read_text().splitlines() == REFERENCE
    (folder / "mbr.log").write_text("")
    run(capsys, "--log", "log", "--out", "mbr.log", "--utility", "chrf")
    first = (folder / "mbr.log").read_text()
    run(capsys, "--log", "log", "--out", "mbr.log")
    assert (folder / "mbr.log").read_text() != first


def test_a_tokeniser_is_nothing_to_chrf(folder, capsys):
    given = ["--log", "log", "--out", "mbr.log", "--utility", "chrf"]
    assert main(["mbr", *given, "--tokenize", "13a"]) == 0
    assert "--tokenize 13a: no effect with --utility chrf" in capsys.readouterr().err


def test_long_work_says_how_far_it_is(folder, capsys, monkeypatch):
    monkeypatch.setattr(command, "_EVERY", 0.0)
    assert main(["mbr", "--log", "log", "--out", "mbr.log"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [re.search(r"mbr: (\d) of 3 sentences, \d+ s left", line)[1] for line in lines] == [
        *("1", "2")
    ]
