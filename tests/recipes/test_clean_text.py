"""A training whose targets are weighed by a text without noise."""

import pytest

from fairseq_eisl.recipes.commands.pipeline import build
from fairseq_eisl.recipes.errors import RecipeError
from fairseq_eisl.recipes.placeholders import folder
from fairseq_eisl.recipes.schema import load
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT

SMALL = ROOT / "configs/multi30k/noise_small.yaml"


def stage_of(recipe, name):
    (stage,) = (each for each in build(recipe) if each.name == name)
    (line,) = stage.commands
    return stage, line


def test_the_monolingual_text(tmp_path):
    (tmp_path / "mono.lc.norm.tok.en").write_text("a dog\n")
    recipe = load(str(SMALL), [f"data.folder={tmp_path}"])
    for name in ("eisl_clean_text", "ce_clean_text"):
        stage, line = stage_of(recipe, name)
        assert line[line.index("--clean-text") + 1] == folder("preprocess_mono") / "train"
        assert stage.needs == ("preprocess", "preprocess_mono", "ce")
    for name in ("eisl", "ce", "ceiling"):
        assert "--clean-text" not in stage_of(recipe, name)[1]


def test_the_targets_of_the_validation_set():
    recipe = load(str(SMOKE), ["train.eisl.clean_text=validation"])
    stage, line = stage_of(recipe, "eisl")
    data = recipe.data
    name = f"valid.{data.source}-{data.target}.{data.target}"
    assert line[line.index("--clean-text") + 1] == folder("preprocess") / name
    assert stage.needs == ("preprocess", "ce")


def test_what_a_flag_names_is_read(tmp_path):
    """Other content, another training."""
    for end in ("bin", "idx"):
        (tmp_path / f"text.{end}").write_text("x")
    stage, _ = stage_of(load(str(SMOKE), [f"+train.eisl.flags.clean-text={tmp_path}/text"]), "eisl")
    assert stage.reads == (f"{tmp_path}/text.bin", f"{tmp_path}/text.idx")


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["train.eisl.clean_text=monolingual"], "clean_text: monolingual needs data.monolingual"),
        (["train.eisl.clean_text=mono"], r"'mono', expected one of \[monolingual, validation\]"),
        (
            ["train.ce.clean_text=validation"],
            "train.ce.clean_text: the criterion must be eisl or token_weighted, not label_smoothed",
        ),
        (["+train.eisl.flags.clean-text=x"], "train.eisl.flags.clean-text: there is no file x.bin"),
        (
            ["train.eisl.clean_text=validation", "+train.eisl.flags.clean-text=x"],
            "train.eisl.clean_text: the flag clean-text says it as well; give one of them",
        ),
    ],
)
def test_what_cannot_be_meant(overrides, message):
    with pytest.raises(RecipeError, match=message):
        load(str(SMOKE), overrides)
