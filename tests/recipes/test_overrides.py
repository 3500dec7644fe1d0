"""What the command line may name, and where a run under it ends."""

import csv

import pytest

from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.schema import RecipeError, load, run_name
from fairseq_eisl.recipes.sweep_results import as_table
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT

NAT = str(ROOT / "configs/nat/nat_small.yaml")
SMALL = str(ROOT / "configs/multi30k/repeat50_small.yaml")


@pytest.mark.parametrize(
    "config, override, message",
    [
        (SMOKE, "train.eils.flags.lr=1e-4", "no training eils; did you mean eisl?"),
        (SMOKE, "train.mine.start=ce", r"no training mine; \(choose from ce, eisl; \+train"),
        (SMOKE, "train={eils: {start: ce}}", "no training eils; did you mean eisl?"),
        (NAT, "columns.targts=kd", "no column targts; did you mean targets?"),
        (NAT, "columns={targts: kd}", "no column targts; did you mean targets?"),
        (NAT, "variants.3.flags.beam=1", r"no variant 3 \(choose from 0, 1, 2\)"),
        (NAT, "variants[7].flags.beam=1", "no variant 7"),
        (NAT, "variants.x.flags.beam=1", "no variant x"),
        (NAT, "variants.0.columns.iteration=1", "no column iteration; did you mean iterations?"),
        (SMOKE, "variants.0.flags.beam=1", r"no variant 0 \(the recipe has none\)"),
        (SMALL, "published.EISLL=3", "no system EISLL; did you mean EISL?"),
        (SMOKE, "variants.=1", "no variant"),
    ],
)
def test_a_misspelt_name_is_refused(config, override, message):
    with pytest.raises(RecipeError, match=message):
        load(str(config), [override])


def test_a_plus_adds_a_name():
    recipe = load(
        str(SMOKE),
        [
            *("+train.mine.system=X", "train.mine.start=ce", "train.mine.flags={criterion: eisl}"),
            *("+columns.systems=2", "columns.pairs=010"),
        ],
    )
    assert recipe.train.mine.system == "X" and recipe.train.mine.flags.criterion == "eisl"
    assert dict(recipe.columns) == {"systems": "2", "pairs": "010"}


def test_a_training_that_nothing_uses_is_refused(write):
    path = write("r.yaml", f"base: {SMOKE}\ntrain: {{eils: {{flags: {{lr: 1e-4}}}}}}\n")
    with pytest.raises(RecipeError, match="train.eils: nothing uses it"):
        build(load(str(path)))


def test_a_variant_is_changed_by_its_number():
    recipe = load(NAT, ["variants.1.flags.beam=2", "variants[0].columns.x=no"])
    assert recipe.variants[1].flags == {
        "iter-decode-max-iter": 0, "iter-decode-with-beam": 5, "beam": 2,
    }  # fmt: skip
    assert recipe.variants[0].columns.x == "no" and len(recipe.variants) == 3


def name(*overrides, config=SMALL):
    return run_name(load(config, overrides), overrides)


CHANGES = [
    ["noise=blank:0.3"],
    ["noise=blank_0.3:0.3"],
    ["noise=blank:0.2"],
    ["generate.beam=2"],
    ["train.eisl.flags.lr=1e-4"],
    ["train.ce.flags.lr=1e-4"],
    ["+columns.x=a b"],
    ["+columns.x=a_b"],
    ["+columns.x=a/b"],
    ["+columns.x='a,generate.beam=2'"],
    ["+columns.x=a", "generate.beam=2"],
    [f"data.test_set={'x' * 300}"],
    [f"data.test_set={'x' * 301}"],
    ["data.folder=."],
    ["seed=2"],
    ["seed=2", "generate.beam=2"],
    ["name=other", "generate.beam=2"],
]


def test_every_change_has_a_folder_of_its_own():
    found = [name(*overrides) for overrides in CHANGES]
    plain = "multi30k_small_repeat50-seed1"
    assert len({plain, *found}) == len(CHANGES) + 1
    for each in found:
        assert len(each.encode()) < 200 and not set(each) & set(':/\\ "') and each[0] != "."
    assert found == [name(*overrides) for overrides in CHANGES]
    assert name() == plain and found[3] == f"{plain},generate.beam=2"


def test_what_changes_no_result_has_no_folder_of_its_own():
    plain = name()
    for same in (["device=cpu"], ["title=x"], ["noise=repeat:0.5"], ["device=auto", "gpus=0,1"]):
        assert name(*same) == plain
    assert name("generate.beam=2", "average=null") == name("generate.beam='2'")
    one, other = ["generate.beam=2", "flags.dropout=0.2"], ["generate.beam=3", "generate.beam=2"]
    assert name(*one) == name(*reversed(one)) and name(*other) == name("generate.beam=2")


def test_rows_and_title_say_what_was_changed():
    overrides = ["noise=blank:0.3", "generate.beam=2", "data.folder=."]
    recipe = load(SMALL, overrides)
    assert recipe.title == "Multi30k de-en, blank:0.3, seed 1 (generate.beam=2)"
    score = build(recipe)[-1].commands[0]
    assert "overrides=noise=blank:0.3 generate.beam=2 data.folder=." in score
    assert "recipe=multi30k_small_repeat50" in score
    assert not [word for word in build(load(SMALL))[-1].commands[0] if "overrides" in str(word)]
    long = load(SMALL, [f"data.test_set={'x' * 300}"])
    assert len(long.title) < 200


def test_a_row_takes_the_overrides(tmp_path):
    from fairseq_eisl.evaluation.cli.main import main as evaluate

    (tmp_path / "ref").write_text("a b c d\n")
    (tmp_path / "log").write_text("H-0\t-0.1\ta b c d\n")
    words = build(load(SMALL, ["noise=blank:0.3", "generate.beam=2"]))[-1].commands[0]
    pairs = words[words.index("--set") + 1 :]
    files = ["--log", str(tmp_path / "log"), "--reference", str(tmp_path / "ref")]
    evaluate(["score", *files, "--rows", str(tmp_path / "rows.csv"), "--set", *pairs])
    with open(tmp_path / "rows.csv", encoding="utf-8", newline="") as f:
        (row,) = csv.DictReader(f)
    assert row["overrides"] == "noise=blank:0.3 generate.beam=2" and row["beam"] == "2"
    assert as_table([row])


def test_a_file_of_this_machine_is_its_name_in_rows_and_not_in_the_title(tmp_path):
    weights = tmp_path / "start.pt"
    weights.touch()
    recipe = load(str(SMOKE), [f"train.ce.flags.init-weights={weights}", "generate.beam=3"])
    assert "train.ce.flags.init-weights=start.pt" in recipe.overrides
    assert str(tmp_path) not in recipe.title and "generate.beam=3" in recipe.title


@pytest.mark.parametrize("place", ["flags", "train.ce.flags"])
@pytest.mark.parametrize("flag", ["init-weights", "hint-teacher", "encoder-embed-path"])
def test_a_file_that_is_not_there_is_named_with_its_flag(place, flag, tmp_path):
    missing = tmp_path / "missing.pt"
    with pytest.raises(RecipeError, match=f"{place}.{flag}: there is no file {missing}"):
        load(str(SMOKE), [f"{place}.{flag}={missing}"])
