"""What is said of a corpus of one's own: before anything runs, and of what its files hold."""

import re

import pytest

from fairseq_eisl.recipes import opening
from fairseq_eisl.recipes.progress import Progress
from fairseq_eisl.recipes.schema import RecipeError, load
from tests.recipes.conftest import SMOKE, finish, recipes
from tests.toy import ROOT

CONFIG = str(ROOT / "configs/text/small.yaml")


@pytest.fixture
def text(tmp_path):
    """Six files of three lines; returns their folder."""
    for name in ("train", "valid", "test"):
        for side in ("nl", "fy"):
            (tmp_path / f"{name}.{side}").write_text("een\ntwa\ntrije\n")
    return tmp_path


def overrides(folder, source="nl"):
    return [f"data.folder={folder}", f"data.source={source}", "data.target=fy"]


@pytest.mark.parametrize("lines", ["een\ntwa\n", "een\ntwa", "een\n\n\ntwa"])
def test_sides_of_other_lengths(text, lines):
    (text / "valid.fy").write_text(lines)
    count = len(lines.rstrip("\n").split("\n"))
    message = f"{text}/valid.nl has 3 lines and {text}/valid.fy has {count} lines"
    with pytest.raises(RecipeError, match=re.escape(f"data.folder: {message}")):
        load(CONFIG, overrides(text))
    files = ",".join(
        str(text / f"{n}.{s}") for n in ("train", "valid", "test") for s in ("nl", "fy")
    )
    with pytest.raises(RecipeError, match=re.escape(f"data.files: {message}")):
        load(CONFIG, [f"data.files=[{files}]", *overrides(text)[1:]])
    (text / "valid.fy").write_text("een\ntwa\ntrije")  # the last newline may be missing
    load(CONFIG, overrides(text))


def test_the_endings_that_are_there_are_named(text):
    with pytest.raises(RecipeError) as err:
        load(CONFIG, overrides(text, source="de"))
    assert f"{text} has no file train.de (or an empty one); data.source and" in str(err.value)
    assert str(err.value).endswith("it has train.fy, train.nl")


def test_nothing_is_said_of_endings_where_they_are_right(text):
    (text / "test.nl").unlink()
    with pytest.raises(RecipeError, match=r"no file test\.nl \(or an empty one\)$"):
        load(CONFIG, overrides(text))


def test_notes_on_the_text_are_shown(text):
    """Of few lines, and of lines without a word, by the stage that reads the files first. The next
    one, which refuses so few pieces, does not say it again."""
    (text / "train.nl").write_text("een\n \n\n")
    short = ["data.vocabulary=4", "device=cpu"]
    code, output = finish(recipes("run", CONFIG, *overrides(text), *short, "--runs", text / "runs"))
    assert code != 0 and "pieces are too few" in output, output
    notes = [line.strip() for line in output.splitlines() if line.strip().startswith("note: ")]
    assert notes[:2] == [
        f"note: {text}/train.nl: 2 of 3 lines have no word, the first is line 2: they are kept",
        "note: train: 3 pairs are too few to learn from; 200 are enough to try everything",
    ]
    assert len([note for note in notes if "no word" in note]) == 1


def test_what_a_log_says_besides_is_not_shown(capsys):
    progress = Progress("prepare", ["bash"])
    progress.read(b"a note: x\nnote: y\nnotes\n")
    assert capsys.readouterr().err.split() == ["note:", "y"]


def test_without_fairseq_a_recipe_says_how_to_get_it(monkeypatch, tmp_path):
    (tmp_path / "fairseq").mkdir()
    (tmp_path / "fairseq/__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'fairseq'\", name='fairseq')\n"
    )
    monkeypatch.setattr(opening, "ROOT", f"{tmp_path}:{opening.ROOT}")
    with pytest.raises(
        RecipeError, match="fairseq, which is not installed: pip install .*ve-fairseq"
    ):
        opening.open_recipe(str(SMOKE), [])


def test_a_number_that_is_none_is_said_in_words(quick_check):
    with pytest.raises(RecipeError) as err:
        opening.open_recipe(str(SMOKE), ["train.ce.flags.lr=fast"])
    assert "'fast' is no number" in str(err.value) and "lambda" not in str(err.value)
