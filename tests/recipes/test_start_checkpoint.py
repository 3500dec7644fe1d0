"""A training begins with the best checkpoint of another one, or with its last."""

import pytest

from fairseq_eisl.recipes.commands.pipeline import build
from fairseq_eisl.recipes.placeholders import folder
from fairseq_eisl.recipes.schema import load
from tests.recipes.conftest import SMOKE


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
