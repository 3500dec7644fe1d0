"""Settings of trainings that trials on the validation set choose."""

import csv
import re

import pytest

from fairseq_eisl.evaluation.readers.run_folder import read_run
from fairseq_eisl.evaluation.report.content import report
from fairseq_eisl.recipes import tune
from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands.pipeline import build
from fairseq_eisl.recipes.schema import RecipeError, load
from fairseq_eisl.recipes.sweep import cells, command_of, is_done, load_sweep, of_trials
from fairseq_eisl.recipes.trial_rows import TrialRows
from tests.recipes.conftest import SMOKE, TINY, finish, recipes

# A learning rate that learns nothing beside one that does, and two names for one setting: the
# first of equals wins.
SETTINGS = """
base: {smoke}
flags: {{best-checkpoint-metric: loss, maximize-best-checkpoint-metric: null}}
tune:
  ce:
    settings:
      still: [lr=1e-12]
      fast: [lr=1e-2]
  eisl:
    updates: 2
    finalists: 2
    settings:
      still: [lr=1e-12]
      as_still: [lr=1e-12, log-interval=7]
      third: [lr=1e-12, log-interval=8]
    decoding:
      short: [max-len-b=1, max-len-a=0]
      plain: [lenpen=1.0]
"""


@pytest.fixture
def tuned(write):
    return write("tuned.yaml", SETTINGS.format(smoke=SMOKE))


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def test_what_validation_says_is_run_and_told(tuned, write, tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "out"
    code, output = finish(
        recipes("tune", tuned, *TINY, "--runs", runs, "--out", out, "--jobs", 2, "--trial-seed", 1)
    )
    assert code == 0, output

    tried = rows_of(out / "trials.csv")
    chosen = [row["setting"] for row in tried if row["chosen"]]
    assert chosen[:-1] == ["fast", "still", "as_still", "still"]
    assert [row["chosen"] for row in tried[2:]][:5] == ["finalist", "finalist", "", "yes", ""]
    decoded = tried[-2:]
    assert [row["setting"] for row in decoded] == ["short", "plain"]
    assert {row["metric"] for row in tried[-4:]} == {"validation BLEU, decoded"}
    assert tried[-4]["score"] == tried[-3]["score"]  # the same training, under two names
    assert any(row["score"] == tried[-4]["score"] for row in decoded)  # decoded as the recipe says
    best = max(decoded, key=lambda row: float(row["score"]))
    assert best["chosen"] or decoded[0]["score"] == decoded[1]["score"]
    by_name = {(row["training"], row["setting"]): row for row in tried}
    still, fast = by_name["ce", "still"], by_name["ce", "fast"]
    assert float(fast["score"]) < float(still["score"]) and fast["better"] == "lower"
    assert [row["updates"] for row in tried[2:]] == ["2", "2", "2", "", "", "", ""]
    assert {row["seed"] for row in tried} == {"1"}

    rows = rows_of(out / "rows.csv")
    for row in rows:
        assert "train.ce.flags.lr=1e-2" in row["overrides"]
        assert "max-update" not in row["overrides"].replace("train.eisl.flags.max-update=6", "")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Settings that were tried" in page and ">fast<" in page
    assert "Settings that were tried" in report([read_run(str(out), plain_words=True)])

    # With the rows of these trials none is run again, and the run is the same.
    again = tmp_path / "again"
    given = ["--trials", out / "trials.csv", "--runs", tmp_path / "elsewhere", "--out", again]
    code, output = finish(recipes("tune", tuned, *TINY, *given))
    assert code == 0 and output.count("tried before (commit ") == len(tried), output
    assert not (again / "trials").exists()
    assert (again / "trials.csv").read_bytes() == (out / "trials.csv").read_bytes()
    for row, before in zip(rows_of(again / "rows.csv"), rows):
        assert row["bleu"] == before["bleu"] and row["overrides"] == before["overrides"]

    # A sweep's cell of these settings is done.
    text = f"name: s\nrecipe: {tuned}\ntune: true\ntrial_seed: 1\naxes:\n  seed: [1]\n"
    sweep = load_sweep(str(write("sweep.yaml", text)))
    sweep.overrides = TINY
    (cell,) = cells(sweep)
    command = command_of(sweep, cell, str(tmp_path))
    assert command[3] == "tune" and command[-4:-2] == ["--trial-seed", "1"]
    assert not is_done(sweep, cell, str(tmp_path))
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / cell.name).symlink_to(out)
    assert is_done(sweep, cell, str(tmp_path))
    sweep.trial_seed = 2
    assert not is_done(sweep, cell, str(tmp_path))


def test_a_recipe_that_is_run_knows_nothing_of_trials(tuned):
    metric = ["flags.best-checkpoint-metric=loss", "flags.maximize-best-checkpoint-metric=null"]
    plain, with_tune = load(str(SMOKE), metric), load(str(tuned))
    with_tune.overrides = plain.overrides
    with_tune.title = plain.title
    assert build(plain) == build(with_tune)


