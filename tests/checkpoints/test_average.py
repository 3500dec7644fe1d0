"""The average of checkpoints: values, dtypes, ties, what else is in the file, and refusals."""

import argparse
import os

import pytest
import torch

from fairseq_eisl.checkpoints import average_checkpoints, read_checkpoint, write_checkpoint

from .fairseq_checkpoints import checkpoint, place, save


class Foreign:
    """A class that no fairseq checkpoint holds."""


def saved(*models):
    """Checkpoints 1.pt, 2.pt ... of the models."""
    return [save(f"{i}.pt", model, 10 * i) for i, model in enumerate(models, 1)]


def mean_of(*models):
    return average_checkpoints(saved(*models))["model"]


def refusal(*models):
    with pytest.raises(ValueError) as error:
        mean_of(*models)
    return str(error.value)


# -- values ---------------------------------------------------------------------------------


def test_every_weight_is_the_mean(folder):
    models = [{"w": torch.tensor([i, 2.0, -i]), "b": torch.tensor(1.0 * i)} for i in (1, 2, 6)]
    mean = mean_of(*models)
    assert list(mean) == ["w", "b"]
    assert mean["w"].tolist() == [3.0, 2.0, -3.0] and mean["b"].item() == 3.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_dtype_stays_and_equal_models_are_their_own_mean(folder, dtype):
    """Summed in their own dtype, three equal numbers do not give themselves back."""
    torch.manual_seed(1)
    weight = torch.randn(1000).to(dtype)
    mean = mean_of(*[{"w": weight}] * 3)["w"]
    assert mean.dtype == dtype and torch.equal(mean, weight)


def test_sums_beyond_float16_are_no_overflow(folder):
    weight = torch.full((2,), 60000.0, dtype=torch.float16)
    assert torch.equal(mean_of({"w": weight}, {"w": weight})["w"], weight)


def test_float64_is_where_it_is_summed(folder):
    models = [{"w": torch.tensor([x], dtype=torch.float32)} for x in (1.0, 2.0**-24, 2.0**-24)]
    expected = torch.tensor([(1 + 2.0**-23) / 3], dtype=torch.float64).float()
    assert torch.equal(mean_of(*models)["w"], expected)


def test_one_checkpoint_is_its_own_mean(folder):
    weight = torch.randn(3, 2)
    assert torch.equal(mean_of({"w": weight})["w"], weight)


def test_gradients_do_not_matter(folder):
    weight = torch.nn.Parameter(torch.ones(2))
    mean = mean_of({"w": weight}, {"w": weight})["w"]
    assert not mean.requires_grad


def test_counters_are_those_of_the_last(folder):
    models = [
        {"n.num_batches_tracked": torch.tensor(i), "flag": torch.tensor([i > 1])} for i in (1, 2)
    ]
    mean = mean_of(*models)
    assert mean["n.num_batches_tracked"].item() == 2
    assert mean["n.num_batches_tracked"].dtype == torch.int64
    assert mean["flag"].tolist() == [True]


def test_tables_must_be_equal(folder):
    same = {"table": torch.tensor([1, 2, 3])}
    assert mean_of(same, same)["table"].tolist() == [1, 2, 3]
    message = refusal(same, same, {"table": torch.tensor([1, 2, 4])})
    assert message.startswith("3.pt: table (torch.int64) has other values than in 1.pt")


def test_the_versions_of_modules_stay(folder):
    """torch keeps them beside the entries of a state dict, for its upgrades."""
    model = torch.nn.BatchNorm1d(2).state_dict()
    assert mean_of(model, model)._metadata == model._metadata


# -- ties -----------------------------------------------------------------------------------


def tied(value):
    weight = torch.full((50, 20), float(value))
    return {"encoder.embed": weight, "x": weight[0], "decoder.embed": weight, "out": weight.t()}


def test_tied_tensors_are_averaged_once_and_stay_tied(folder):
    write_checkpoint(average_checkpoints(saved(tied(1), tied(2))), "out.pt")
    model = read_checkpoint("out.pt")["model"]
    assert place(model["encoder.embed"]) == place(model["decoder.embed"])
    for name, tensor in tied(1.5).items():  # a part of a tensor and a turned one are no ties
        assert torch.equal(model[name], tensor), name
    assert len({place(tensor) for tensor in model.values()}) == 3


@pytest.mark.parametrize("first", [True, False])
def test_what_is_tied_in_one_checkpoint_alone_is_not_tied(folder, first):
    free = {"a": torch.tensor([1.0, 1.0]), "b": torch.tensor([5.0, 5.0])}
    weight = torch.tensor([2.0, 2.0])
    models = [{"a": weight, "b": weight}, free, {"a": weight * 3, "b": weight * 3}]
    mean = mean_of(*(models if first else models[::-1]))
    assert mean["a"].tolist() == [3.0, 3.0] and mean["b"].tolist() == pytest.approx([13 / 3] * 2)
    assert place(mean["a"]) != place(mean["b"])


def test_tied_tables_stay_tied(folder):
    table = torch.tensor([1, 2])
    mean = mean_of(*[{"a": table, "b": table}] * 2)
    assert place(mean["a"]) == place(mean["b"])


