"""Runs of fairseq-train that must see the same data and come to the same numbers."""

import json
import re

import pytest

from tests.toy import (
    ARCHS,
    LANGUAGES,
    TRAINING,
    USER_DIR,
    Child,
    parse,
    run_cli,
    start_two_ranks,
    train,
)

NOISE = ["--target-noise", "repeat:0.3,blank:0.1"]
EISL = ["--task", "noisy_translation", "--criterion", "eisl", "--ngram", "1,2", *NOISE]
LOG = ["--log-format", "json", "--log-interval", "1"]


def ok(result) -> str:
    code, output = result
    assert code == 0, output[-3000:]
    return output


def updates(output: str) -> dict:
    """By update: what does not depend on the clock."""
    found = re.findall(r"\| train_inner \| (\{.*\})$", output, flags=re.M)
    clock = {"wps", "ups", "train_wall", "wall"}
    return {
        int(line["num_updates"]): {k: v for k, v in line.items() if k not in clock}
        for line in map(json.loads, found)
    }


# -- seeds and resuming --------------------------------------------------------------------

RANDOM = [*EISL, *LOG, "--target-noise-resample", "--train-decoding", "sample", "--dropout", "0.1"]


@pytest.fixture(scope="module")
def undisturbed(toy, tmp_path_factory):
    """Two epochs with everything that is random switched on; a checkpoint after update 5."""
    folder = tmp_path_factory.mktemp("undisturbed")
    saving = ["--save-interval-updates", "5", "--no-epoch-checkpoints"]
    return folder, updates(ok(train(toy.bin, folder, *RANDOM, *saving, "--max-epoch", "2")))


def test_resuming_in_the_midst_of_an_epoch_changes_nothing(toy, undisturbed, tmp_path):
    folder, expected = undisturbed
    path = folder / "checkpoint_1_5.pt"
    output = ok(train(toy.bin, tmp_path, *RANDOM, "--restore-file", str(path), "--max-epoch", "2"))
    found = updates(output)
    assert list(found) == list(range(6, max(expected) + 1)) and len(found) > 10
    for update, line in found.items():
        # fairseq averages over the updates since the last log, of which resuming knows none
        assert line == expected[update] or update == 6, update
        assert line["loss"] == expected[update]["loss"]


def test_the_same_seed_gives_the_same_run(toy, undisturbed, tmp_path):
    short = ["--max-update", "4", "--no-save", "--disable-validation"]
    again = updates(ok(train(toy.bin, tmp_path, *RANDOM, *short)))
    assert len(again) == 4
    assert again == {update: undisturbed[1][update] for update in again}
    other = updates(ok(train(toy.bin, tmp_path, *RANDOM, *short, "--seed", "2")))
    assert [line["loss"] for line in other.values()] != [line["loss"] for line in again.values()]


# -- noisy targets -------------------------------------------------------------------------


def noisy_task(toy, *flags):
    from fairseq import tasks

    task = tasks.setup_task(parse(str(toy.bin), "--criterion", "eisl", *NOISE, *flags).task)
    task.load_dataset("train", epoch=1)
    task.load_dataset("valid", epoch=1)
    return task


def batches(task, split="train", epoch=1, **options) -> dict:
    """The target of each example, as an epoch of training or validation reads it."""
    iterator = task.get_batch_iterator(task.dataset(split), epoch=epoch, seed=1, **options)
    samples = list(iterator.next_epoch_itr(shuffle=True))
    pad = task.target_dictionary.pad()
    seen = [
        (index, [t for t in row if t != pad])
        for sample in samples
        for index, row in zip(sample["id"].tolist(), sample["target"].tolist())
    ]
    assert len(seen) == len(dict(seen)) == len(task.dataset(split))
    return dict(seen)


def raw_targets(toy, task, split) -> dict:
    lines = (toy.raw / f"{split}.de").read_text().splitlines()
    encode = task.target_dictionary.encode_line
    return {i: encode(line, add_if_not_exist=False).tolist() for i, line in enumerate(lines)}


