"""Recipes of text that is not parallel: two files a split, judges, columns of one system."""

import csv

import pytest

from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.placeholders import folder
from fairseq_eisl.recipes.schema import RecipeError, load
from tests.criterions.style import ADJECTIVES, write_styles
from tests.recipes.conftest import SMOKE, finish, recipes
from tests.toy import ROOT

TINY = """
base: {base}
name: style_tiny
data:
  prepare: styles
  options: [bad, good]
  folder: {text}
  source: bad
  target: good
  test_set: made sentences
  shown_reference: test.human
device: cpu
flags:
  embed-dim: 12
  hidden-size: 20
  style-size: 6
  lm-hidden-size: 14
  dropout: 0
  batch-size: 16
  lr: 1e-2
  content-words: null
  content-factor: null
train:
  pretrain: {{flags: {{max-epoch: 4}}}}
  base: {{flags: {{max-update: 6}}}}
  eisl:
    system: + EISL 0.5
    start: pretrain
    flags: {{max-update: 6, eisl-factor: 0.5}}
    columns: {{eisl_factor: 0.5}}
  classifier: {{flags: {{max-epoch: 8}}}}
  language_model:
    flags: {{decoder-embed-dim: 8, decoder-hidden-size: 8, decoder-out-embed-dim: 8,
      decoder-layers: 1, decoder-attention: "0", max-epoch: 1, max-tokens: 200}}
score:
  human-reference: text:test.human
"""


@pytest.fixture
def recipe(tmp_path):
    text = tmp_path / "text"
    write_styles(text)
    for style, other in (("bad", "good"), ("good", "bad")):
        lines = (text / f"test.{style}").read_text()
        for word, instead in zip(ADJECTIVES[style], ADJECTIVES[other]):
            lines = lines.replace(word, instead)
        (text / f"human.{style}").write_text(lines)
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY.format(base=ROOT / "configs/base/style.yaml", text=text))
    return path


def test_two_files_a_split_go_through_to_rows_and_pictures(recipe, tmp_path):
    code, output = finish(recipes("run", recipe, "--runs", tmp_path / "runs"))
    assert code == 0, output
    run = tmp_path / "runs/style_tiny-seed1"
    with open(run / "rows.csv", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    assert [row["system"] for row in rows] == ["base", "+ EISL 0.5"]
    assert [row["eisl_factor"] for row in rows] == ["0", "0.5"]
    for row in rows:
        assert row["sentences"] == "13" and 0 <= float(row["accuracy"]) <= 100
        assert float(row["perplexity"]) > 1 and float(row["bleu_human"]) >= 0
        assert row["reference"] == "test.source"
    for name in ("style.png", "compare.png", "curve.png", "report.html"):
        assert (run / name).stat().st_size > 1000
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Content (BLEU to the sources) against style (accuracy)" in page
    assert "accuracy, %" in page and "BLEU, human" in page


def test_judges_and_files_of_the_text_are_named_in_the_scores(recipe):
    (stage,) = (each for each in build(load(str(recipe))) if each.name == "score")
    command = next(each for each in stage.commands if each[3] == "score")
    value = dict(zip(command, command[1:]))
    assert value["--style-classifier"] == folder("classifier") / "checkpoint_best.pt"
    assert value["--language-model"] == folder("language_model") / "checkpoint_best.pt"
    assert value["--wanted-styles"] == folder("prepare") / "test.wanted"
    assert value["--reference"] == folder("prepare") / "test.source"
    assert {"classifier", "language_model", "prepare"} <= set(stage.needs)
    (report,) = (content for name, content in stage.files if name == "report.json")
    assert report["reference"] == folder("prepare") / "test.human"


@pytest.mark.parametrize(
    "override, words",
    [
        ("score.bleurtt=x", "score.bleurtt: no metric has this flag (choose from"),
        ("score.bleurt=checkpoint:ce2", "score: 'ce2' is no training (choose from ce, eisl)"),
        ("score.training-log=x", "score.training-log: the recipe gives this flag itself"),
        ("train.ce.columns.bleu=1", "train.ce.columns.bleu: a computed column"),
        ("train.ce.columns.system=1", "train.ce.columns.system: the rows have this column already"),
    ],
)
def test_wrong_scores_and_columns_are_named(override, words):
    with pytest.raises(RecipeError) as caught:
        load(str(SMOKE), [override])
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_score_that_would_be_refused_at_the_end_is_refused_at_once(recipe):
    with pytest.raises(RecipeError, match="score.wanted-styles: needs score.style-classifier"):
        load(str(recipe), ["score.style-classifier=null"])
    load(str(recipe), ["score.style-classifier=null", "score.wanted-styles=null"])


def test_other_recipes_are_scored_as_before():
    (stage,) = (each for each in build(load(str(SMOKE))) if each.name == "score")
    command = next(each for each in stage.commands if each[3] == "score")
    assert command[command.index("--reference") + 1] == folder("prepare") / "test.en"
    assert not [c for c in stage.commands if "style" in c]