# -- what else is in the file ---------------------------------------------------------------


def test_the_rest_is_of_the_last_without_the_optimiser(folder):
    weight = {"w": torch.ones(2)}
    args = argparse.Namespace(arch="lstm", seed=2)
    paths = [save("1.pt", weight, 10), save("2.pt", weight, 25, args=args, task_state={"n": 2})]
    state = average_checkpoints(paths)
    assert "last_optimizer_state" not in state
    assert state["args"] == args and state["task_state"] == {"n": 2}
    assert state["optimizer_history"] == [{"criterion_name": "EISL", "num_updates": 25}]
    assert state["extra_state"] == {
        "train_iterator": {"epoch": 2},
        "val_loss": None,
        "best": 1.5,
        "averaged_from": [
            {"file": "1.pt", "num_updates": 10},
            {"file": "2.pt", "num_updates": 25},
        ],
    }
    write_checkpoint(state, "out.pt")
    assert read_checkpoint("out.pt")["extra_state"] == state["extra_state"]  # the safe loader's
    assert os.path.getsize("out.pt") < os.path.getsize("2.pt") - 3000


def test_an_average_can_be_averaged(folder):
    paths = saved({"w": torch.tensor([1.0])}, {"w": torch.tensor([3.0])})
    write_checkpoint(average_checkpoints(paths), "out.pt")
    again = average_checkpoints(["out.pt", "2.pt"])
    assert again["model"]["w"].tolist() == [2.5]


def test_the_format_from_before_torch_1_6_is_read(folder):
    old = checkpoint({"w": torch.tensor([4.0])})
    torch.save(old, "old.pt", _use_new_zipfile_serialization=False)
    assert average_checkpoints(["old.pt"])["model"]["w"].tolist() == [4.0]


def test_inputs_are_as_they_were(folder):
    paths = saved({"w": torch.ones(2), "n": torch.tensor(1)}, {})
    save("2.pt", {"w": torch.ones(2) * 3, "n": torch.tensor(2)})
    before = [open(path, "rb").read() for path in paths]
    average_checkpoints(paths)
    assert [open(path, "rb").read() for path in paths] == before


# -- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other, message",
    [
        ({"w": torch.ones(2)}, "2.pt: no parameter b, 1.pt has it"),
        ({}, "2.pt: no fairseq checkpoint, its 'model' is no state dict"),
        (
            {"w": torch.ones(2), "b": torch.ones(1), **{f"x{i}": torch.ones(1) for i in range(5)}},
            "2.pt: parameter x0, x1, x2 and 2 more is not in 1.pt",
        ),
        (
            {"w": torch.ones(3), "b": torch.ones(1)},
            "2.pt: w has shape (3,), (2,) in 1.pt",
        ),
        (
            {"w": torch.ones(2), "b": torch.ones(1).half()},
            "2.pt: b is torch.float16, torch.float32 in 1.pt",
        ),
        ({"w": 3, "b": torch.ones(1)}, "2.pt: w is no tensor but a int"),
    ],
)
def test_models_that_do_not_fit(folder, other, message):
    assert refusal({"w": torch.ones(2), "b": torch.ones(1)}, other) == message


@pytest.mark.parametrize(
    "content, message",
    [
        ({"weights": {}, "epoch": 3}, "no fairseq checkpoint, it has no 'model' .but weights, epo"),
        ([1, 2], "no fairseq checkpoint, it has no 'model'$"),
        ({"model": torch.ones(2)}, "its 'model' is no state dict"),
        (checkpoint({"w": torch.ones(1)}, cfg=Foreign()), r"it holds tests\.checkpoints.*Foreign"),
        (b"", "no file that torch.load can read"),
        (b"a text\n", "no file that torch.load can read"),
        (b"PK\x05\x06" + b"\0" * 18, "no file that torch.load can read"),  # an empty zip archive
    ],
)
def test_files_that_are_no_checkpoints(folder, content, message):
    if isinstance(content, bytes):
        (folder / "x.pt").write_bytes(content)
    else:
        torch.save(content, "x.pt")
    with pytest.raises(ValueError, match=f"^x.pt: .*{message}"):
        average_checkpoints([save("1.pt", {"w": torch.ones(1)}), "x.pt"])


def test_half_a_checkpoint_is_refused(folder):
    data = (folder / save("1.pt", {"w": torch.ones(1000)})).read_bytes()
    (folder / "x.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="^x.pt: no file that torch.load can read"):
        average_checkpoints(["x.pt"])


def test_a_list_of_paths_that_cannot_be_meant_is_refused(folder):
    save("1.pt", {"w": torch.ones(1)})
    os.symlink("1.pt", "link.pt")
    with pytest.raises(FileNotFoundError):
        average_checkpoints(["1.pt", "none.pt"])
    for paths, message in [
        ([], "no checkpoints"),
        ("1.pt", "a list"),
        (["1.pt", "1.pt"], "1.pt: it would count twice"),
        (["1.pt", "link.pt"], "link.pt: it would count twice"),
    ]:
        with pytest.raises(ValueError, match=message):
            average_checkpoints(paths)
