"""``--valid-subset train``: clean and the same each time, beside a training that stays noisy."""

import itertools

import pytest
from fairseq.trainer import Trainer

from tests.toy import parse, setup

NAT, AR = "cmlm_transformer", "transformer"


def prepared(toy, arch, *flags):
    """Trainer and task, with the splits loaded in the order of fairseq-train."""
    flags = ["--valid-subset", "valid,train", "--required-batch-size-multiple", "1", *flags]
    made = setup(toy.bin, *flags, arch=arch)
    flags = ["--criterion", "eisl", *flags]
    cfg = parse(str(toy.bin), *flags, arch=arch)
    trainer = Trainer(cfg, made.task, made.model, made.criterion)
    for split in ("valid", "train"):
        made.task.load_dataset(split, combine=False, epoch=1)
    return trainer, made.task


def rows(batches):
    found = {}
    for sample in batches:
        for i, index in enumerate(sample["id"].tolist()):
            names = [name for name in ("target", "prev_target") if name in sample]
            found[index] = [sample[name][i][sample[name][i] != 1].tolist() for name in names]
    assert len(found) == 200
    return found


def validation(trainer):
    batches = trainer.get_valid_iterator("train")
    return rows(batches.next_epoch_itr(shuffle=False, set_dataset_epoch=False))


@pytest.mark.filterwarnings("ignore:.*pin_memory")
@pytest.mark.parametrize("arch", [AR, NAT])
@pytest.mark.parametrize("noise", ["none", "shuffle:all,repeat:0.5", "resample"])
def test_training_is_noisy_and_validation_is_not(toy, arch, noise):
    flags = ["--target-noise", noise]
    if noise == "resample":
        flags = ["--target-noise", "shuffle:all", "--target-noise-resample"]
    trainer, _ = prepared(toy, arch, *flags)
    alone, _ = prepared(toy, arch, *flags)
    plain, _ = prepared(toy, arch)
    plain.get_train_iterator(1)
    clean = validation(plain)
    alone_batches, batches = alone.get_train_iterator(1), trainer.get_train_iterator(1)
    assert validation(trainer) == clean
    for epoch in (1, 2):
        assert batches.next_epoch_idx == epoch
        samples = batches.next_epoch_itr()
        begun = list(itertools.islice(samples, 3))
        assert validation(trainer) == clean  # in the midst of an epoch
        trained = rows([*begun, *samples])
        assert trained == rows(alone_batches.next_epoch_itr())
        changed = sum(trained[i][0] != clean[i][0] for i in range(200))
        assert changed == 0 if noise == "none" else changed > 150
        assert validation(trainer) == clean
        batches = trainer.get_train_iterator(batches.next_epoch_idx, load_dataset=False)
        alone_batches = alone.get_train_iterator(alone_batches.next_epoch_idx, load_dataset=False)


@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_fairseq_validate_sees_what_training_validates(toy):
    trainer, task = prepared(toy, NAT, "--target-noise", "repeat:0.5", "--full-mask-prob", "0.3")
    trainer.get_train_iterator(1)
    expected = validation(trainer)
    task.load_dataset("train", combine=False, epoch=1, task_cfg=task.cfg)
    batches = task.get_batch_iterator(task.dataset("train"), max_sentences=7, seed=9)
    assert rows(batches.next_epoch_itr(shuffle=False)) == expected
