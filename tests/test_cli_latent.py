"""The models with latent alignments through the stock commands: likelihood, EISL, BLEU, resuming,
average, generation."""

import json
import math
import re

import pytest

from tests.test_cli_nat import BLEU, JSON, NOISE, RESETS, generate, ok
from tests.test_cli_repeats import updates
from tests.toy import LATENT_ARCHS, NAT_TASK, USER_DIR, hypotheses, run_cli, train

OWN = {"ctc_transformer": "ctc_loss", "dag_transformer": "dag_loss"}
GLANCING = ["--glancing-ratio", "0.5:0.1@20"]


class Run:
    """Likelihood for an epoch, then EISL from its checkpoint for two, with everything random on."""

    def __init__(self, toy, folder, arch):
        self.toy, self.arch = toy, arch
        self.first, self.eisl = folder / "likelihood", folder / "eisl"
        own = ["--criterion", OWN[arch], "--max-epoch", "1", *BLEU, *JSON, *GLANCING]
        self.first_output = ok(train(toy.bin, self.first, *own, arch=arch))
        self.flags = ["--criterion", "eisl", *NOISE, *BLEU, *JSON, *GLANCING, "--max-epoch", "2"]
        self.output = ok(
            train(
                *(toy.bin, self.eisl, *self.flags, *RESETS, "--save-interval-updates", "5"),
                *("--restore-file", str(self.first / "checkpoint_last.pt")),
                arch=arch,
            )
        )


@pytest.fixture(scope="module", params=list(LATENT_ARCHS))
def run(request, toy, tmp_path_factory):
    return Run(toy, tmp_path_factory.mktemp(request.param), request.param)


def validations(output):
    found = re.findall(r"\| valid \| (\{.*\})$", output, flags=re.M)
    return [{k: float(v) for k, v in json.loads(line).items()} for line in found]


def test_validation_has_a_bleu_and_the_likelihood_of_both_criterions(run):
    lines = validations(run.first_output), validations(run.output)
    assert len(lines[0]) >= 1 and len(lines[1]) >= 2
    for line in (*lines[0], *lines[1]):
        assert all(map(math.isfinite, line.values())), line
        assert 0 <= line["valid_bleu"] <= 100 and line["valid_ppl"] > 1
        assert 0 <= line["valid_too_long"] <= 100
        assert line["valid_candidate_length"] >= 0 and line["valid_target_length"] > 0
    assert f"valid_{OWN[run.arch]}" in lines[0][0] and "valid_eisl_2" in lines[1][0]
    assert (run.eisl / "checkpoint_best.pt").exists()
    searched = ", lookahead" if run.arch == "dag_transformer" else ""
    assert re.search(f"validation decodes with .*1 length candidate{searched}$", run.output, re.M)


def test_resuming_in_the_midst_of_an_epoch_changes_nothing(run, tmp_path):
    """The share of words that are shown depends on the update, and so must go on."""
    path = run.eisl / "checkpoint_1_5.pt"
    again = ["--restore-file", str(path), "--no-save"]
    output = ok(train(run.toy.bin, tmp_path, *run.flags, *again, arch=run.arch))
    expected, found = updates(run.output), updates(output)
    assert list(found) == list(range(6, max(expected) + 1)) and len(found) > 10
    for update, line in found.items():
        assert line["loss"] == expected[update]["loss"], update
        assert line == expected[update] or update == 6, update


def test_the_average_translates_every_line(run, tmp_path):
    average = tmp_path / "average.pt"
    from fairseq_eisl.checkpoints.command import main

    assert not main(["average", "--folder", str(run.eisl), "--last", "2", "--output", str(average)])
    searches = ["greedy", "viterbi"] if run.arch == "dag_transformer" else ["lookahead"]
    for search in searches:
        flags = ["--iter-decode-max-iter", "0", "--dag-search", search]
        output = ok(generate(run.toy.bin, average, *flags))
        lines = hypotheses(output)
        assert len(lines) == 10
        assert "made for one pass" not in output


def test_a_padded_batch_is_decoded_like_its_sentences(run):
    checkpoint = run.eisl / "checkpoint_best.pt"

    def texts(size):
        output = ok(generate(run.toy.bin, checkpoint, "--batch-size", size))
        return sorted(tuple(line.split("\t")[::2]) for line in hypotheses(output))

    assert texts("10") == texts("1")


def test_interactive_translates_every_line_even_an_empty_one(run):
    output = ok(
        run_cli(
            *("fairseq-interactive", run.toy.bin, "--user-dir", USER_DIR, "-s", "en", "-t", "de"),
            *(*NAT_TASK, "--path", run.eisl / "checkpoint_best.pt", "--cpu", "--beam", "1"),
            *("--iter-decode-max-iter", "0"),
            stdin="w1 w2\n\nal@@ x w3\n",
        )
    )
    assert [line.split("\t")[0] for line in hypotheses(output)] == ["H-0", "H-1", "H-2"]


def test_vanilla_nat_is_what_training_may_begin_with(toy, tmp_path):
    first = tmp_path / "nat"
    one = ["--max-update", "1", "--criterion", "nat_loss"]
    ok(train(toy.bin, first, *one, arch="nonautoregressive_transformer"))
    flags = ["--init-weights", str(first / "checkpoint_last.pt"), "--max-update", "1", "--no-save"]
    flags += ["--criterion", "ctc_loss"]
    output = ok(train(toy.bin, tmp_path / "ctc", *flags, arch="ctc_transformer"))
    fresh = r"not there: decoder.blank_bias, decoder.embed_blank.weight"
    assert re.search(rf"{fresh}; not used: .*embed_length", output)


def test_a_loss_of_slots_ends_in_one_line_before_training(toy, tmp_path):
    code, output = train(
        *(toy.bin, tmp_path, "--criterion", "nat_loss", "--max-update", "1"), arch="dag_transformer"
    )
    assert code != 0
    assert "--criterion nat_loss needs a slot for every target token" in output
    assert "dag_loss, eisl" in output and "| epoch" not in output
