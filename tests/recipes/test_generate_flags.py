"""Flags of decoding: the recipe's, above them a training's own, above them a variant's."""

import pytest

from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands.pipeline import build
from fairseq_eisl.recipes.schema import RecipeError, load
from tests.recipes.conftest import SMOKE

OWN = "train.eisl.generate"


def flag_of(stages, name, flag):
    (command,) = stages[name].commands
    return command[command.index(flag) + 1]


def stages_of(*overrides):
    return {stage.name: stage for stage in build(load(str(SMOKE), overrides))}


def test_a_system_is_decoded_in_its_own_way():
    stages = stages_of("generate.beam=4", f"{OWN}.beam=3", f"{OWN}.lenpen=2")
    assert flag_of(stages, "generate_ce", "--beam") == "4"
    assert flag_of(stages, "generate_eisl", "--beam") == "3"
    assert flag_of(stages, "generate_eisl", "--lenpen") == "2"
    rows = [line for line in stages["score"].commands if "score" in line]
    told = {word for line in rows for word in line if str(word).startswith(("beam", "lenpen"))}
    assert [sorted(told & set(map(str, line))) for line in rows] == [
        ["beam=4", "lenpen=1"],
        ["beam=3", "lenpen=2"],
    ]


def test_a_variant_is_above_it():
    variants = "variants=[{flags: {beam: 1}}, {flags: {lenpen: 0.5}}]"
    stages = stages_of(variants, f"{OWN}.beam=3")
    assert flag_of(stages, "generate_eisl_0", "--beam") == "1"
    assert flag_of(stages, "generate_eisl_1", "--beam") == "3"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (f"{OWN}.path=x", f"{OWN}.path: the recipe gives this flag itself"),
        (f"{OWN}.beam=[1]", f"{OWN}.beam"),
        ("train.eisl={system: null, generate: {beam: 3}}", f"{OWN}: nothing decodes this"),
    ],
)
def test_what_the_recipe_gives_itself_is_refused(override, message):
    with pytest.raises(RecipeError) as err:
        load(str(SMOKE), [override])
    assert message in str(err.value)


def test_a_wrong_flag_is_placed_there(quick_check, capsys, tmp_path):
    words = ["plan", str(SMOKE), f"{OWN}.beem=3", "--runs", str(tmp_path)]
    assert main(words) == 2
    assert f"{OWN}.beem" in capsys.readouterr().err
