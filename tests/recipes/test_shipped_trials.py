"""The trials whose rows lie in data/results are still those that the recipe would run."""

import pytest

from fairseq_eisl.common.rows import read_rows
from fairseq_eisl.recipes import tune
from fairseq_eisl.recipes.trial_rows import TrialRows
from tests.toy import ROOT

NO_CEILING = ["train.ceiling=null", "tune.ceiling=null"]


@pytest.mark.parametrize(
    "config, rows, trials, overrides",
    [
        ("multi30k/noise_small", "multi30k_noise_small", 25, ["noise=synthetic:4", *NO_CEILING]),
        ("multi30k/rivals_small", "multi30k_rivals", 20, ["noise=shuffle:6", *NO_CEILING]),
        ("nat/rivals_small", "nat_rivals", 20, []),
        ("nat/nat_small", "nat_onepass", 8, []),
        ("nat/cmlm_small", "nat_onepass", 8, []),
        ("nat/inat_small", "nat_onepass", 8, []),
        ("nat/nacrf_small", "nat_onepass", 8, []),
        ("nat/levt_small", "nat_onepass", 8, []),
        ("nat/ctc_small", "nat_latent", 31, []),
    ],
)
def test_the_command_of_the_docs_runs_no_trial_again(
    tmp_path, monkeypatch, config, rows, trials, overrides
):
    folder = ROOT.parent / "shared/data/multi30k"
    if not folder.is_dir():
        pytest.skip(f"{folder}: the text is not there")

    def runs(config, variations, tried=()):
        pytest.fail(f"it would be run: {variations[0]}")

    monkeypatch.setattr(tune, "check_trials", lambda *_: 1)
    monkeypatch.setattr(tune, "open_recipes", runs)
    given = [f"data.folder={folder}", "device=cpu", *overrides]
    path = str(ROOT / f"data/results/{rows}_trials.csv")
    chosen = tune.choose(
        str(ROOT / f"configs/{config}.yaml"),
        given,
        str(tmp_path / "runs"),
        str(tmp_path / "run"),
        TrialRows.read(path),
    )
    told = {row["trial"]: row for row in read_rows(path)}
    assert len(chosen.rows) >= trials
    for row in chosen.rows:
        assert row == told[row["trial"]]
