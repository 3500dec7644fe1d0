"""A grid of cells as jobs of this machine."""

import csv
import os
from types import SimpleNamespace

import pytest

from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.run_folder import link_to
from fairseq_eisl.recipes.runner import Runner, as_text
from fairseq_eisl.recipes.schema import RecipeError, load
from fairseq_eisl.recipes.sweep import cells, is_done, load_sweep
from fairseq_eisl.recipes.sweep_jobs import executor_parameters
from fairseq_eisl.recipes.sweep_results import draw, gather
from tests.recipes.conftest import SMOKE, TINY, finish, recipes


def test_cells_are_the_combinations(write):
    text = f"name: s\nrecipe: {SMOKE}\noverrides: [device=cpu]\naxes:\n  seed: [1, 2]\n"
    text += "  loss: {plain: [], sharp: [train.eisl.flags.gumbel-temperature=0.3]}\n"
    found = cells(load_sweep(str(write("s.yaml", text))))
    assert [cell.name for cell in found] == [
        "seed=1_loss=plain",
        "seed=1_loss=sharp",
        "seed=2_loss=plain",
        "seed=2_loss=sharp",
    ]
    assert found[1].overrides == [
        *("device=cpu", "seed=1", "train.eisl.flags.gumbel-temperature=0.3"),
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("recipe: x.yaml\naxes: {seed: [1]}", "name must be given"),
        ("name: s\nrecipe: x.yaml\naxes: {seed: [1]}", "recipe: .*x.yaml: there is no such file"),
        (f"name: s\nrecipe: {SMOKE}", "axes: at least one is needed"),
        (f"name: s\nrecipe: {SMOKE}\naxes: {{seed: 1}}", "axes.seed: a list of values is needed"),
        (f"name: s\nrecipe: {SMOKE}\naxes: {{seed: []}}", "axes.seed: a list of values is needed"),
        ("nme: s", "there is no key nme; did you mean name"),
    ],
)
def test_wrong_sweeps_are_named(write, text, message):
    with pytest.raises(RecipeError, match=message):
        load_sweep(str(write("s.yaml", text + "\n")))


def test_a_wrong_cell_stops_the_sweep_before_anything_runs(write, tmp_path):
    path = write("s.yaml", f"name: s\nrecipe: {SMOKE}\naxes: {{noise: [repeat:0.5, repaet:0.5]}}\n")
    code, output = finish(recipes("sweep", path, "--runs", tmp_path / "runs"))
    assert code == 2 and "noise=repaet:0.5: noise: " in output
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("header", ["noise,system,bleu,setting,source", "noise,system,bleu", ""])
def test_the_page_has_a_papers_numbers_that_say_where_they_come_from(
    write, tmp_path, monkeypatch, header
):
    paper = write("paper.csv", f"{header}\nrepeat:0.3,CE,1.0,x,y\n")
    text = f"name: s\nrecipe: {SMOKE}\naxes:\n  noise: [repeat:0.3, repeat:0.5]\n"
    loaded = load_sweep(str(write("s.yaml", f"{text}published: {paper}\n")))
    commands = []

    def run(command, **_):
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("fairseq_eisl.recipes.sweep_results.is_done", lambda *_: True)
    monkeypatch.setattr("fairseq_eisl.recipes.sweep_results.captured", run)
    tests = tmp_path / "s/noise=repeat_0.3/significance.csv"
    tests.parent.mkdir(parents=True)
    tests.touch()
    draw(loaded, str(tmp_path))
    report, noise = (next(c for c in commands if kind in c) for kind in ("report", "noise"))
    assert noise[noise.index("--tests") + 1 : noise.index("--out")] == [str(tests)]
    assert ("--published" in report) == ("source" in header)
    assert str(paper) in noise


def test_parameters_of_the_executor():
    found = executor_parameters(["gpus_per_node=2", "slurm_partition=gpu"])
    assert found["gpus_per_node"] == 2 and found["slurm_partition"] == "gpu"


def test_four_cells_one_of_which_fails_and_is_run_again_alone(write, tmp_path):
    pytest.importorskip("submitit")
    settings = "\n".join(f'  - "{text}"' for text in TINY)
    seeds = "".join(f'    s{seed}: ["seed={seed}"]\n' for seed in (1, 2, 3))
    text = f"name: s\nrecipe: {SMOKE}\noverrides:\n{settings}\naxes:\n  cell:\n{seeds}"
    path = write("s.yaml", text + '    bad: ["data.options=[--unknown]"]\n')
    arguments = ["sweep", path, "--runs", tmp_path / "runs", "--jobs", "2"]
    code, output = finish(recipes(*arguments))
    assert code == 1, output
    failed = [line for line in output.splitlines() if line.startswith("recipes: ")]
    assert len(failed) == 1 and "cell=bad failed: prepare: bash ended with" in failed[0], output

    def names(file):
        with open(tmp_path / "runs/s" / file, encoding="utf-8", newline="") as f:
            return [row["cell"] for row in csv.DictReader(f)]

    assert names("cells.csv") == ["cell=s1", "cell=s2", "cell=s3"]
    assert names("rows.csv") == [f"cell=s{seed}" for seed in (1, 2, 3) for _ in range(2)]
    path.write_text(path.read_text().replace("data.options=[--unknown]", "seed=4"))  # mended
    code, output = finish(recipes(*arguments))
    assert code == 0 and "4 cells, 3 done before" in output, output
    assert output.count(": started ") == 1 and len(names("cells.csv")) == 4


