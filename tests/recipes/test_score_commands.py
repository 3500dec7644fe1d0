"""The commands of the last stage, in an order in which each finds what it reads."""

import pytest

from fairseq_eisl.common.rows import select
from fairseq_eisl.common.run_files import TESTS
from fairseq_eisl.evaluation.readers.inputs import pairs
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.placeholders import OUT
from fairseq_eisl.recipes.schema import RecipeError, load
from fairseq_eisl.recipes.stage_cache import StageCache
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT


@pytest.mark.parametrize("config", [SMOKE, ROOT / "configs/nat/cmlm_small.yaml"])
def test_pictures_have_the_tests_that_were_made_before_them(config):
    (stage,) = (each for each in build(load(str(config))) if each.name == "score")
    made, drawn = False, 0
    for command in stage.commands:
        kind = command[3]
        made = made or kind == "significance"
        if kind in ("plot", "iterations"):
            assert made and command[command.index("--tests") + 1] == OUT / TESTS
            drawn += 1
        # What a recipe scores are words, whatever they look like.
        assert ("--plain-words" in command) == (kind in ("score", "significance", "report"))
    assert drawn == (1 if config == SMOKE else 2)


def test_pictures_have_one_way_to_decode():
    """Repeats removed, more length candidates: other rows, which no picture mixes."""
    recipe = load(str(ROOT / "configs/nat/cmlm_small.yaml"))
    (stage,) = (each for each in build(recipe) if each.name == "score")
    rows = [{name: str(v) for name, v in part.columns.items()} for part in recipe.variants]
    kept = {}
    for command in stage.commands:
        if command[3] in ("plot", "iterations"):
            wanted = command[command.index("--where") + 1 : command.index("--tests")]
            kept[command[3]] = select(rows, pairs("--where", wanted, may_be_empty=True))
    assert kept["plot"] == [{"iterations": "0", "length_candidates": "1"}]
    assert [row["iterations"] for row in kept["iterations"]] == ["0", "1", "3", "9"]


def test_one_system_alone_has_no_test(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(f"base: {SMOKE}\ntrain: {{ce: {{system: null}}}}\n")
    (stage,) = (each for each in build(load(str(path))) if each.name == "score")
    assert not [c for c in stage.commands if "--tests" in c or "significance" in c]


def test_what_scores_are_made_with_counts_by_its_content(tmp_path):
    """A file, and a folder with all that is in it; other content, other scores."""
    plain, deep = tmp_path / "plain.txt", tmp_path / "bleurt/variables/weights"
    deep.parent.mkdir(parents=True)
    given = [f"score.detokenized-reference={plain}", f"score.bleurt={tmp_path / 'bleurt'}"]
    with pytest.raises(RecipeError, match=f"score.detokenized-reference: there is no file {plain}"):
        load(str(SMOKE), given)
    with pytest.raises(RecipeError, match="score.detokenized-reference: there is no file"):
        load(str(SMOKE), [f"score.detokenized-reference={tmp_path}"])  # which is a folder
    for path in (plain, deep):
        path.write_text("one")
    with pytest.raises(RecipeError, match="score.bleurt: there is no folder"):
        load(str(SMOKE), [f"score.bleurt={plain}"])
    (stage,) = (s for s in build(load(str(SMOKE), given)) if s.name == "score")
    assert set(stage.reads) == {str(plain), str(deep)}
    keys = []
    for path in (None, plain, deep):
        if path is not None:
            path.write_text("another")
        keys.append(StageCache(str(tmp_path)).keys([stage._replace(needs=())])["score"])
    assert len(set(keys)) == 3
    (stage,) = (s for s in build(load(str(SMOKE))) if s.name == "score")
    assert stage.reads == ()
