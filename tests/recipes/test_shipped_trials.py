"""The trials whose rows lie in data/results are still those that the recipe would run."""

import pytest

from fairseq_eisl.recipes import tune
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import load
from fairseq_eisl.recipes.trial_key import portable, trial_key
from fairseq_eisl.recipes.trial_rows import TrialRows
from tests.toy import ROOT

CONFIG = str(ROOT / "configs/multi30k/noise_small.yaml")


def test_the_command_of_the_docs_runs_no_trial_again(tmp_path):
    folder = ROOT.parent / "shared/data/multi30k"
    if not folder.is_dir():
        pytest.skip(f"{folder}: the text is not there")
    given = [f"data.folder={folder}", "device=cpu", "noise=blank:0.35"]
    given += ["train.ceiling=null", "tune.ceiling=null"]
    recipe = load(CONFIG, given)
    runner = Runner(tune._until(build(recipe), "prepare"), str(tmp_path / "runs"))
    runner.run_stages(str(tmp_path / "run"))
    rows = TrialRows.read(str(ROOT / "data/results/multi30k_noise_small_trials.csv"))
    for group in tune.trials(recipe):
        found = []
        for trial in group:
            same = portable(load(CONFIG, [*given, *trial.overrides(recipe)]))
            stages = tune._stages_of(build(same), trial)
            found.append(rows.find(trial_key(stages, runner.path("prepare"))))
        assert all(found), group[0].place()
        given += next(trial for trial, row in zip(group, found) if row["chosen"]).chosen()
