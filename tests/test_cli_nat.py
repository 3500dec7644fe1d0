"""The five non-autoregressive models through the stock commands: CE, EISL, average, generation."""

import json
import math
import re

import pytest

from tests.test_cli_repeats import updates
from tests.toy import CPU, NAT_ARCHS, NAT_TASK, USER_DIR, hypotheses, preprocess, run_cli, train

BLEU = [
    *("--eval-bleu", "--eval-bleu-args", '{"iter_decode_max_iter": 1}', "--eval-bleu-remove-bpe"),
    *("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
]
RESETS = ["--reset-optimizer", "--reset-dataloader", "--reset-meters", "--reset-lr-scheduler"]
JSON = ["--log-format", "json", "--log-interval", "1"]
NOISE = ["--target-noise", "repeat:0.3", "--target-noise-resample", "--dropout", "0.1"]
DECODING = ["--iter-decode-max-iter", "2", "--beam", "1", "--required-batch-size-multiple", "1"]


def ok(result) -> str:
    code, output = result
    assert code == 0, output[-3000:]
    return output


class Run:
    """CE for an epoch, then EISL from its checkpoint for two, with everything random on."""

    def __init__(self, toy, folder, arch):
        self.toy, self.arch, self.ce, self.eisl = toy, arch, folder / "ce", folder / "eisl"
        ok(train(toy.bin, self.ce, "--criterion", "nat_loss", "--max-epoch", "1", arch=arch))
        self.flags = ["--criterion", "eisl", *NOISE, *BLEU, *JSON, "--max-epoch", "2"]
        self.output = ok(
            train(
                *(toy.bin, self.eisl, *self.flags, *RESETS, "--save-interval-updates", "5"),
                *("--restore-file", str(self.ce / "checkpoint_last.pt")),
                arch=arch,
            )
        )


@pytest.fixture(scope="module", params=list(NAT_ARCHS))
def run(request, toy, tmp_path_factory):
    return Run(toy, tmp_path_factory.mktemp(request.param), request.param)


def generate(data, checkpoint, *flags):
    return run_cli(
        *("fairseq-generate", data, "--user-dir", USER_DIR, *NAT_TASK, "--path", checkpoint),
        *(*CPU, *DECODING, *flags),
    )


def test_every_validation_has_a_bleu_and_the_best_is_kept(run):
    found = re.findall(r"\| valid \| (\{.*\})$", run.output, flags=re.M)
    lines = [json.loads(line) for line in found]
    assert len(lines) >= 2
    for line in lines:
        numbers = {k: float(v) for k, v in line.items()}
        assert all(map(math.isfinite, numbers.values())), line
        assert 0 <= numbers["valid_bleu"] <= 100 and "valid_ppl" in numbers
    assert (run.eisl / "checkpoint_best.pt").exists()


def test_resuming_in_the_midst_of_an_epoch_changes_nothing(run, tmp_path):
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
    output = ok(generate(run.toy.bin, average, "--remove-repeats"))
    lines = hypotheses(output)
    assert len(lines) == 10
    words = [line.split("\t")[2].split() for line in lines]
    assert all(a != b for line in words for a, b in zip(line, line[1:]))


def test_length_candidates(run):
    if run.arch == "levenshtein_transformer":
        pytest.skip("predicts no length")
    checkpoint = run.eisl / "checkpoint_best.pt"
    for choice in ("contiguous", "top-k"):
        flags = ["--iter-decode-with-beam", "5", "--length-candidates", choice]
        assert len(hypotheses(ok(generate(run.toy.bin, checkpoint, *flags)))) == 10


def test_a_padded_batch_is_decoded_like_its_sentences(run):
    checkpoint = run.eisl / "checkpoint_best.pt"
    together = ok(generate(run.toy.bin, checkpoint, "--batch-size", "10"))
    alone = ok(generate(run.toy.bin, checkpoint, "--batch-size", "1"))

    def texts(output):
        return sorted(
            (number, text) for number, _, text in (line.split("\t") for line in hypotheses(output))
        )

    assert texts(together) == texts(alone)


def test_interactive_translates_every_line_even_an_empty_one(run):
    output = ok(
        run_cli(
            *("fairseq-interactive", run.toy.bin, "--user-dir", USER_DIR, "-s", "en", "-t", "de"),
            *(*NAT_TASK, "--path", run.eisl / "checkpoint_best.pt", "--cpu", "--beam", "1"),
            *("--iter-decode-max-iter", "1"),
            stdin="w1 w2\n\nal@@ x w3\n",
        )
    )
    assert [line.split("\t")[0] for line in hypotheses(output)] == ["H-0", "H-1", "H-2"]


def test_stock_translation_lev_reads_the_checkpoint_as_well(run):
    output = ok(generate(run.toy.bin, run.eisl / "checkpoint_best.pt", "--task", "translation_lev"))
    assert len(hypotheses(output)) == 10


# -- one model stands for all --------------------------------------------------------------

ONE = "nonautoregressive_transformer"


def test_validation_of_a_one_pass_model_decodes_in_one_pass_unasked(toy, tmp_path):
    plain = ["--eval-bleu", "--eval-bleu-remove-bpe"]
    output = ok(
        train(
            *(toy.bin, tmp_path, "--criterion", "eisl", *plain, "--max-update", "2"),
            *("--eval-bleu-args", "{}"),
            arch=ONE,
        )
    )
    assert "validation decodes with 0 refinement iterations" in output
    found = ok(generate(toy.bin, tmp_path / "checkpoint_last.pt"))
    assert "NATransformerModel is made for one pass" in found


def test_lengths_beyond_the_position_table_do_no_harm(toy, tmp_path):
    """8 words at most, 12 positions, and an untrained model, which predicts any length."""
    for arch in (ONE, "levenshtein_transformer"):
        folder, limits = tmp_path / arch, ["--max-source-positions", "12"]
        limits += ["--max-target-positions", "12", "--skip-invalid-size-inputs-valid-test"]
        flags = ["--criterion", "eisl", "--max-update", "1", *limits]
        ok(train(toy.bin, folder, *flags, *BLEU, arch=arch))
        # The last partial batch included, whatever the checkpoint has learnt so far.
        output = ok(generate(toy.bin, folder / "checkpoint_last.pt", *limits))
        assert hypotheses(output)


@pytest.mark.parametrize("count", [1, 5, 17])
def test_a_test_set_of_any_size_is_translated_whole(toy, tmp_path, count):
    for side in ("en", "de"):
        raw = (toy.raw / f"train.{side}").read_text().splitlines(keepends=True)
        for split in ("train", "valid", "test"):
            (tmp_path / f"{split}.{side}").write_text("".join(raw[:count]))
    dictionary = ["--srcdict", str(toy.bin / "dict.en.txt"), "--joined-dictionary"]
    preprocess(tmp_path, tmp_path / "bin", *dictionary)
    flags = ["--criterion", "eisl", "--max-update", "1", "--required-batch-size-multiple", "1"]
    ok(train(tmp_path / "bin", tmp_path / "save", *flags, arch="cmlm_transformer"))
    output = ok(generate(tmp_path / "bin", tmp_path / "save" / "checkpoint_last.pt"))
    found = hypotheses(output)
    assert sorted(int(line.split("\t")[0][2:]) for line in found) == list(range(count))


def test_a_source_copied_into_the_decoder_does_not_depend_on_padding(toy):
    """--src-embedding-copy: fairseq counts from the left edge, hence sources pad on the right."""
    from tests.toy import setup

    made = setup(toy.bin, "--src-embedding-copy", "--left-pad-source", arch=ONE)
    assert made.task.cfg.left_pad_source is False
    made.task.load_dataset("valid")
    dataset = made.task.dataset("valid")
    order = sorted(range(20), key=lambda i: dataset.sizes[i][0])
    short, long = dataset[order[0]], dataset[order[-1]]
    model = made.model.eval()

    def copied(items):
        batch = dataset.collater(items)
        row = batch["id"].tolist().index(short["id"])
        net_input = batch["net_input"]
        encoded = model.encoder(net_input["src_tokens"], net_input["src_lengths"])
        embedding, mask = encoded["encoder_embedding"][0], encoded["encoder_padding_mask"][0]
        slots = batch["prev_target"].ne(1)
        out = model.decoder.forward_copying_source(embedding, ~mask, slots)
        return out[row, : int(slots[row].sum())]

    assert (copied([short]) - copied([short, long])).abs().max() < 1e-6
