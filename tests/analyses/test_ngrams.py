"""The ablation of orders, trained by a sweep."""

import json
import os

import pytest

from fairseq_eisl.analyses.command import main
from fairseq_eisl.analyses.ngrams import sweep_of, swept
from fairseq_eisl.common.rows import append_row, read_rows
from fairseq_eisl.recipes.schema import load
from fairseq_eisl.recipes.sweep import cells, load_sweep
from tests.evaluation.logs import row
from tests.recipes.conftest import SMOKE, TINY
from tests.toy import ROOT


def test_the_sweep_has_a_cell_a_noise_seed_and_set_of_orders(tmp_path):
    noises, seeds = ["repeat:0.1", "repeat:0.5"], [1, 2]
    recipe = str(ROOT / "configs/multi30k/repeat50_small.yaml")
    content = sweep_of("x", recipe, ["1", "2,3,4"], noises, seeds, ["device=cpu"])
    path = tmp_path / "x.yaml"
    path.write_text(json.dumps(content))
    sweep = load_sweep(str(path))
    found = [load(sweep.recipe, cell.overrides) for cell in cells(sweep)]
    assert len(found) == 2 * 2 * 2
    settings = {(r.noise, r.seed, r.train.eisl.flags["ngram"], r.columns.ngram) for r in found}
    orders = [("1", "1"), ("2,3,4", "2 3 4")]
    assert settings == {(n, s, *o) for n in noises for s in seeds for o in orders}
    assert {r.train.eisl.flags["ngram-weight"] for r in found} == {None}


def test_rows_of_cross_entropy_count_once(tmp_path):
    for orders in ("1", "1 2"):
        for system in ("CE", "EISL"):
            append_row(str(tmp_path / "rows.csv"), {**row(system), "ngram": orders})
    assert [found["system"] for found in swept(str(tmp_path))] == ["CE", "EISL 1", "EISL 1,2"]


def test_it_trains_and_draws(tmp_path, capfd):
    """One noise, one set of orders, a tiny model; a second time nothing is trained."""
    pytest.importorskip("submitit")
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    rows, out = tmp_path / "rows.csv", tmp_path / "x.png"
    words = ["ngrams", str(SMOKE), *TINY, "--ngram", "1,2", "--noise", "repeat:0.5"]
    words += ["--runs", str(tmp_path / "runs"), "--rows", str(rows), "--out", str(out)]
    assert main(words) == 0
    assert "1 cells, 0 done before" in capfd.readouterr().err
    found = read_rows(str(rows))
    assert [(r["noise"], r["system"]) for r in found] == [
        ("repeat:0.5", "CE"),
        ("repeat:0.5", "EISL 1,2"),
    ]
    assert out.stat().st_size > 1000 and found[0]["analysis"] == "ngrams"
    assert main(words) == 0
    assert "1 cells, 1 done before" in capfd.readouterr().err


def test_a_plan_lists_the_trainings_and_leaves_no_rows(tmp_path, capfd):
    words = ["ngrams", str(SMOKE), "--ngram", "1", "1,2", "--noise", "repeat:0.5", "--plan"]
    words += ["--runs", str(tmp_path / "runs"), "--rows", str(tmp_path / "rows.csv")]
    assert main(words) == 0
    listed = capfd.readouterr().out.splitlines()
    assert sum(line.startswith("# noise=repeat_0.5_seed=1_ngram=1") for line in listed) == 2, listed
    assert sum("train.eisl.flags.ngram=" in line for line in listed) == 2, listed
    assert os.listdir(tmp_path / "runs") == ["multi30k_repeat50_ngrams.yaml"]
    assert not (tmp_path / "rows.csv").exists()


def test_a_plan_that_is_refused_is_one_line(tmp_path, capfd):
    words = ["ngrams", str(SMOKE), "trian=1", "--plan", "--runs", str(tmp_path / "runs")]
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2 and "trian" in capfd.readouterr().err
