"""The recipe with stock fairseq commands: CE, EISL from its checkpoint, and back; generation."""

import json
import math
import re

import pytest
import torch

from tests.toy import CPU, USER_DIR, hypotheses, preprocess, run_cli, train

EISL = ["--task", "noisy_translation", "--criterion", "eisl", "--ngram", "1,2"]
CE = ["--task", "noisy_translation", "--criterion", "label_smoothed_cross_entropy"]
RESETS = ["--reset-optimizer", "--reset-dataloader", "--reset-meters", "--reset-lr-scheduler"]
BLEU = [
    *("--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 10}', "--eval-bleu-remove-bpe"),
    *("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
]
SHORT = ["--beam", "2", "--max-len-b", "10", "--required-batch-size-multiple", "1"]


def ok(result) -> str:
    code, output = result
    assert code == 0, output[-3000:]
    return output


def load(path):
    return torch.load(path, map_location="cpu", weights_only=False)


def lines(output: str, kind: str) -> list:
    """The JSON lines of ``train_inner``, ``train`` or the validation set ``valid``."""
    return [json.loads(m) for m in re.findall(rf"\| {kind} \| (\{{.*\}})$", output, flags=re.M)]


@pytest.fixture(scope="module")
def ce(toy, tmp_path_factory):
    """A folder with the checkpoint of one epoch of cross entropy on noisy targets."""
    folder = tmp_path_factory.mktemp("ce")
    schedule = ["--lr-scheduler", "inverse_sqrt", "--warmup-updates", "4", "--lr", "0.02"]
    ok(train(toy.bin, folder, *CE, "--target-noise", "repeat:0.3", *schedule, "--max-epoch", "1"))
    return folder


@pytest.fixture(scope="module")
def eisl(toy, ce, tmp_path_factory):
    """A folder with the checkpoints of one epoch of EISL from there; and the output."""
    folder = tmp_path_factory.mktemp("eisl")
    output = ok(
        train(
            *(toy.bin, folder, *EISL, "--target-noise", "repeat:0.3", *BLEU),
            *("--restore-file", str(ce / "checkpoint_last.pt"), *RESETS, "--lr", "0.002"),
            *("--max-epoch", "1", "--log-format", "json", "--log-interval", "1"),
        )
    )
    return folder, output


def test_eisl_starts_from_the_cross_entropy_checkpoint(toy, ce, tmp_path):
    """With a learning rate of 0 the first update leaves the restored parameters as they are."""
    path = ce / "checkpoint_last.pt"
    output = ok(
        train(
            *(toy.bin, tmp_path, *EISL, "--restore-file", str(path), *RESETS),
            *("--lr", "0", "--max-update", "1"),
        )
    )
    assert f"Loaded checkpoint {path}" in output
    before, after = load(path)["model"], load(tmp_path / "checkpoint_last.pt")["model"]
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_first_update_of_eisl_has_the_requested_learning_rate(eisl):
    first = lines(eisl[1], "train_inner")[0]
    assert (first["num_updates"], first["lr"], first["epoch"]) == ("1", "0.002", 1)


def test_every_logged_number_is_finite(eisl):
    """The log as JSON; each key that a user may want to follow is there."""
    output = eisl[1]
    training, summary, valid = (lines(output, kind) for kind in ("train_inner", "train", "valid"))
    assert len(training) > 5 and len(summary) == len(valid) == 1
    for line in training + summary + valid:
        for name, value in line.items():
            assert value is not None and math.isfinite(float(value)), (name, value)
    both = {"loss", "eisl", "candidate_length", "target_length", "repetition", "selection_entropy"}
    assert both | {"eisl_1", "eisl_2"} <= set(training[0])
    valid_names = {name for line in valid for name in line}
    assert {f"valid_{n}" for n in both | {"ppl", "nll_loss", "ce", "bleu"}} <= valid_names


def test_tensorboard_gets_the_numbers(toy, tmp_path):
    pytest.importorskip("tensorboardX", reason="needs tensorboardX")
    ok(
        train(
            *(toy.bin, tmp_path / "save", *EISL, "--max-update", "2", "--no-save"),
            *("--tensorboard-logdir", str(tmp_path / "tb"), "--log-format", "json"),
        )
    )
    assert list((tmp_path / "tb").rglob("events*"))


def test_back_to_cross_entropy(toy, eisl, tmp_path):
    path = eisl[0] / "checkpoint_best.pt"
    output = ok(
        train(
            *(toy.bin, tmp_path, *CE, "--restore-file", str(path), *RESETS, "--no-save"),
            *("--max-epoch", "1", "--lr", "0.002"),
        )
    )
    assert f"Loaded checkpoint {path}" in output
    assert int(re.search(r"\| train \|.* num_updates (\d+)", output)[1]) > 5


def test_validation_alone_repeats_the_value_of_training(toy, eisl):
    folder, output = eisl
    flags = ["--path", folder / "checkpoint_last.pt", "--task", "noisy_translation"]
    again = ok(
        run_cli(
            *("fairseq-validate", toy.bin, "--user-dir", USER_DIR, *flags, *CPU),
            *("--max-tokens", "200", "--log-format", "json"),
        )
    )
    (shown,), (expected,) = lines(again, "valid"), lines(output, "valid")
    for name in ("loss", "eisl", "nll_loss", "ppl", "repetition"):
        assert shown[f"valid_{name}"] == expected[f"valid_{name}"], name


# -- generation ----------------------------------------------------------------------------


def generate(data, checkpoint, *flags):
    return run_cli(
        *("fairseq-generate", data, "--user-dir", USER_DIR, "--task", "noisy_translation"),
        *("--path", checkpoint, *CPU, *SHORT, *flags),
    )


def targets(output: str) -> dict:
    return {int(i): t for i, t in re.findall(r"^T-(\d+)\t(.*)$", output, flags=re.M)}


def test_generation_translates_every_line_and_never_sees_noise(toy, eisl):
    """Although the checkpoint's task has target noise: references are the raw lines."""
    output = ok(generate(toy.bin, eisl[0] / "checkpoint_best.pt", "--target-noise", "repeat:0.9"))
    reference = dict(enumerate((toy.raw / "test.de").read_text().splitlines()))
    assert len(hypotheses(output)) == 10 and targets(output) == reference


def test_even_the_training_split_is_clean_in_generation(toy, eisl):
    """As knowledge distillation reads it."""
    checkpoint = eisl[0] / "checkpoint_best.pt"
    noise = ["--target-noise", "repeat:0.9", "--gen-subset", "train"]
    found = targets(ok(generate(toy.bin, checkpoint, *noise)))
    reference = dict(enumerate((toy.raw / "train.de").read_text().splitlines()))
    assert found == reference


@pytest.mark.parametrize("count", [1, 5, 17])
def test_a_test_set_of_any_size_is_translated_whole(toy, eisl, tmp_path, count):
    for side in ("en", "de"):
        raw = (toy.raw / f"train.{side}").read_text().splitlines(keepends=True)
        for split in ("train", "valid", "test"):
            (tmp_path / f"{split}.{side}").write_text("".join(raw[:count]))
    dictionary = ["--srcdict", str(toy.bin / "dict.en.txt"), "--joined-dictionary"]
    preprocess(tmp_path, tmp_path / "bin", *dictionary)
    output = ok(generate(tmp_path / "bin", eisl[0] / "checkpoint_best.pt"))
    found = hypotheses(output)
    assert sorted(int(line.split("\t")[0][2:]) for line in found) == list(range(count))


def test_interactive_translates_every_line_even_an_empty_one(toy, eisl):
    output = ok(
        run_cli(
            *("fairseq-interactive", toy.bin, "--user-dir", USER_DIR, "-s", "en", "-t", "de"),
            *("--task", "noisy_translation", "--path", eisl[0] / "checkpoint_best.pt"),
            *("--cpu", "--beam", "2", "--max-len-b", "10"),
            stdin="w1 w2\n\nal@@ x w3\n",
        )
    )
    assert [line.split("\t")[0] for line in hypotheses(output)] == ["H-0", "H-1", "H-2"]


def test_stock_translation_reads_the_checkpoint_as_well(toy, eisl):
    output = ok(
        run_cli(
            *("fairseq-generate", toy.bin, "--user-dir", USER_DIR, *CPU, *SHORT),
            *("--path", eisl[0] / "checkpoint_best.pt"),
        )
    )
    assert len(hypotheses(output)) == 10


def test_the_hub_interface_reads_it(toy, eisl):
    from fairseq.models.transformer import TransformerModel

    folder, _ = eisl
    flags = {"user_dir": USER_DIR, "beam": 2, "max_len_b": 10, "cpu": True}
    hub = TransformerModel.from_pretrained(str(folder), "checkpoint_best.pt", str(toy.bin), **flags)
    assert len(hub.translate(["w1 w2", "w3"])) == 2


# -- the checkpoint ------------------------------------------------------------------------


def test_the_criterion_adds_nothing_to_a_checkpoint(ce, eisl):
    """A criterion that holds a model or a generator would store the weights twice."""
    ours, theirs = (folder / "checkpoint_last.pt" for folder in (eisl[0], ce))
    mine, stock = load(ours), load(theirs)
    assert mine.keys() == stock.keys() and mine["criterion"] is stock["criterion"] is None
    assert mine["model"].keys() == stock["model"].keys()
    optimizers = [state["last_optimizer_state"]["state"] for state in (mine, stock)]
    assert optimizers[0].keys() == optimizers[1].keys()
    weights = sum(value.nbytes for value in mine["model"].values())
    assert ours.stat().st_size < theirs.stat().st_size + weights / 2  # more flags and meters
