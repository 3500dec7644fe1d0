"""Special symbols that are written in the text: no slot moves, nothing dies, nothing is lost."""

import math

import pytest
import torch
from fairseq import tasks

from fairseq_eisl.data.partial_targets import PartialTargetDataset, Symbols
from tests.toy import NAT_ARCHS, parse, preprocess, setup

LINES = ["w1 <pad> w2", "<pad>", "w3 <s> w4 w5", "w6 </s> w7 w7", "<unk> w8", "<pad> w9 <pad>"]
NOISE = ["--target-noise", "shuffle:2,repeat:0.3,drop:0.1,insert:0.1,substitute:0.1"]


@pytest.fixture(scope="module")
def data(toy, tmp_path_factory):
    """A corpus of such lines, on both sides of every split."""
    folder = tmp_path_factory.mktemp("specials")
    for split in ("train", "valid", "test"):
        for side in ("en", "de"):
            (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in LINES))
    dictionary = ["--srcdict", str(toy.bin / "dict.en.txt"), "--joined-dictionary"]
    preprocess(folder, folder / "bin", *dictionary)
    return folder / "bin"


@pytest.mark.parametrize("kind", ["full_mask", "random_mask", "no_noise"])
def test_masks_keep_their_places_beside_padding_in_the_midst(kind):
    symbols = Symbols(bos=0, pad=1, eos=2, unk=3)
    targets = torch.tensor([[0, 5, 1, 6, 2], [0, 7, 8, 2, 1], [0, 1, 1, 2, 1]])
    dataset = PartialTargetDataset([], kind, 0.0, symbols)
    for epoch in range(1, 20):
        dataset._epoch.value = epoch
        found = dataset.partial_targets(torch.arange(3), targets)
        assert found.shape == targets.shape
        assert (found.eq(targets) | found.eq(3) & targets.gt(3)).all()
        if kind == "full_mask":
            assert found.tolist() == [[0, 3, 1, 3, 2], [0, 3, 3, 2, 1], [0, 1, 1, 2, 1]]


@pytest.mark.parametrize("arch", [*NAT_ARCHS, "transformer", "bart_base"])
def test_a_written_pad_is_an_unknown_word(data, arch):
    task = tasks.setup_task(parse(str(data), "--criterion", "eisl", arch=arch).task)
    for split in ("train", "valid", "test"):
        task.load_dataset(split)
        dataset = task.dataset(split)
        assert len(dataset) == len(LINES)
        for index, line in enumerate(LINES):
            words = line.replace("<pad>", "<unk>").split()
            expected = [task.src_dict.index(word) for word in words]
            for side in ("source", "target"):
                tokens = dataset[index][side].tolist()
                assert tokens[-1 - len(words) :] == [*expected, 2]
    encoded = [task.src_dict.encode_line(line, add_if_not_exist=False).long() for line in LINES]
    inference = task.build_dataset_for_inference(encoded, [len(row) for row in encoded])
    assert not any(inference[i]["source"].eq(1).any() for i in range(len(LINES)))


@pytest.mark.parametrize("arch", [*NAT_ARCHS, "transformer"])
@pytest.mark.parametrize("noise", [[], NOISE])
def test_such_text_is_trained_and_validated_on_as_any_other(data, arch, noise):
    flags = ["--dae-ratio", "0"] if arch.startswith("iterative") else []
    flags += ["--dropout", "0", *noise]
    made = setup(data, *flags, arch=arch, position_selection="softmax", scale=2.0)
    made.task.load_dataset("train")
    dataset = made.task.dataset("train")
    items = [dataset[i] for i in range(len(LINES))]
    whole = dataset.collater(items)
    assert whole["target"].ne(1).sum() == sum(len(item["target"]) for item in items)
    loss = made.criterion(made.model, whole)[0]
    alone = sum(made.criterion(made.model, dataset.collater([item]))[0] for item in items)
    assert math.isfinite(loss) and float(alone) == pytest.approx(float(loss), rel=1e-4)