def test_a_cell_is_done_until_its_text_changes(write, tmp_path):
    folder, runs = tmp_path / "corpus", tmp_path / "runs"
    folder.mkdir()
    for split in ("train", "valid", "test"):
        for side in ("de", "en"):
            (folder / f"{split}.{side}").write_text("a b\n")
    given = ["data.prepare=text", f"data.folder={folder}"]
    path = write("s.yaml", f"name: s\nrecipe: {SMOKE}\noverrides: {given}\naxes: {{seed: [1]}}\n")
    sweep = load_sweep(str(path))
    (cell,) = cells(sweep)
    assert not is_done(sweep, cell, str(runs))
    recipe = load(sweep.recipe, cell.overrides)
    runner = Runner(build(recipe), str(runs))
    place = runs / "s" / cell.name
    place.mkdir(parents=True)
    (place / "recipe.yaml").write_text(as_text(recipe))
    link_to(runner.path("prepare"), str(place / "prepare"))
    assert is_done(sweep, cell, str(runs))
    os.utime(folder / "train.de", (1, 1))
    assert is_done(sweep, cell, str(runs))
    (folder / "train.de").write_text("b a\n")
    assert not is_done(sweep, cell, str(runs))


def test_a_cell_with_several_ways_to_decode_has_a_score_of_each(tmp_path, monkeypatch, capsys):
    from fairseq_eisl.recipes import command

    monkeypatch.setattr("fairseq_eisl.recipes.sweep_results.is_done", lambda *_: True)
    monkeypatch.setattr("fairseq_eisl.recipes.sweep.is_done", lambda *_: True)
    monkeypatch.setattr("fairseq_eisl.recipes.sweep_results.draw", lambda *_: [])
    sweep = load_sweep(str(SMOKE), ["seed=1"])
    (cell,) = cells(sweep)
    folder = tmp_path / sweep.name / cell.name
    folder.mkdir(parents=True)
    rows = ["CE,1,10", "CE,5,11", "EISL,1,20", "EISL,5,21"]
    (folder / "rows.csv").write_text("\n".join(["system,length_candidates,bleu", *rows, ""]))
    (found,) = gather(sweep, str(tmp_path))
    assert found.pop("cell") == cell.name
    assert found == {
        "CE BLEU (length candidates 1)": "10",
        "CE BLEU (length candidates 5)": "11",
        "EISL BLEU (length candidates 1)": "20",
        "EISL BLEU (length candidates 5)": "21",
    }
    # What is printed has a line for each way.
    assert command.main(["sweep", str(SMOKE), "--axis", "seed=1", "--runs", str(tmp_path)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown[-2:] == [
        [cell.name, "length", "candidates", number, *scores]
        for number, *scores in (("1", "10", "20"), ("5", "11", "21"))
    ]


def test_axes_of_the_command_line(write):
    text = f"name: s\nrecipe: {SMOKE}\naxes:\n  seed: [1, 2]\n"
    path = str(write("s.yaml", text))
    found = cells(load_sweep(path, ["noise=repeat:0.3,repeat:0.5", "seed=7"]))
    assert [cell.overrides for cell in found] == [
        *(["noise=repeat:0.3", "seed=7"], ["noise=repeat:0.5", "seed=7"]),
    ]
    assert len(cells(load_sweep(str(SMOKE), ["seed=1,2"]))) == 2
    text = f"base: {SMOKE}\ndata: {{prepare: text}}\n"  # a recipe that is none without overrides
    own = ["data.prepare=toy", "name=own"]
    sweep = load_sweep(str(write("own.yaml", text)), ["seed=1"], own)
    assert sweep.name == "own_sweep" and cells(sweep)[0].overrides == [*own, "seed=1"]
    for wrong in ("seed", "seed=", "=1", "seed=1,1"):
        with pytest.raises(RecipeError):
            load_sweep(path, [wrong])


@pytest.mark.parametrize("runs", ["a:b", "file", "file/x", "a\nb"])
def test_a_place_that_cannot_hold_runs_is_refused_in_one_line(tmp_path, runs, capsys):
    from fairseq_eisl.recipes.command import main

    (tmp_path / "file").write_text("")
    for words in (["run"], ["sweep", "--axis", "seed=1"]):
        assert main([*words, str(SMOKE), "--runs", str(tmp_path / runs)]) == 2
        out = capsys.readouterr().err
        assert out.startswith("recipes: --runs: ") and out.count("\n") == 1


def test_a_quoted_value_of_an_axis_is_text(write):
    """null is nothing, "null" is a word; one axis cannot have both, whose cells had one name."""
    axes = "  columns.x: ['null', 'it''s', ' a', d]\n  average: [null]\n"
    path = write("s.yaml", f"name: s\nrecipe: {SMOKE}\naxes:\n{axes}")
    found = cells(load_sweep(str(path)))
    assert [cell.name.split("_")[0] for cell in found][0] == "columns.x=null"
    recipes = [load(str(SMOKE), cell.overrides) for cell in found]
    assert [recipe.columns.x for recipe in recipes] == ["null", "it's", " a", "d"]
    assert {recipe.average for recipe in recipes} == {None}
    path.write_text(path.read_text().replace("d]", "null]"))
    with pytest.raises(RecipeError, match="axes.columns.x: null is given twice"):
        load_sweep(str(path))
