"""What rows say about a training and its decoding is what the commands do."""

import csv
import re

import pytest
from fairseq.tasks import TASK_REGISTRY

from fairseq_eisl.common.provenance import provenance
from fairseq_eisl.recipes.checks import computed_columns
from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.placeholders import Folder
from fairseq_eisl.recipes.schema import Corpus, RecipeError, load
from fairseq_eisl.recipes.sweep import cells, load_sweep
from tests.recipes.conftest import SMOKE
from tests.recipes.test_schema import RECIPES, SWEEPS, stand_ins
from tests.toy import ROOT

NAT = ROOT / "configs/nat/nat_small.yaml"


def after(command, flag):
    """The value of a flag; None without one."""
    for i, word in enumerate(command):
        if word == flag:
            return command[i + 1]
        if isinstance(word, str) and word.startswith(f"{flag}="):
            return word.split("=", 1)[1]
    return None


def stage_of(path):
    """The stage in whose folder a file is."""
    (stage,) = (part.name for part in path.parts if isinstance(part, Folder))
    return stage


def labels(stages):
    """(columns, training command, generation command) for each row that a recipe scores."""
    by_name = {stage.name: stage for stage in stages}
    for command in by_name["score"].commands:
        if "score" in command:
            columns = dict(pair.split("=", 1) for pair in command[command.index("--set") + 1 :])
            training = stage_of(after(command, "--training-log"))
            generation = stage_of(after(command, "--log"))
            commands = (by_name[name].commands[-1] for name in (training, generation))
            yield (columns, *commands)


def check_labels(stages):
    found = list(labels(stages))
    assert found
    by_name = {stage.name: stage for stage in stages}
    for columns, training, generation in found:
        noised = after(training, "--task") in ("noisy_translation", "noisy_translation_lev")
        noise = after(training, "--target-noise") or "none"
        distilled = stage_of(training[1]) == "preprocess_distilled"
        if distilled and noise == "none":  # that of the teacher
            (first, *_) = [s for s in by_name.values() if s.name in ("distil", "distil_0")]
            teacher = stage_of(after(first.commands[-1], "--path"))
            noise = after(by_name[teacher].commands[-1], "--target-noise") or "none"
        assert columns["noise"] == noise
        assert noised == (after(training, "--target-noise") is not None)
        seeds = {after(training, "--seed"), after(generation, "--seed")}
        assert seeds == {columns["seed"]}
        if columns["noise"] != "none":
            seed = columns.get("noise_seed", columns["seed"])
            assert after(training, "--target-noise-seed") == seed
        if after(training, "--task").endswith("_lev"):
            assert columns["iterations"] == (after(generation, "--iter-decode-max-iter") or "10")
            beam = after(generation, "--iter-decode-with-beam") or "1"
            assert columns["length_candidates"] == beam
        else:
            assert columns["beam"] == (after(generation, "--beam") or "5")
            assert columns["lenpen"] == (after(generation, "--lenpen") or "1")
    return [columns["noise"] for columns, _, _ in found]


@pytest.mark.parametrize("noise", [None, "shuffle:2"])
@pytest.mark.parametrize("path", RECIPES, ids=[str(p.relative_to(ROOT)) for p in RECIPES])
def test_the_label_of_every_shipped_recipe_is_its_flag(path, noise, tmp_path):
    overrides = stand_ins(tmp_path, path) + ([f"noise={noise}"] if noise else [])
    if noise and path.parent.name == "style":  # its task noises nothing, and rows must not say so
        with pytest.raises(RecipeError, match="noises nothing"):
            load(str(path), overrides)
        return
    recipe = load(str(path), overrides)
    stages = build(recipe)
    found = check_labels(stages)
    if noise is not None:
        scored = [part for part in recipe.train.values() if part.system is not None]
        own = {part.noise or noise for part in scored if part.corpus != Corpus.distilled}
        assert set(found) == {*own, noise} if own else {noise}
        # Trainings that are not scored, teachers among them, get it as well.
        for stage in stages:
            if after(stage.commands[-1], "--task") in ("noisy_translation_lev",):
                if "fairseq-train" in stage.commands[-1]:
                    assert after(stage.commands[-1], "--target-noise") == noise
    for stage in stages:
        assert "denoising" not in stage.commands[-1] or "--target-noise" not in stage.commands[-1]


