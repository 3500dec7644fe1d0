"""The mends of ``fairseq_eisl.fairseq_fixes``: each is still needed, works, and goes no further."""

import argparse
import inspect
import io
import pickle

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.data import TokenBlockDataset, token_block_dataset
from fairseq.distributed import utils as distributed
from fairseq.modules import dynamic_crf_layer
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from fairseq_eisl import fairseq_fixes
from tests.toy import ARCHS, CPU, TINY, USER_DIR, hypotheses, run_cli, setup, train

BLEU = [
    *("--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 10}'),
    *("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"),
]


@pytest.fixture(scope="module")
def checkpoint(toy, tmp_path_factory):
    """Of two updates of stock training; validation with BLEU leaves numpy values in it."""
    folder = tmp_path_factory.mktemp("bleu")
    code, output = train(
        *(toy.bin, folder, "--task", "translation", "--criterion", "cross_entropy"),
        *("--max-update", "2", "--no-epoch-checkpoints", *BLEU),
    )
    assert code == 0, output[-2000:]
    return folder / "checkpoint_best.pt"


def generate_flags(toy, path):
    return [toy.bin, "--path", path, *CPU, "--max-len-b", "10", "--beam", "1"]


# -- still needed --------------------------------------------------------------------------


def test_without_the_plugin_fairseq_cannot_read_its_own_checkpoint(toy, checkpoint, fresh):
    """If this fails, ``allow_checkpoint_classes`` is no longer needed with this fairseq."""
    code, output = fresh.cli("fairseq-generate", *generate_flags(toy, checkpoint))
    assert code != 0 and "UnpicklingError" in output and "argparse.Namespace" in output


def test_numpy_has_no_float_and_the_crf_layer_asks_for_it(monkeypatch):
    """If this fails, ``mend_crf_float`` is no longer needed with this numpy or fairseq."""
    assert not hasattr(np, "float")
    monkeypatch.setattr(dynamic_crf_layer, "np", np)
    with pytest.raises(AttributeError, match="float"):
        crf_loss()


def test_other_workers_read_what_the_safe_loader_refuses():
    """If its first half fails, ``trust_other_workers`` is no longer needed with this fairseq."""
    buffer = io.BytesIO()
    torch.save({"cfg": OmegaConf.create({"seed": 1})}, buffer)
    assert "torch.load(buffer" in inspect.getsource(distributed._broadcast_object_slow)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(buffer, map_location="cpu")
    fairseq_fixes.trust_other_workers()
    buffer.seek(0)
    assert distributed.torch.load(buffer, map_location="cpu")["cfg"].seed == 1
    assert distributed.torch.cuda is torch.cuda


def sentence_blocks():
    sentences = [torch.tensor([5, 6, 2]), torch.tensor([7, 2])]
    return TokenBlockDataset(sentences, [3, 2], None, pad=1, eos=2, break_mode="eos")


def test_numpy_has_no_compat_and_blocks_of_sentences_ask_for_it(monkeypatch):
    """If this fails, ``mend_token_blocks`` is no longer needed with this numpy or fairseq."""
    assert not hasattr(np, "compat")
    monkeypatch.setattr(token_block_dataset, "np", np)
    with pytest.raises(AttributeError, match="compat"):
        sentence_blocks()


# -- they work -----------------------------------------------------------------------------


def crf_loss():
    layer = dynamic_crf_layer.DynamicCRF(20, low_rank=4, beam_size=5)
    torch.manual_seed(1)
    emissions = torch.randn(2, 4, 20)
    targets = torch.randint(20, (2, 4))
    return layer(emissions, targets, torch.ones(2, 4, dtype=torch.bool))


def test_the_crf_layer_works():
    assert crf_loss().isfinite().all()


def test_blocks_of_sentences_work():
    assert [block.tolist() for block in sentence_blocks()] == [[5, 6, 2], [7, 2]]


def test_nacrf_trains(toy, tmp_path):
    code, output = run_cli(
        *("fairseq-train", toy.bin, "--user-dir", USER_DIR, "--save-dir", tmp_path),
        *(*CPU, "--optimizer", "adam", "--lr", "0.001", "--max-tokens", "200"),
        *("-s", "en", "-t", "de", "--arch", "nacrf_transformer", *TINY),
        *("--share-all-embeddings", "--word-ins-loss-factor", "0.5", "--crf-beam-approx", "8"),
        *("--encoder-learned-pos", "--decoder-learned-pos", "--apply-bert-init"),
        *("--task", "translation_lev", "--criterion", "nat_loss", "--noise", "full_mask"),
        *("--max-update", "2", "--no-save"),
    )
    assert code == 0 and "nan" not in output.split("begin training")[1], output[-2000:]


def test_generation_reads_a_checkpoint_with_numpy_values(toy, checkpoint):
    """Also a stock one, of another task, trained without the plugin."""
    found = torch.serialization.get_unsafe_globals_in_checkpoint(str(checkpoint))
    assert found == []  # all of them are on the list by now
    assert b"numpy" in checkpoint.read_bytes()  # and there are some
    code, output = run_cli(
        "fairseq-generate", *generate_flags(toy, checkpoint), "--user-dir", USER_DIR
    )
    assert code == 0 and hypotheses(output), output[-2000:]


def numpy_values():
    return {
        "counts": np.array([3, 2, 1, 0]),
        "float": np.float64(2.5),
        "half": np.array([1.5], dtype=np.float32),
        "integer": np.int64(7),
    }


@pytest.mark.parametrize("module", [b"numpy._core.multiarray", b"numpy.core.multiarray"])
def test_numpy_values_load_whichever_numpy_wrote_them(tmp_path, module):
    """numpy 2 renamed the module that its pickles name; the old names must work as well."""
    path = tmp_path / "values.pt"
    torch.save(numpy_values(), path, _use_new_zipfile_serialization=False)
    stored = path.read_bytes()
    written = b"numpy._core.multiarray" if b"numpy._core" in stored else b"numpy.core.multiarray"
    path.write_bytes(stored.replace(written, module))
    loaded = torch.load(path)
    assert loaded.pop("counts").tolist() == [3, 2, 1, 0]
    assert loaded.pop("half").tolist() == [1.5]
    assert loaded == {"float": 2.5, "integer": 7}


@pytest.mark.parametrize("zipped", [False, True])
def test_a_checkpoint_of_upstreams_bart_is_restored(toy, tmp_path, zipped):
    """Its format is fairseq 0.9's: ``args`` is a Namespace, there is no ``cfg``, not zipped."""
    made = setup(toy.bin, arch="bart_base")
    args = argparse.Namespace(
        **{**vars(made.cfg.model), "arch": "bart_large", "task": "denoising", "mask": 0.3},
    )
    args.criterion = "cross_entropy"
    history = {"criterion_name": "CrossEntropyCriterion", "optimizer_name": "MemoryEfficientFP16"}
    state = {
        "args": args,
        "model": made.model.state_dict(),
        "optimizer_history": [
            {**history, "lr_scheduler_state": {"best": 1.5}, "num_updates": 500_000}
        ],
        "extra_state": {"train_iterator": {"epoch": 40, "iterations_in_epoch": 0}, "val_loss": 1.5},
        "last_optimizer_state": None,
    }
    path = tmp_path / "model.pt"
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    code, output = train(
        *(toy.bin, tmp_path / "save", "--task", "noisy_translation", "--criterion", "eisl"),
        *("--restore-file", str(path), "--reset-optimizer", "--reset-dataloader"),
        *("--reset-meters", "--reset-lr-scheduler", "--max-update", "1", "--lr", "0"),
        arch="bart_base",
    )
    assert code == 0 and f"Loaded checkpoint {path}" in output, output[-2000:]
    saved = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "save/checkpoint_last.pt"))
    for name, value in made.model.state_dict().items():
        assert torch.equal(saved["model"][name], value), name
    assert ARCHS["bart_base"]


