"""The trials whose rows lie in data/results are still those that the recipe would run."""

import pytest

from fairseq_eisl.recipes import tune
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import load
from fairseq_eisl.recipes.trial_key import portable, trial_key
from fairseq_eisl.recipes.trial_rows import TrialRows
from tests.toy import ROOT

NO_CEILING = ["train.ceiling=null", "tune.ceiling=null"]


@pytest.mark.parametrize(
    "config, rows, overrides",
    [
        ("multi30k/noise_small", "multi30k_noise_small", ["noise=blank:0.35", *NO_CEILING]),
        ("multi30k/rivals_small", "multi30k_rivals", ["noise=shuffle:6", *NO_CEILING]),
        ("nat/rivals_small", "nat_rivals", []),
    ],
)
def test_the_command_of_the_docs_runs_no_trial_again(tmp_path, config, rows, overrides):
    folder = ROOT.parent / "shared/data/multi30k"
    if not folder.is_dir():
        pytest.skip(f"{folder}: the text is not there")
    path = str(ROOT / f"configs/{config}.yaml")
    given = [f"data.folder={folder}", "device=cpu", *overrides]
    recipe = load(path, given)
    runner = Runner(tune._until(build(recipe), "prepare"), str(tmp_path / "runs"))
    runner.run_stages(str(tmp_path / "run"))
    tried = TrialRows.read(str(ROOT / f"data/results/{rows}_trials.csv"))
    for group in tune.trials(recipe):
        found = []
        for trial in group:
            same = portable(load(path, [*given, *trial.overrides(recipe)]))
            stages = tune._stages_of(build(same), trial)
            found.append(tried.find(trial_key(stages, runner.path("prepare"))))
        assert all(found), group[0].place()
        given += next(trial for trial, row in zip(group, found) if row["chosen"]).chosen()
