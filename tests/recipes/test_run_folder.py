"""A run's folder: what no run has written is not replaced."""

import os
import threading

import pytest

from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.run_folder import check_folder, link_to, write_whole
from fairseq_eisl.recipes.schema import RecipeError
from fairseq_eisl.recipes.stage_cache import StageCache
from tests.recipes.conftest import SMOKE


@pytest.mark.parametrize("action", ["run", "tune"])
def test_a_recipe_in_its_own_folder_is_not_replaced(action, tmp_path, capsys, quick_check):
    folder = tmp_path / "mine"
    folder.mkdir()
    tune = "tune: {eisl: {settings: {a: [lr=1e-4], b: [lr=2e-4]}}}"
    text = f"# my notes\nbase: {SMOKE}\nname: mine\n{tune}\n"
    (folder / "recipe.yaml").write_text(text)
    (folder / "rows.csv").write_text("my,rows\n")
    given = [str(folder / "recipe.yaml"), "--out", str(folder), "--runs", str(tmp_path / "runs")]
    assert main([action, *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"recipes: --out: {folder} holds recipe.yaml, rows.csv, which no run has"
    )
    assert (folder / "recipe.yaml").read_text() == text
    assert sorted(os.listdir(folder)) == ["recipe.yaml", "rows.csv"]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["a.png", "report.json", "untuned.yaml", "score", "x.html"])
def test_what_a_run_would_replace(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(RecipeError, match=f"holds {name}, which"):
        check_folder(str(tmp_path), ["prepare", "score"])


def test_a_folder_that_is_a_runs_or_has_nothing_of_its_names(tmp_path):
    check_folder(str(tmp_path / "new"), ["prepare"])
    (tmp_path / "log").write_text("mine")
    (tmp_path / "trials").mkdir()
    check_folder(str(tmp_path), ["prepare", "score"])
    (tmp_path / "stages").mkdir()
    link_to(str(tmp_path / "stages"), str(tmp_path / "prepare"))
    (tmp_path / "rows.csv").write_text("a run's")
    check_folder(str(tmp_path), ["prepare", "score"])
    (tmp_path / "score").write_text("mine")  # even there
    with pytest.raises(RecipeError, match="holds score, which"):
        check_folder(str(tmp_path), ["prepare", "score"])
    with pytest.raises(RecipeError, match="no link to a stage"):
        link_to(str(tmp_path / "stages"), str(tmp_path / "score"))
    assert (tmp_path / "score").read_text() == "mine"


def test_two_processes_may_write_one_file(tmp_path):
    """Each has a temporary name of its own: none takes the other's away."""
    path, errors = str(tmp_path / "rows.csv"), []

    def write(content):
        try:
            for _ in range(100):
                write_whole(path, content)
        except OSError as err:
            errors.append(err)

    threads = [threading.Thread(target=write, args=(text * 1000,)) for text in "ab"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors and os.listdir(tmp_path) == ["rows.csv"]
    assert (tmp_path / "rows.csv").read_text() in ("a" * 1000, "b" * 1000)


def test_a_stage_that_was_made_by_hand_beside_a_killed_one_is_named_at_once(tmp_path):
    cache = StageCache(str(tmp_path))
    path = cache.path("ce", "0" * 12)
    os.makedirs(path)
    assert not cache.begin(path, resumes=True)  # it becomes what a run goes on with
    assert not os.path.exists(path) and os.path.isdir(f"{path}.part")
    os.makedirs(path)
    with pytest.raises(RecipeError, match="run there by hand, and .*part is what a run was at"):
        cache.begin(path, resumes=True)
    assert os.path.isdir(path) and os.path.isdir(f"{path}.part")