def test_a_training_is_tuned_after_the_one_it_starts_from(tuned):
    recipe = load(str(tuned), ["tune.ce.updates=7"])
    order = [(group[0].training, group[0].decodes) for group in tune.trials(recipe)]
    assert order == [("ce", False), ("eisl", False), ("eisl", True)]
    first = tune.trials(recipe)[0][0]
    assert first.overrides(recipe) == [
        *("train.ce.flags.lr=1e-12", "train.ce.flags.max-update=7", "average=null")
    ]
    last = tune.trials(recipe)[2][1]
    assert last.overrides(recipe) == ["train.eisl.generate.lenpen=1.0"]
    names = [stage.name for stage in tune._until(build(recipe), "ce")]
    assert names[-1] == "ce" and "eisl" not in names and "score" not in names


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tune.eisl.finalists=0", "tune.eisl.finalists: 1 or more is needed, not 0"),
        ("train.ce.system=null tune.ce.finalists=2", "finalists: nothing decodes train.ce"),
        ("tune.eisl.updates=0", "tune.eisl.updates: 1 or more is needed, not 0"),
        ("tune.ce.decoding.x=[beam 4]", "tune.ce.decoding.x: flag=value of the training"),
        ("train.ce.system=null tune.ce.decoding.a=[beam=4]", "nothing decodes train.ce"),
        ("tune.other.settings.a=[lr=1]", "tune.other: there is no such training"),
        ("tune.ce.settings.still=[--lr]", "tune.ce.settings.still: flag=value of the training"),
        ("tune.eisl.settings.x=[max-update=3]", "updates of a trial are tune.eisl.updates"),
        (
            "variants=[{flags: {}}, {flags: {lenpen: 1}}] tune.ce.decoding.a=[lenpen=2]",
            "tune.ce.decoding.a: lenpen=2 has no effect: variants.1 gives this flag itself",
        ),
        ("tune.ce.settings={x y: [lr=1]}", "a setting's name has letters"),
    ],
)
def test_a_wrong_trial_is_named(tuned, override, message):
    with pytest.raises(RecipeError) as err:
        load(str(tuned), re.split(r" (?=tune)", override))
    assert message in str(err.value)


def test_flags_of_trials_are_checked_before_anything_runs(tuned, quick_check, capsys, tmp_path):
    wrong = "tune.eisl.settings.odd=[gumbel-temprature=0.1]"
    assert main(["tune", str(tuned), wrong, "--runs", str(tmp_path / "runs")]) == 2
    assert "gumbel-temprature" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
    assert main(["tune", str(SMOKE), "--runs", str(tmp_path / "runs")]) == 2
    assert "tune: nothing to try" in capsys.readouterr().err


SWEEP = "name: s\nrecipe: {recipe}\ntune: true\naxes:\n  seed: [1, 2]\n  noise: [none, blank:0.3]\n"


def test_trials_of_a_sweep_are_checked_before_anything_runs(
    tuned, write, quick_check, capsys, tmp_path
):
    sweep, runs = str(write("sweep.yaml", SWEEP.format(recipe=tuned))), tmp_path / "runs"
    wrong = "tune.eisl.settings.odd=[gumbel-temprature=0.1]"
    assert main(["sweep", sweep, wrong, "--runs", str(runs)]) == 2
    assert "gumbel-temprature" in capsys.readouterr().err
    untried = str(write("untried.yaml", SWEEP.format(recipe=SMOKE)))
    assert main(["sweep", untried, "--runs", str(runs)]) == 2
    assert "tune: nothing to try" in capsys.readouterr().err
    idle = SWEEP.format(recipe=tuned).replace("tune: true", "trial_seed: 3")
    assert main(["sweep", str(write("idle.yaml", idle)), "--runs", str(runs)]) == 2
    assert "trial_seed: 3, but nothing is tried" in capsys.readouterr().err
    assert not runs.exists()


def test_cells_of_several_seeds_share_their_trials(tuned, write):
    text = SWEEP.format(recipe=tuned)
    apart, together = [
        load_sweep(str(write(f"{number}.yaml", text + more)))
        for number, more in enumerate(("", "trial_seed: 7\n"))
    ]
    assert of_trials(apart, cells(apart)) == [cell.overrides for cell in cells(apart)]
    assert of_trials(together, cells(together)) == [
        ["noise=none", "seed=7"],
        ["noise=blank:0.3", "seed=7"],
    ]


ROW = {
    **dict.fromkeys(("at_update", "chosen", "metric", "updates", "commit"), ""),
    **{"training": "eisl", "setting": "a", "flags": "lr=1", "better": "higher"},
}


def test_rows_are_found_by_what_was_tried():
    first, second = {**ROW, "trial": "a1", "score": "30"}, {**ROW, "trial": "b2", "score": "31"}
    rows = TrialRows([first, second, {**second, "score": "32"}, {**ROW, "trial": "", "score": "1"}])
    assert rows.find("a1") == first and rows.find("b2") == second
    assert rows.find("c3") is None and rows.find("") is None