@pytest.mark.parametrize("resample", [(), ("--target-noise-resample",)])
def test_noisy_targets_depend_on_neither_workers_nor_batches(toy, resample):
    """In a child, which need not wait for its workers to end."""

    def main():
        task = noisy_task(toy, *resample)
        expected = batches(task, max_sentences=4)
        assert expected != raw_targets(toy, task, "train")
        for options in (
            {"max_sentences": 16},
            {"max_tokens": 60},
            {"max_sentences": 16, "num_workers": 1},
            {"max_sentences": 4, "num_workers": 3},
        ):
            assert batches(noisy_task(toy, *resample), **options) == expected, options
        assert (batches(task, max_sentences=4, epoch=2) == expected) is not bool(resample)
        print("compared")

    code, output = Child(main).wait()
    assert code == 0 and "compared" in output, output


def test_validation_is_never_noised(toy):
    task = noisy_task(toy)
    assert batches(task, "valid", max_sentences=4) == raw_targets(toy, task, "valid")


# -- two processes -------------------------------------------------------------------------


def print_targets():
    """Make the criterion print what it sees (in the child that calls this)."""
    from fairseq_eisl.criterions.eisl import EISLCriterion

    forward = EISLCriterion.forward

    def spy(self, model, sample, reduce=True):
        for index, row in zip(sample["id"].tolist(), sample["target"].tolist()):
            tokens = " ".join(str(t) for t in row if t != self.padding_idx)
            print("SEEN", "train" if self.training else "valid", index, tokens)
        return forward(self, model, sample, reduce)

    EISLCriterion.forward = spy


def seen(output: str, split: str) -> dict:
    """The first target of each example; a rank without a batch is given one of validation."""
    return dict(reversed(re.findall(rf"SEEN {split} (\d+) (.*)$", output, flags=re.M)))


def valid_loss(output: str) -> float:
    return float(re.search(r"valid on 'valid' subset \| loss ([\d.]+)", output)[1])


def last_update(output: str) -> int:
    return int(re.search(r"\| train \|.* num_updates (\d+)", output)[1])


def test_two_processes_train_like_one(toy, tmp_path):
    """Two ranks with a batch each, against one with two batches an update; SGD, no dropout.

    The number of batches is odd: in the last update the second rank has none.
    """
    task = noisy_task(toy)
    epoch = task.get_batch_iterator(
        task.dataset("train"), max_tokens=240, required_batch_size_multiple=8, seed=1
    )
    assert len(epoch) % 2 == 1
    flags = [
        *(str(toy.bin), "--user-dir", USER_DIR, *TRAINING, *LANGUAGES, *EISL, "--max-epoch", "1"),
        *("--arch", "transformer", *ARCHS["transformer"], "--dropout", "0", "--no-save"),
        *("--save-dir", str(tmp_path)),
        *("--optimizer", "sgd", "--lr", "0.3", "--max-tokens", "240"),
    ]
    one = ok(run_cli("fairseq-train", *flags, "--update-freq", "2", before=print_targets))
    ranks = start_two_ranks(*flags, before=print_targets)
    outputs = [ok(rank.wait(240)) for rank in ranks]
    assert last_update(outputs[0]) == last_update(one) == (len(epoch) + 1) // 2
    assert valid_loss(outputs[0]) == pytest.approx(valid_loss(one), abs=1e-4)
    shares = [seen(output, "train") for output in outputs]
    assert {**shares[1], **shares[0]} == seen(one, "train") and len(seen(one, "train")) == 200
    assert len(shares[0]) < 150 and len(shares[1]) < 150
    for output in (one, *outputs):
        found = {int(i): list(map(int, t.split())) for i, t in seen(output, "valid").items()}
        reference = raw_targets(toy, task, "valid")
        assert found and all(reference[index] == tokens for index, tokens in found.items())
