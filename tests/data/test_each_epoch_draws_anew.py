"""Every epoch draws its own masks and noise, whoever puts the batches together."""

import copy
import pickle

import pytest

from fairseq_eisl.data.shared_number import SharedNumber
from tests.toy import Child, parse

NOISE = ["--target-noise", "shuffle:3,repeat:0.3", "--target-noise-resample"]
CASES = {
    "masks": ("cmlm_transformer", ["--full-mask-prob", "0.2"]),
    "deletions": ("levenshtein_transformer", []),
    "iNAT": ("iterative_nonautoregressive_transformer", ["--noise", "random_mask"]),
    "noise": ("transformer", NOISE),
}


def seen_in_training(data, arch, flags, workers, interrupted=False):
    """{(epoch, example): what the model is shown} in three epochs, as fairseq-train reads them."""
    from fairseq import tasks

    cfg = parse(str(data), "--criterion", "eisl", *flags, arch=arch).task

    def start(epoch):
        task = tasks.setup_task(cfg)
        task.load_dataset("train", epoch=epoch, combine=True, data_selector=None)
        return task, batches_of(task, epoch)

    def batches_of(task, epoch):
        options = {"num_workers": workers, "data_buffer_size": 2, "grouped_shuffling": False}
        dataset = task.dataset("train")
        return task.get_batch_iterator(dataset, max_tokens=120, seed=3, epoch=epoch, **options)

    rows = {}
    task, batches = start(1)
    for epoch in (1, 2, 3):
        samples = batches.next_epoch_itr()
        for sample in samples:
            keep(rows, epoch, sample)
            if interrupted and epoch == 2 and samples.n == 4:
                break
        if samples.has_next():  # another process goes on from a checkpoint in mid-epoch
            state = batches.state_dict()
            task, batches = start(state["epoch"])
            batches.load_state_dict(state)
            for sample in batches.next_epoch_itr():
                keep(rows, epoch, sample)
        batches = batches_of(task, batches.next_epoch_idx)
    # fairseq makes other batches where it goes on in a later epoch: some sentences come twice.
    assert len(rows) == 3 * 200 or interrupted and len(rows) > 550
    return rows


def keep(rows, epoch, sample):
    names = [name for name in ("target", "prev_target") if name in sample]
    for i, index in enumerate(sample["id"].tolist()):
        rows[epoch, index] = [sample[name][i][sample[name][i] != 1].tolist() for name in names]


@pytest.mark.parametrize("case", CASES)
def test_workers_hear_of_each_epoch(toy, case):
    """In a child, which need not wait for its workers to end."""

    def main():
        arch, flags = CASES[case]
        expected = seen_in_training(toy.bin, arch, flags, workers=0)
        same = sum(expected[1, i] == expected[2, i] for i in range(200))
        assert same < 100, f"{same} of 200 examples are alike in epochs 1 and 2"
        # fairseq waits five seconds for the end of each worker that it does not keep.
        kept = "--target-noise-resample" not in flags
        for workers in (1, 2) if kept else (1,):
            assert seen_in_training(toy.bin, arch, flags, workers) == expected, workers
        for workers in (0, 1) if kept else (0,):
            resumed = seen_in_training(toy.bin, arch, flags, workers, interrupted=True)
            assert all(expected[key] == row for key, row in resumed.items()), f"resumed, {workers}"
        print("compared")

    code, output = Child(main).wait()
    assert code == 0 and "compared" in output, output[-3000:]


@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_shares_with_its_own_workers_only(way):
    number = SharedNumber(3)
    other = way(number)
    number.value = 4

    def main():
        other.value = 7

    assert Child(main).wait()[0] == 0
    assert (number.value, other.value) == (4, 7)
