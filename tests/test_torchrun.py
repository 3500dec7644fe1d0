"""Training as users start it on several workers: ``torchrun``, here with gloo on CPUs."""

import os
import re
import sys
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf

from fairseq_eisl import fairseq_fixes
from tests.toy import ARCHS, LANGUAGES, ROOT, TRAINING, USER_DIR, run_cli, run_process, train

STOCK = "--task translation --criterion cross_entropy --max-update 3".split()
GLOO = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]


def parameters(folder: Path):
    state = torch.load(folder / "checkpoint_last.pt", weights_only=False)
    return {name: p.double() for name, p in state["model"].items() if p.is_floating_point()}


def updates(output: str) -> int:
    return int(re.search(r"\| train \|.* num_updates (\d+)", output)[1])


@pytest.mark.skipif(torch.cuda.device_count() > 0, reason="with GPUs the workers take those")
def test_two_workers_are_one_with_two_batches_an_update(toy, tmp_path):
    """EISL on noisy targets, with greedy candidates; SGD, no dropout; from a checkpoint, which the
    first worker reads for both. The one worker with --update-freq 2 sees the same sentences in an
    update."""
    start = tmp_path / "start"
    code, output = train(toy.bin, start, *STOCK, "--no-epoch-checkpoints")
    assert code == 0, output[-2000:]
    flags = [
        *("--finetune-from-model", str(start / "checkpoint_last.pt")),
        *(str(toy.bin), "--user-dir", USER_DIR, *TRAINING, *LANGUAGES),
        *("--task", "noisy_translation", "--target-noise", "repeat:0.5", "--criterion", "eisl"),
        *("--ngram", "1,2", "--arch", "transformer", *ARCHS["transformer"], "--dropout", "0"),
        *("--optimizer", "sgd", "--lr", "0.3", "--max-tokens", "240", "--max-epoch", "1"),
        "--no-epoch-checkpoints",
    ]
    code, alone = run_cli(
        "fairseq-train", *flags, "--update-freq", "2", "--save-dir", str(tmp_path / "one")
    )
    assert code == 0, alone
    code, output = run_process(
        *("python", "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"),
        *("--no-python", str(Path(sys.executable).parent / "fairseq-train"), *flags, *GLOO),
        *("--save-dir", str(tmp_path / "two")),
        env={"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        timeout=600,
    )
    assert code == 0, output[-4000:]
    assert "as rank 1" in output and "training on 2 devices" in output
    assert updates(output) == updates(alone) > 3
    one, two = (parameters(tmp_path / name) for name in ("one", "two"))
    moved = 0.0
    for name, value in one.items():
        assert torch.allclose(value, two[name], rtol=1e-4, atol=1e-6), name
        moved = max(moved, float(value.abs().max()))
    assert moved > 0


def test_without_the_mend_each_worker_trains_for_itself():
    """If this fails, ``join_launched_workers`` is no longer needed with this fairseq."""
    from fairseq.dataclass.configs import DistributedTrainingConfig
    from fairseq.distributed import utils

    fairseq_fixes.join_launched_workers()
    stock = utils.infer_init_method.__wrapped__
    launched = {"MASTER_ADDR": "x", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in launched.items():
            patch.setenv(name, value)
        patch.setattr(torch.cuda, "device_count", lambda: 0)
        cfg = DistributedTrainingConfig(distributed_world_size=1, tpu=False)
        stock(cfg)
        assert cfg.distributed_init_method is None and cfg.distributed_world_size == 1
        with pytest.raises(ZeroDivisionError):
            stock(DistributedTrainingConfig(distributed_world_size=2, tpu=False))
        utils.infer_init_method(cfg)
        assert (cfg.distributed_world_size, cfg.distributed_rank) == (2, 1)
        assert cfg.distributed_init_method == "env://" and cfg.distributed_no_spawn
        patch.setenv("WORLD_SIZE", "1")  # one worker is none to be joined
        alone = DistributedTrainingConfig(distributed_world_size=1, tpu=False)
        utils.infer_init_method(alone)
        assert alone.distributed_init_method is None


@pytest.mark.parametrize(
    "job",
    [
        # A shell of salloc, and a batch script of four tasks that starts one training.
        {"SLURM_JOB_NODELIST": "n1", "SLURM_JOB_ID": "7", "SLURM_NNODES": "1"},
        {
            **{"SLURM_JOB_NODELIST": "n1", "SLURM_JOB_ID": "7", "SLURM_NNODES": "1"},
            **{"SLURM_NTASKS_PER_NODE": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
        },
    ],
)
def test_a_training_within_a_job_of_slurm_uses_the_gpus_of_its_machine(monkeypatch, tmp_path, job):
    from fairseq.dataclass.configs import DistributedTrainingConfig
    from fairseq.distributed import utils

    fairseq_fixes.join_launched_workers()
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho n1\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: None)
    for name in [name for name in os.environ if "SLURM_" in name]:
        monkeypatch.delenv(name)
    for name, value in job.items():
        monkeypatch.setenv(name, value)

    def inferred(infer):
        given = {"distributed_world_size": 4, "distributed_port": -1, "tpu": False}
        cfg = OmegaConf.structured(DistributedTrainingConfig(**given))
        infer(cfg)
        return cfg

    # If this fails, the mend is no longer needed with this fairseq.
    try:
        assert inferred(utils.infer_init_method.__wrapped__).distributed_no_spawn
    except TypeError as err:
        assert "NoneType" in str(err)
    found = [inferred(utils.infer_init_method) for _ in range(4)]
    for cfg in found:
        assert (cfg.distributed_world_size, cfg.distributed_rank) == (4, 0)
        assert cfg.distributed_num_procs == 4 and not cfg.distributed_no_spawn
    assert len({cfg.distributed_init_method for cfg in found}) > 1  # a port of its own each
    assert os.environ["SLURM_JOB_ID"] == "7"

    # Four tasks of srun are four workers of one training, which agree on the port.
    tasks = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS_PER_NODE": "4", "SLURM_PROCID": "2"}
    for name, value in {**tasks, "SLURM_LOCALID": "2"}.items():
        monkeypatch.setenv(name, value)
    ours, stock = map(inferred, (utils.infer_init_method, utils.infer_init_method.__wrapped__))
    assert ours.distributed_no_spawn and ours.distributed_rank == 2
    assert ours.distributed_init_method == stock.distributed_init_method