def key_of(tuned, prepared, *overrides, number=1, gpus=0):
    """The key of a trial of EISL's settings (the second one, if no number is told)."""
    recipe = load(str(tuned), overrides)
    trial = tune.trials(recipe)[1][number]
    return tune._Wanted(trial, str(tuned), overrides, str(prepared), gpus).key


def test_a_trial_is_what_its_result_depends_on(tuned, tmp_path):
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    for name in ("train.de", "valid.de", "stage.json", "log"):
        (prepared / name).write_text(name, encoding="utf-8")
    base = key_of(tuned, prepared)
    for same in (
        *("device=cuda gpus='0' half_precision=false", "train.eisl.system=other", "title=t"),
        *("tune.eisl.settings.third=[lr=1]", "train.eisl.generate.lenpen=2"),
        "train.eisl.flags.max-update=9",
    ):
        assert key_of(tuned, prepared, *same.split()) == base, same
    other = (
        *("seed=2", "noise_seed=5", "noise=blank:0.3", "flags.dropout=0.3"),
        *("train.ce.flags.lr=1", "tune.eisl.updates=3", "preprocess.thresholdsrc=2"),
    )
    keys = {override: key_of(tuned, prepared, override) for override in other}
    keys["setting"] = key_of(tuned, prepared, number=0)
    # Batches grow with the GPUs that a training spreads over.
    keys["two GPUs"] = key_of(tuned, prepared, "device=auto", gpus=2)
    assert key_of(tuned, prepared, "device=cuda", "gpus='0,1'", gpus=1) == keys["two GPUs"]
    assert key_of(tuned, prepared, "device=auto", gpus=1) == base
    assert key_of(tuned, prepared, "device=cpu", gpus=2) == base
    # How the text was made is told by the text.
    assert key_of(tuned, prepared, "data.options=['--train','200']") == base
    (prepared / "log").write_text("another day", encoding="utf-8")
    assert key_of(tuned, prepared) == base
    (prepared / "train.de").write_text("other text, same name", encoding="utf-8")
    keys["text"] = key_of(tuned, prepared)
    assert len({base, *keys.values()}) == 1 + len(keys), keys


def test_files_of_a_trial_count_by_their_content(tuned, tmp_path):
    (tmp_path / "prepared").mkdir()
    keys = []
    for folder, content in (("here", "a"), ("there", "a"), ("here", "b and more")):
        (tmp_path / folder).mkdir(exist_ok=True)
        for ending in (".bin", ".idx"):
            (tmp_path / folder / f"clean{ending}").write_text(content, encoding="utf-8")
        override = f"train.eisl.flags.clean-text={tmp_path / folder / 'clean'}"
        keys.append(key_of(tuned, tmp_path / "prepared", override))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "trials.csv: No such file or directory"),
        ("setting,score\na,1\n", "trials.csv: no column training, flags, chosen, metric, at_up"),
        ("\xff", "trials.csv: no UTF-8 text"),
        (f"{','.join([*ROW, 'trial', 'score'])}\n", "trials.csv: there is a header but no row"),
        (
            f"{','.join([*ROW, 'trial', 'score'])}\n{','.join([*ROW.values(), 'a1', ''])}\n",
            "trials.csv: row 1: score: '' is no number",
        ),
    ],
)
def test_a_file_that_holds_no_trials_is_named(text, message, tuned, write, tmp_path, capsys):
    path, runs = tmp_path / "trials.csv", str(tmp_path / "runs")
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    assert main(["tune", str(tuned), "--trials", str(path), "--runs", runs]) == 2
    assert message in capsys.readouterr().err
    sweep = str(write("sweep.yaml", SWEEP.format(recipe=tuned)))
    assert main(["sweep", sweep, "--trials", str(path), "--runs", runs]) == 2
    assert str(path) in capsys.readouterr().err
    untuned = str(write("run.yaml", SWEEP.format(recipe=SMOKE).replace("tune: true\n", "")))
    assert main(["sweep", untuned, "--trials", str(path), "--runs", runs]) == 2
    assert f"trials: {path}, but nothing is tried" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("better", "scores", "expected"),
    [
        ("higher", ["nan", "1", "2", "2"], [2, 3, 1]),
        ("lower", ["nan", "3", "1", "inf"], [2, 1]),
        ("higher", ["-3", "nan", "-4", "nan"], [0, 2]),
    ],
)
def test_what_is_no_number_is_never_chosen(better, scores, expected):
    rows = [{"score": score, "better": better} for score in scores]
    assert tune.ranking(rows, "tune.ce.settings") == expected


def test_trials_without_any_score_are_an_error():
    rows = [{"score": "nan", "better": "lower"}] * 2
    with pytest.raises(RecipeError, match="tune.ce.settings: nothing to choose"):
        tune.ranking(rows, "tune.ce.settings")
