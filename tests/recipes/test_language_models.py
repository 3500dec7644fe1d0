"""A language model beside the systems of a recipe when they decode."""

import csv

import pytest

from fairseq_eisl.evaluation.readers.generation_log import read_generation_log
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.errors import RecipeError
from fairseq_eisl.recipes.placeholders import OUT, folder
from fairseq_eisl.recipes.schema import load
from tests.recipes.conftest import finish, recipes
from tests.recipes.test_whole_recipes import write_pairs
from tests.toy import ROOT

CONFIG = ROOT / "configs/multi30k/language_model_small.yaml"
TINY = """
name: lm_tiny
model_name: lstm
device: cpu
data: {prepare: text, monolingual: true, source: en, target: de, test_set: tiny}
flags: {task: translation, optimizer: adam, num-workers: 0, max-tokens: 500, lr: 1e-2}
train:
  ce:
    system: CE
    flags:
      arch: lstm
      encoder-embed-dim: 16
      encoder-hidden-size: 16
      decoder-embed-dim: 16
      decoder-hidden-size: 16
      decoder-out-embed-dim: 16
      max-update: 1
      eval-bleu-args: '{"beam": 1, "max_len_b": 10}'
    generate:
      lm-path: checkpoint:language_model
      lm-weight: 50
      beam: 1
      max-len-a: 0
      max-len-b: 9
  language_model:
    corpus: monolingual
    flags:
      task: language_modeling
      arch: lstm_lm
      criterion: cross_entropy
      sample-break-mode: eos
      decoder-embed-dim: 16
      decoder-hidden-size: 16
      decoder-out-embed-dim: 16
      max-epoch: 10
      eval-bleu: null
      eval-bleu-args: null
      eval-tokenized-bleu: null
      best-checkpoint-metric: loss
      maximize-best-checkpoint-metric: null
"""
BESIDE = ["lm-path=checkpoint:language_model", "lm-weight=0.3"]


@pytest.fixture
def text(tmp_path):
    """Sentence pairs, and text of the target language."""
    made = write_pairs(tmp_path / "text", 4)
    for split in ("train", "valid"):
        (made / f"mono.{split}.de").write_text((made / f"{split}.de").read_text())
    return made


def stages(*overrides):
    recipe = load(str(CONFIG), [f"data.folder={ROOT}", *overrides])
    return {stage.name: stage for stage in build(recipe)}


def test_the_model_is_trained_first_and_its_dictionary_lies_beside_the_data():
    """Only the system that has it decodes from there; the others' stages stay what they were."""
    found = stages(*(f"train.eisl.generate.{flag}" for flag in BESIDE))
    (line,) = found["generate_eisl"].commands
    value = dict(zip(line, line[1:]))
    assert line[1] == folder("preprocess_with_dictionary")
    assert value["--lm-path"] == folder("language_model") / "checkpoint_best.pt"
    assert value["--lm-weight"] == "0.3"
    assert {"language_model", "preprocess_with_dictionary"} <= set(found["generate_eisl"].needs)
    order = list(found)
    assert order.index("language_model") < order.index("generate_eisl")
    (linked,) = found["preprocess_with_dictionary"].commands
    assert linked[-1] == OUT and "dict.en.txt" in linked
    plain = stages()
    assert found["generate_ce"] == plain["generate_ce"]
    assert plain["generate_ce"].commands[0][1] == folder("preprocess")


def test_a_model_of_a_file_is_one_on_which_the_decoding_depends(tmp_path):
    path = tmp_path / "lm.pt"
    path.write_bytes(b"weights")
    flags = (f"train.ce.generate.lm-path={path}", "train.ce.generate.lm-weight=0.2")
    stage = stages(*flags)["generate_ce"]
    (line,) = stage.commands
    assert dict(zip(line, line[1:]))["--lm-path"] == str(path) and stage.reads == (str(path),)
    assert line[1] == folder("preprocess_with_dictionary")


def test_every_row_says_the_weight():
    (one, other) = (
        [
            line[-1 - line[::-1].index("--set") :]
            for line in found["score"].commands
            if line[3] == "score"
        ]
        for found in (stages(), stages(*(f"train.eisl.generate.{flag}" for flag in BESIDE)))
    )
    weights = [[word for word in line if str(word).startswith("lm_weight=")] for line in one]
    assert weights == [["lm_weight=0"]] * 3
    weights = [[word for word in line if str(word).startswith("lm_weight=")] for line in other]
    assert weights == [["lm_weight=0"], ["lm_weight=0.3"], ["lm_weight=0"]]


@pytest.mark.parametrize(
    "override, words",
    [
        ("generate.lm-path=checkpoint:lm", "generate.lm-path: 'lm' is no training (choose from ce"),
        ("generate.lm-path=checkpoint:ce", "generate.lm-path: train.ce is of task noisy_trans"),
        (
            "generate.lm-path=checkpont:language_model",
            "generate.lm-path: there is no file checkpont",
        ),
        (
            "tune.ce.decoding.light=['lm-path=checkpoint:eisl','lm-weight=0.1']",
            "tune.ce.decoding.light.lm-path: train.eisl is of task noisy_translation",
        ),
        (
            "generate.lm-path=checkpoint:language_model",
            "generate.lm-path: without lm-weight, which is 0, the language model says nothing",
        ),
    ],
)
def test_what_is_no_language_model_is_refused(override, words):
    with pytest.raises(RecipeError) as caught:
        stages(override)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_language_model_changes_what_is_decoded(text, write, tmp_path):
    """It knows one word and has a large weight: the system says that word."""
    for split in ("train", "valid"):
        (text / f"mono.{split}.de").write_text("b b\n" * 60)
    path = write("tiny.yaml", TINY)
    code, output = finish(recipes("run", path, f"data.folder={text}", "--runs", tmp_path / "runs"))
    assert code == 0, output
    (log,) = (tmp_path / "runs").glob("lm_tiny*/generate_ce/test.out")
    said = " ".join(read_generation_log(str(log)).hypotheses).split()
    assert len(said) >= 10 and set(said) == {"b"}
    linked = {p.name for p in (log.parents[1] / "preprocess_with_dictionary").iterdir()}
    assert {"dict.txt", "test.en-de.en.bin"} <= linked
    with open(log.parents[1] / "rows.csv", encoding="utf-8", newline="") as f:
        assert [row["lm_weight"] for row in csv.DictReader(f)] == ["50"]
