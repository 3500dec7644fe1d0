"""null takes away what a file below has: a training, trials, a whole mapping of flags."""

import pytest

from fairseq_eisl.recipes.schema import RecipeError, load

BASE = """
name: a
model_name: m
data: {prepare: toy, source: de, target: en, test_set: t}
flags: {x: 1}
generate: {beam: 5}
train:
  ce: {system: CE, flags: {criterion: cross_entropy}}
  eisl: {system: EISL, start: ce, flags: {criterion: eisl, lr: 1}}
tune:
  eisl:
    settings: {a: [lr=1], b: [lr=2]}
    decoding: {plain: [], longer: [lenpen=2]}
variants:
- {columns: {way: one}, flags: {beam: 2}}
- {columns: {way: two}}
"""


@pytest.fixture
def above(write):
    """The recipe that a file above BASE and overrides make."""
    write("base.yaml", BASE)

    def make(text="", *overrides):
        return load(str(write("above.yaml", f"base: base.yaml\n{text}\n")), list(overrides))

    return make


def test_a_training_and_its_trials(above):
    for recipe in (
        above("train: {eisl: null}\ntune: {eisl: ~}"),
        above("", "train.eisl=null", "tune.eisl=null"),
    ):
        assert list(recipe.train) == ["ce"] and not recipe.tune
    assert above("", "train.eisl=null", "tune=null").overrides == ["train.eisl=null", "tune=null"]


def test_parts_of_trials(above):
    recipe = above("tune: {eisl: {settings: {a: null}, decoding: null}}")
    assert recipe.tune.eisl.settings == {"b": ["lr=2"]} and not recipe.tune.eisl.decoding


def test_flags(above):
    recipe = above("generate: null\ntrain: {eisl: {flags: null}}")
    assert not recipe.generate and not recipe.train.eisl.flags and recipe.train.eisl.start == "ce"
    assert recipe.flags == {"x": 1} and recipe.train.ce.flags.criterion == "cross_entropy"
    assert above("flags: {x: null}").flags == {"x": None}
    recipe = above("variants: [{columns: {way: three}, flags: null}]")
    assert len(recipe.variants) == 1 and not recipe.variants[0].flags
    recipe = above("", "variants.0={flags: null}")
    assert not recipe.variants[0].flags and recipe.variants[0].columns == {"way": "one"}
    recipe = above("", "variants.0.flags=null")
    assert not recipe.variants[0].flags and recipe.variants[0].columns == {"way": "one"}


def test_what_is_gone_may_come_back(above, write):
    write("base.yaml", BASE)
    write("middle.yaml", "base: base.yaml\ntrain: {eisl: null}\ntune: null\n")
    path = write("top.yaml", "base: middle.yaml\ntrain: {eisl: {system: X, start: ce}}\n")
    recipe = load(str(path))
    assert recipe.train.eisl.system == "X" and not recipe.train.eisl.flags


def test_a_key_without_a_value_takes_nothing_away(above):
    """As it is left where what stood below it has become a comment."""
    recipe = above("flags:\n# x: 2\ntrain:\n  ce:\n    flags:\n")
    assert recipe.flags == {"x": 1} and recipe.train.ce.flags.criterion == "cross_entropy"


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["train.eisl=null"], "tune.eisl"),
        (["train.ce=null", "tune=null"], "train.eisl.start: 'ce' is no other training"),
        (["train.esil=null"], "no training esil; did you mean eisl?"),
        (["train.eisl='null'"], "train.eisl: a mapping of keys to values is needed, not 'null'"),
        (
            [f"+train.s{i}={{system: S{i}, start: ce}}" for i in range(13)],
            "train: 15 systems, at most 14 have a colour",
        ),
        (["train=null"], "train: at least one training is needed"),
    ],
)
def test_what_still_needs_it_says_so(above, overrides, message):
    with pytest.raises(RecipeError) as err:
        above("", *overrides)
    assert message in str(err.value)
