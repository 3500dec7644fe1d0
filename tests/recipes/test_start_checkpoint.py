"""A training begins with the best checkpoint of another one, or with its last."""

import pytest

from fairseq_eisl.recipes.commands.pipeline import build
from fairseq_eisl.recipes.placeholders import folder
from fairseq_eisl.recipes.schema import load
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT


def start_of(*overrides):
    (stage,) = (each for each in build(load(str(SMOKE), overrides)) if each.name == "eisl")
    (line,) = stage.commands
    return line[line.index("--finetune-from-model") + 1]


@pytest.mark.parametrize("which", ["best", "last"])
def test_which_checkpoint_a_training_begins_with(which):
    found = start_of(f"train.eisl.start_checkpoint={which}")
    assert found == folder("ce") / f"checkpoint_{which}.pt"


def test_it_is_the_best_where_nothing_is_said():
    assert start_of() == folder("ce") / "checkpoint_best.pt"


def test_scores_are_of_the_best_one():
    """What a training begins with is another thing than what is translated with."""
    stages = build(load(str(SMOKE), ["train.eisl.start_checkpoint=last"]))
    (stage,) = (each for each in stages if each.name == "generate_ce")
    assert folder("ce") / "checkpoint_best.pt" in stage.commands[0]


def score_of(*overrides):
    (stage,) = (each for each in build(load(str(SMOKE), overrides)) if each.name == "score")
    (curve,) = (line for line in stage.commands if "curve" in line)
    return dict(stage.files)["report.json"], curve[curve.index("--start") + 1], stage


def test_pictures_and_settings_say_from_where():
    """A curve goes on from the validation that the training went on from."""
    report, start, _ = score_of()
    assert start == "best" and "curve_start" not in report and report["curves"]
    report, start, _ = score_of("train.eisl.start_checkpoint=last")
    assert start == report["curve_start"] == "last" and report["curves"]
    assert report["settings"]["training eisl"].endswith("(from the last checkpoint of ce)")
    third = "train={third: {system: X, start: eisl, flags: {criterion: cross_entropy}}}"
    report, start, _ = score_of(f"+{third}", "train.eisl.start_checkpoint=last")
    assert start == "zero" and not report["curves"]


SHORT = ROOT / "configs/nat"


@pytest.mark.parametrize("model", ["inat", "levt", "nacrf", "ctc", "dag"])
def test_models_after_vanilla_nat_share_its_training(model):
    """They take what both have by name; its training is that of vanilla NAT's own recipe."""
    trains = {}
    for name in ("nat", model):
        recipe = load(str(SHORT / f"{name}_small.yaml"))
        trains[name] = {each.name: each.commands[0] for each in build(recipe)}
    vanilla, own = trains[model]["vanilla"], trains[model]["ce"]
    assert vanilla == trains["nat"]["ce"]
    assert own[own.index("--init-weights") + 1] == folder("vanilla") / "checkpoint_best.pt"
    assert "--finetune-from-model" not in own
    further = trains[model]["eisl"]
    assert (
        further[further.index("--finetune-from-model") + 1] == folder("ce") / "checkpoint_best.pt"
    )


def test_settings_say_what_is_shared():
    stages = build(load(str(SHORT / "inat_small.yaml")))
    (stage,) = (each for each in stages if each.name == "score")
    found = dict(stage.files)["report.json"]["settings"]["training ce"]
    assert found.endswith("(from the parameters shared with the best checkpoint of vanilla)")
