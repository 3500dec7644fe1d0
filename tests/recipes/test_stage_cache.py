"""Keys of stages, and what a killed training leaves behind."""

import os

import pytest
import torch

from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.errors import RecipeError
from fairseq_eisl.recipes.schema import load
from fairseq_eisl.recipes.stage_cache import StageCache, mend_last_checkpoint
from tests.recipes.conftest import SMOKE


def keys(tmp_path, *overrides):
    return StageCache(str(tmp_path)).keys(build(load(str(SMOKE), overrides)))


def changed(tmp_path, *overrides):
    old, new = keys(tmp_path), keys(tmp_path, *overrides)
    return {name for name in new if old.get(name) != new[name]}


def test_a_changed_setting_changes_what_depends_on_it_and_nothing_else(tmp_path):
    later = {"eisl", "generate_eisl", "score"}
    assert changed(tmp_path) == set()
    assert changed(tmp_path, "train.eisl.flags.lr=1e-4") == later
    assert changed(tmp_path, "generate.beam=2") == {"generate_ce", "generate_eisl", "score"}
    assert changed(tmp_path, "noise=repeat:0.3") == {"ce", "generate_ce", *later}
    assert changed(tmp_path, "data.test_set=x") == {"score"}
    assert changed(tmp_path, "name=other") == {"score"}
    assert changed(tmp_path, "data.options=[--train,'10']") == set(keys(tmp_path))


def test_launcher_gpus_and_the_last_update_reach_the_training():
    overrides = ["launcher=[torchrun,--no-python]", "gpus='0,1'", "train.ce.flags.max-update=0"]
    overrides.append("device=auto")  # on a CPU a training is one process
    stages = {stage.name: stage for stage in build(load(str(SMOKE), overrides), gpus=2)}
    assert stages["ce"].commands[0][:3] == ("torchrun", "--no-python", "fairseq-train")
    assert stages["ce"].gpus == stages["generate_eisl"].gpus == "0,1"
    assert stages["ce"].max_update is None  # 0 is fairseq's word for no limit
    assert stages["eisl"].max_update == 60


def test_the_content_of_files_from_outside_counts(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "train.de").write_text("a\n")
    overrides = ["data.prepare=multi30k", f"data.folder={folder}"]
    before = keys(tmp_path, *overrides)
    os.utime(folder / "train.de", (1, 1))
    assert keys(tmp_path, *overrides) == before
    (folder / "train.de").write_text("b\n")
    assert not set(keys(tmp_path, *overrides).values()) & set(before.values())


def checkpoint(path, value, time):
    torch.save({"model": {"x": torch.full((1000,), value)}}, path)
    os.utime(path, (time, time))


def loaded(path):
    return torch.load(path)["model"]["x"][0].item()


def test_a_torn_last_checkpoint_is_replaced_by_what_it_was_copied_from(tmp_path):
    checkpoint(tmp_path / "checkpoint_1_10.pt", 1.0, 10)
    checkpoint(tmp_path / "checkpoint_best.pt", 2.0, 20)
    checkpoint(tmp_path / "checkpoint_last.pt", 2.0, 30)
    whole = (tmp_path / "checkpoint_last.pt").read_bytes()
    assert mend_last_checkpoint(str(tmp_path)) and loaded(tmp_path / "checkpoint_last.pt") == 2.0
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "checkpoint_last.pt").write_bytes(whole[:size])
        assert mend_last_checkpoint(str(tmp_path))
        assert loaded(tmp_path / "checkpoint_last.pt") == 2.0
    for name in ("last", "best", "1_10"):
        (tmp_path / f"checkpoint_{name}.pt").write_bytes(whole[:50])
    assert not mend_last_checkpoint(str(tmp_path))
    assert not (tmp_path / "checkpoint_last.pt").exists()
    assert not mend_last_checkpoint(str(tmp_path))


def test_the_content_of_a_file_that_a_flag_names_counts(tmp_path):
    weights = tmp_path / "start.pt"

    def key():
        return keys(tmp_path, f"train.ce.flags.init-weights={weights}")["ce"]

    weights.write_bytes(b"one")
    first = key()
    assert key() == first
    weights.write_bytes(b"two")
    assert key() != first
    weights.unlink()
    with pytest.raises(RecipeError, match="start.pt"):
        key()