# -- and go no further ---------------------------------------------------------------------


class Stranger:
    """A class that no checkpoint of fairseq holds."""


def test_a_checkpoint_with_any_other_class_is_refused(toy, checkpoint, tmp_path):
    state = torch.load(checkpoint)
    state["extra_state"]["stranger"] = Stranger()
    path = tmp_path / "stranger.pt"
    torch.save(state, path)
    with pytest.raises(pickle.UnpicklingError, match="Stranger"):
        torch.load(path)
    code, output = run_cli("fairseq-generate", *generate_flags(toy, path), "--user-dir", USER_DIR)
    assert code != 0 and "Unsupported global" in output and "Stranger" in output


def test_torch_load_is_as_it_was():
    assert torch.load.__module__ == "torch.serialization"
    assert inspect.signature(torch.load).parameters["weights_only"].default is None


def test_the_list_holds_nothing_else():
    """Classes that carry data and run no code of the checkpoint's choosing."""
    names = {
        entry[1] if isinstance(entry, tuple) else f"{entry.__module__}.{entry.__qualname__}"
        for entry in fairseq_fixes.checkpoint_classes()
    }
    assert names == {
        "argparse.Namespace",
        "numpy.dtype",
        "numpy.ndarray",
        *(f"numpy.dtypes.{kind}DType" for kind in ("Float64", "Float32", "Int64")),
        *(
            f"numpy.{core}.multiarray.{name}"
            for core in ("core", "_core")
            for name in ("_reconstruct", "scalar")
        ),
    }


def test_numpy_stays_as_it_was(fresh):
    code, output = fresh(
        "import numpy, sys\n"
        "before = dict(vars(numpy))\n"
        "import fairseq, fairseq_eisl\n"
        "from fairseq.modules import dynamic_crf_layer as layer\n"
        "assert vars(layer.np) == {'float': float}, vars(layer.np)\n"
        "changed = {k for k, v in vars(numpy).items() if before.get(k) is not v}\n"
        "print('changed', sorted(k for k in changed if 'float' in k or k in before))",
        path=[USER_DIR.rsplit("/", 1)[0]],
    )
    assert code == 0 and output.strip().endswith("changed []"), output