@pytest.mark.parametrize("path", SWEEPS, ids=[p.stem for p in SWEEPS])
def test_the_label_of_every_cell_is_its_flag(path, tmp_path):
    sweep = load_sweep(str(path))
    for cell in cells(sweep):
        check_labels(
            build(load(sweep.recipe, [*stand_ins(tmp_path, sweep.recipe), *cell.overrides]))
        )


def test_the_tasks_that_noise_are_those_of_this_package():
    import fairseq_eisl
    from fairseq_eisl.recipes.recipe import NOISY_TASKS

    fairseq_eisl.register()
    from fairseq_eisl.tasks.target_noise import TargetNoise

    assert set(NOISY_TASKS) == {
        name for name, task in TASK_REGISTRY.items() if issubclass(task, TargetNoise)
    }


def test_a_training_may_have_a_noise_of_its_own():
    stages = build(load(str(SMOKE), ["train.ce.noise=none", "noise_seed=7"]))
    assert check_labels(stages) == ["none", "repeat:0.5"]
    first, second = (columns for columns, _, _ in labels(stages))
    assert "noise_seed" not in first and second["noise_seed"] == "7"
    (test,) = [command for command in stages[-1].commands if "significance" in command]
    assert not [word for word in test if str(word).startswith("noise=")]  # it is of both systems


@pytest.mark.parametrize(
    "config, override, key",
    [
        (SMOKE, "flags.target-noise=blank:0.1", "flags.target-noise"),
        (SMOKE, "flags.target-noise=null", "flags.target-noise"),
        (SMOKE, "train.eisl.flags.target-noise=none", "train.eisl.flags.target-noise"),
        (SMOKE, "train.ce.flags.target-noise-seed=4", "train.ce.flags.target-noise-seed"),
        (SMOKE, "flags.seed=4", "flags.seed"),
        (SMOKE, "train.eisl.flags.seed=4", "train.eisl.flags.seed"),
        (SMOKE, "flags.task=translation", "noise"),
        (SMOKE, "columns.noise=none", "columns.noise"),
        (SMOKE, "columns.system=x", "columns.system"),
        (SMOKE, "columns.bleu=99", "columns.bleu"),
        (SMOKE, "columns.beam=9", "columns.beam"),
        (NAT, "flags.target-noise=repeat:0.5", "flags.target-noise"),
        (NAT, "flags.target-noise-blank=<unk>", "flags.target-noise-blank"),
        (NAT, "variants.0.flags.iter-decode-max-iter=4", "variants.0.columns.iterations"),
        (NAT, "variants.1.columns.length_candidates=4", "variants.1.columns.length_candidates"),
        (NAT, "noise=", "noise"),
    ],
)
def test_what_rows_would_not_say_is_refused(config, override, key, capsys, quick_check):
    assert main(["plan", str(config), override]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(rf": {re.escape(key)}: ", line), line


def test_what_agrees_is_no_mismatch():
    load(str(SMOKE), ["flags.target-noise=repeat:0.5", "flags.seed=1"])
    load(str(NAT), ["flags.target-noise=null"])


def test_decoding_is_a_column_of_every_row():
    stages = build(load(str(SMOKE), ["generate.beam=null", "generate.lenpen=0.6"]))
    for columns, _, _ in labels(stages):
        assert (columns["beam"], columns["lenpen"]) == ("5", "0.6")
        assert "iterations" not in columns
    (test,) = [command for command in stages[-1].commands if "significance" in command]
    assert "beam=5" in test


def test_names_of_columns_that_scoring_computes_are_known(tmp_path):
    shipped = ROOT / "data/results/multi30k_small.csv"
    with open(shipped, encoding="utf-8", newline="") as f:
        header = next(csv.reader(f))
    own = {"system", "noise", "seed", "test_set", "model", "recipe", "command", "cell"}
    missing = {n for n in [*header, *provenance()] if not n.endswith("_signature")}
    assert missing - computed_columns() - own <= {"arch", "training_commit"}, (
        missing - computed_columns() - own
    )


def test_a_papers_number_of_raw_data_is_not_shown_beside_noise(tmp_path):
    path = str(ROOT / "configs/wmt14/nat.yaml")
    for noise, shown in (("none", True), ("repeat:0.5", False)):
        score = build(load(path, [*stand_ins(tmp_path, path), f"noise={noise}"]))[-1]
        assert ("published.csv" in dict(score.files)) == shown


def test_a_training_without_noise_refuses_one(capsys):
    with pytest.raises(RecipeError, match="train.ce.noise: repeat:0.5, but task translation"):
        load(str(SMOKE), ["noise=none", "flags.task=translation", "train.ce.noise=repeat:0.5"])
