"""AXE through the stock commands: trained with room for blanks, decoded without any."""

import re

import pytest

from fairseq_eisl.decoding.fairseq.blanks import BLANK
from tests.test_cli_nat import generate, ok
from tests.toy import hypotheses, train

CMLM, NAT = "cmlm_transformer", "nonautoregressive_transformer"
FACTOR = "2.0"


@pytest.fixture(scope="module", params=[CMLM, NAT])
def run(request, toy, tmp_path_factory):
    """A checkpoint that says the blank, which every second slot is for, and its log."""
    folder = tmp_path_factory.mktemp(request.param)
    output = ok(
        train(
            *(toy.bin, folder, "--criterion", "axe", "--max-epoch", "3", "--noise", "full_mask"),
            *("--axe-length-factor", FACTOR, "--length-factor", FACTOR, "--no-epoch-checkpoints"),
            *("--eval-bleu", "--eval-bleu-print-samples", "--eval-bleu-args", "{}"),
            *("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
            arch=request.param,
        )
    )
    return folder / "checkpoint_last.pt", output


def test_validation_decodes_without_blanks(run):
    _, output = run
    examples = re.findall(r"example hypothesis: ?(.*)$", output, flags=re.M)
    assert len(examples) >= 3 and not any(BLANK in line for line in examples)
    assert re.search(r"validation decodes with .* 1 length candidate, 2.0 slots a word", output)
    assert "valid_bleu" in output or "| bleu " in output
    assert re.search(r"\| blanks \d", output) and re.search(r"\| skipped \d", output)


@pytest.mark.parametrize("beam", [[], ["--iter-decode-with-beam", "3"]])
@pytest.mark.parametrize("iterations", ["0", "2"])
def test_the_blank_is_neither_written_nor_counted(toy, run, beam, iterations):
    flags = ["--length-factor", FACTOR, "--iter-decode-max-iter", iterations, *beam]
    output = ok(generate(toy.bin, run[0], *flags))
    lines = hypotheses(output)
    assert len(lines) == 10 and not any(BLANK in line for line in lines)
    # A score for each token; those of start and end are among them.
    scores = dict(re.findall(r"^P-(\d+)\t(.*)$", output, flags=re.M))
    for line in lines:
        number, _, text = line.split("\t")
        assert len(scores[number[2:]].split()) <= len(text.split()) + 2
    # Another symbol for a blank, which the model never says, leaves its own where they were.
    kept = hypotheses(ok(generate(toy.bin, run[0], *flags, "--axe-blank", "w0")))
    assert len(kept) == 10 and any(BLANK in line for line in kept)


def test_a_wrong_flag_of_generation_is_one_line(toy, run):
    for flags, words in (
        (
            ["--length-factor", "0.5"],
            "--length-factor must be a finite number, 1 or above, not 0.5",
        ),
        (["--axe-blank", "nothing"], "--axe-blank: 'nothing' is not in the target dictionary of"),
    ):
        code, output = generate(toy.bin, run[0], *flags)
        assert code and words in output