@pytest.mark.parametrize(
    "content, words",
    [
        ({}, "a dict without the entry 'model'"),
        ([1, 2], "a list without the entry 'model'"),
        (None, "a NoneType without"),
        (torch.zeros(3), "a Tensor without"),
        ({"model": {}}, "a model without its settings"),
        (b"hello\n", "it is a text"),
        (b"not a checkpoint\n", "it is a text"),
    ],
)
def test_what_is_no_checkpoint_is_named_in_one_line(tmp_path, content, words):
    path = tmp_path / "some.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(ValueError, match=words) as caught:
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_damaged_names_in_an_archive_are_damage(tmp_path):
    path = tmp_path / "some.pt"
    torch.save({"model": {"weight": torch.zeros(9)}}, path)
    data = path.read_bytes()
    for start in range(100, 240, 20):
        path.write_bytes(data[:start] + b"\xff" * 60 + data[start + 60 :])
        with pytest.raises(ValueError) as caught:
            checkpoint_utils.load_checkpoint_to_cpu(str(path))
        assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


def test_mending_twice_is_mending_once():
    before = len(torch.serialization.get_safe_globals())
    fairseq_fixes.apply()
    assert len(torch.serialization.get_safe_globals()) == before


def test_an_older_torch_or_numpy_needs_no_mend(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.5.1")
    monkeypatch.setattr(torch.serialization, "add_safe_globals", None)
    fairseq_fixes.allow_checkpoint_classes()
    monkeypatch.setattr(np, "float", float, raising=False)
    monkeypatch.setattr(dynamic_crf_layer, "np", np)
    fairseq_fixes.mend_crf_float()
    assert dynamic_crf_layer.np is np


class Counting(CrossEntropyCriterion):
    """A criterion that has seen something."""

    seen = 0

    def kept_state(self):
        return {"seen": self.seen}

    def load_kept_state(self, state):
        self.seen = state["seen"]


@pytest.mark.parametrize(
    ("reset", "expected"), [({}, 7), ({"reset_optimizer": True}, 0)], ids=["resumed", "begun"]
)
def test_a_resumed_training_has_the_state_of_its_criterion(toy, tmp_path, reset, expected):
    """One that only begins with the weights (--finetune-from-model resets all) has not."""

    def trainer():
        made = setup(toy.bin)
        return Trainer(made.cfg, made.task, made.model, Counting(made.task, False))

    first, second = trainer(), trainer()
    first.criterion.seen = 7
    path = str(tmp_path / "checkpoint.pt")
    first.consolidate_optimizer()
    first.save_checkpoint(path, {"train_iterator": {"epoch": 1}})
    saved = torch.load(path)
    assert saved["extra_state"]["criterion_state"] == {"seen": 7}
    second.load_checkpoint(path, **reset)
    assert second.criterion.seen == expected


def test_a_criterion_without_state_leaves_the_checkpoint_as_it_was(toy, tmp_path):
    made = setup(toy.bin)
    trainer = Trainer(made.cfg, made.task, made.model, made.criterion)
    path = str(tmp_path / "checkpoint.pt")
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(path, {"train_iterator": {"epoch": 1}})
    assert "criterion_state" not in torch.load(path)["extra_state"]
    trainer.load_checkpoint(path)


def test_a_killed_training_has_no_more_patience_than_it_had(toy, tmp_path, monkeypatch):
    """Begun anew, what an earlier training has counted is not its own."""
    from fairseq_cli.train import should_stop_early as stops

    def trainer():
        made = setup(toy.bin, "--patience", "2", "--maximize-best-checkpoint-metric")
        return Trainer(made.cfg, made.task, made.model, made.criterion)

    def new_process():
        for name in ("best", "num_runs"):
            monkeypatch.delattr(stops, name, raising=False)

    first, second = trainer(), trainer()
    path = str(tmp_path / "checkpoint.pt")
    new_process()
    assert [stops(first.cfg, score) for score in (10.0, 9.0)] == [False, False]
    first.consolidate_optimizer()
    first.save_checkpoint(path, {"train_iterator": {"epoch": 1}})
    for reset in ({"reset_optimizer": True}, {"reset_meters": True}):
        new_process()
        second.load_checkpoint(path, **reset)
        assert [stops(second.cfg, score) for score in (8.0, 7.0)] == [False, False]
    new_process()
    second.load_checkpoint(path)
    assert [stops(second.cfg, score) for score in (9.5, 9.6)] == [True, True]
    new_process()


def test_without_patience_a_checkpoint_has_none(toy, tmp_path, monkeypatch):
    from fairseq_cli.train import should_stop_early

    made = setup(toy.bin)
    trainer = Trainer(made.cfg, made.task, made.model, made.criterion)
    trainer.consolidate_optimizer()
    monkeypatch.setattr(should_stop_early, "best", 3.0, raising=False)
    trainer.save_checkpoint(str(tmp_path / "c.pt"), {"train_iterator": {"epoch": 1}})
    assert "patience_state" not in torch.load(tmp_path / "c.pt")["extra_state"]
