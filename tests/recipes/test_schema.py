"""Reading recipes: bases, overrides, and what is wrong in one line."""

import re

import pytest

from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.opening import open_recipes
from fairseq_eisl.recipes.placeholders import CHECKOUT, OUT
from fairseq_eisl.recipes.runner import Runner
from fairseq_eisl.recipes.schema import RecipeError, load, words
from fairseq_eisl.recipes.sweep import cells, load_sweep
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT


def test_a_base_lies_below_and_overrides_above(write):
    write("base.yaml", f"base: {SMOKE}\nname: below\nseed: 3\nflags: {{dropout: 0.3}}\n")
    path = write("top.yaml", "base: base.yaml\nname: top\ntrain: {eisl: {flags: {ngram: '2'}}}\n")
    recipe = load(str(path), ["seed=7", "train.eisl.flags.lr=1e-4"])
    assert (recipe.name, recipe.seed, recipe.flags.dropout) == ("top", 7, 0.3)
    flags = recipe.train.eisl.flags
    assert (flags.ngram, flags.lr, flags.criterion) == ("2", 1e-4, "eisl")
    assert recipe.title.startswith("Toy corpus, repeat:0.5, seed 7")  # ${seed}
    assert list(recipe.train) == ["ce", "eisl"]


def test_flags_as_words():
    found = words({"a": 1, "b": True, "c": False, "d": "x"}, {"d": None, "a": "(0.9, 0.98)"})
    assert found == ["--a", "(0.9, 0.98)", "--b"]


WRONG = [
    ("nam: x", "there is no key nam; did you mean name? (choose from average, base"),
    ("data: {foldr: x}", "there is no key data.foldr; did you mean folder? (choose from blank"),
    ("train: {ce: {flag: {}}}", "there is no key train.ce.flag; did you mean flags?"),
    ("seed: one", "seed: Value 'one' of type 'str' could not be converted to Integer"),
    ("device: tpu", "device: Invalid value 'tpu', expected one of [auto, cpu, cuda]"),
    ("flags: 3", "flags: a mapping of names to values is needed, not '3'"),
    ("flags: {lr: [1, 2]}", "flags.lr: a flag's value is one word or number"),
    ("data: {folder: nowhere}", "data.folder: there is no folder nowhere"),
    ("data: {prepare: wmt13}", "data.prepare: 'wmt13' is unknown (choose from "),
    ("data: {pieces: gpt2}", "data.gpt2: pieces: gpt2 needs the folder"),
    (
        "train: {eisl: {start: cee}}",
        "train.eisl.start: 'cee' is no other training (choose from ce)",
    ),
    ("train: {ce: {start_checkpoint: last}}", "train.ce.start_checkpoint: last needs start"),
    ("train: {eisl: {start_checkpoint: newest}}", "expected one of [best, last]"),
    (
        "train: {ce: {flags: {no-last-checkpoints: true}}, eisl: {start_checkpoint: last}}",
        "train.eisl.start_checkpoint: last: ce keeps none (flag no-last-checkpoints)",
    ),
    ("train: {ce: {start_parameters: shared}}", "train.ce.start_parameters: shared needs start"),
    (
        "train: {eisl: {start_parameters: shared}}",
        "train.eisl.start_parameters: shared needs the task noisy_translation_lev, not noisy_tr",
    ),
    (
        "flags: {task: noisy_translation_lev}\n"
        "train: {eisl: {start_parameters: shared, flags: {init-weights: setup.py}}}",
        "train.eisl.start_parameters: shared: the flag init-weights says already",
    ),
    ("train: {ce: {weights: bart.pt}}", "train.ce.weights: there is no file bart.pt"),
    ("train: {eisl: {weights: bart.pt}}", "train.eisl: start and weights exclude each other"),
    ("train: {generate_ce: {flags: {}}}", "generate_ce is a name that recipes use"),
    ("data: {monolingual: true}", "data.folder: data.monolingual needs a local folder"),
    ("train: {ce: {start: eisl}}", "train: ce, eisl: each needs another one"),
    ("train: {ce: {corpus: monolingual}}", "train.ce.corpus: monolingual needs data.monolingual"),
    ("train: {ce: {corpus: distilled}}", "train.ce.corpus: distilled needs teacher"),
    ("teacher: bert", "teacher: 'bert' is no training (choose from ce, eisl)"),
    ("train: {out: {flags: {}}}", "out is a name that recipes use"),
    ("train: {eisl: {system: CE}}", "train: 'CE' is the system of several trainings"),
    ("average: 0", "average: 1 or more checkpoints are needed, not 0"),
    ("name: a/b", "name: letters, digits"),
    ("base: nowhere.yaml", "base: "),
    ("a: [", "no YAML"),
    ("- a", "a recipe is a mapping"),
    # From here on fairseq's own parsers and this package's checks speak.
    ("noise: repaet:0.5", "'repaet:0.5' is no known noise; did you mean repeat?"),
    ("noise: repeat:1.5", "noise: --target-noise"),
    ("train: {eisl: {flags: {criterion: eisel}}}", "invalid choice: 'eisel' (choose from"),
    ("train: {eisl: {flags: {ngrams: '1'}}}", "train.eisl.flags.ngrams: --ngrams is no flag"),
    ("train: {eisl: {flags: {ngram: '0', ngram-weight: ''}}}", "--ngram-weight must be numbers"),
    ("train: {eisl: {flags: {ngram-weight: '1'}}}", "--ngram-weight 1: 1 weights for the 2 orders"),
    ("train: {eisl: {flags: {ngram: '1,x'}}}", "--ngram must be whole numbers"),
    ("train: {ce: {flags: {max-epoch: many}}}", "train.ce.flags.max-epoch: "),
    ("flags: {arch: transfomer}", "flags.arch: "),
    (
        "generate: {baem: 5}",
        "generate.baem: --baem is no flag of this command; did you mean --beam",
    ),
]


@pytest.mark.parametrize("text, message", WRONG, ids=[text for text, _ in WRONG])
def test_wrong_recipes_are_named_in_one_line_before_anything_runs(
    write, tmp_path, capsys, quick_check, text, message
):
    base = "" if text.startswith(("base", "- a")) else f"base: {SMOKE}\n"
    path = write("wrong.yaml", base + text + "\n")
    assert main(["run", str(path), "--runs", str(tmp_path / "runs")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"recipes: {path}: "), lines
    assert message in lines[0]
    assert not (tmp_path / "runs").exists()


def test_wrong_overrides_and_missing_files_are_named(tmp_path):
    with pytest.raises(RecipeError, match="seed: key=value is needed"):
        load(str(SMOKE), ["seed"])
    with pytest.raises(RecipeError, match="sed=2: there is no key sed; did you mean seed"):
        load(str(SMOKE), ["sed=2"])
    with pytest.raises(RecipeError, match="nowhere.yaml: there is no such file"):
        load(str(tmp_path / "nowhere.yaml"))


def test_bases_in_a_circle(write):
    write("a.yaml", "base: b.yaml\n")
    path = write("b.yaml", "base: a.yaml\n")
    with pytest.raises(RecipeError, match="each other's base"):
        load(str(path))


def test_bases_of_a_list_lie_one_above_the_other(write):
    """Later files override earlier ones, and each brings its own bases."""
    write("one.yaml", f"base: {SMOKE}\nseed: 3\nnoise: none\nflags: {{dropout: 0.3}}\n")
    write("two.yaml", "base: three.yaml\nseed: 4\ntrain: {ce: {flags: {lr: 1}}}\n")
    write("three.yaml", "seed: 5\nmodel_name: three\n")
    path = write("top.yaml", "base: [one.yaml, two.yaml]\nname: top\n")
    recipe = load(str(path))
    assert (recipe.name, recipe.seed, recipe.noise) == ("top", 4, "none")
    assert (recipe.model_name, recipe.flags.dropout, recipe.train.ce.flags.lr) == ("three", 0.3, 1)
    path.write_text("base: [two.yaml, one.yaml]\nname: top\n")
    recipe = load(str(path))
    assert (recipe.seed, recipe.model_name) == (3, "transformer-2x64")


def test_a_base_that_is_reached_twice_takes_nothing_back(write):
    write("low.yaml", f"base: {SMOKE}\nseed: 3\n")
    write("one.yaml", "base: low.yaml\nseed: 4\n")
    write("two.yaml", "base: low.yaml\nmodel_name: two\n")
    recipe = load(str(write("top.yaml", "base: [one.yaml, two.yaml]\nname: top\n")))
    assert (recipe.seed, recipe.model_name) == (4, "two")


@pytest.mark.parametrize("bases", ["[low.yaml, a.yaml]", "[b.yaml, low.yaml]"])
def test_a_circle_of_a_list_is_one_line(write, capsys, bases):
    write("low.yaml", f"base: {SMOKE}\n")
    write("b.yaml", "base: [low.yaml, a.yaml]\n")
    path = write("a.yaml", f"base: {bases}\nname: a\n")
    assert main(["plan", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "each other's base: " in line and line.endswith("a.yaml")


def test_a_missing_file_of_a_list_is_named(write):
    path = write("top.yaml", f"base: [{SMOKE}, nowhere.yaml]\nname: top\n")
    with pytest.raises(RecipeError, match=r"top.yaml: base: .*nowhere.yaml: there is no such file"):
        load(str(path))


def test_the_papers_numbers_are_shown_for_their_noise_only():
    path = str(ROOT / "configs/multi30k/repeat50_small.yaml")
    for noise, shown in (("repeat:0.5", True), ("blank:0.3", False)):
        score = build(load(path, [f"noise={noise}"]))[-1]
        assert ("published.csv" in dict(score.files)) == shown
        assert any("--published" in command for command in score.commands) == shown


def test_missing_keys_are_named(write):
    path = write("few.yaml", "name: few\n")
    expected = "data.prepare, data.source, data.target, data.test_set, model_name must be given"
    with pytest.raises(RecipeError, match=re.escape(expected)):
        load(str(path))


def test_a_corpus_of_ones_own(tmp_path):
    """Its languages are those of the recipe, and need not be said again."""
    for name in ("train", "valid", "test", "mono.train", "mono.valid"):
        for side in ("nl", "fy"):
            (tmp_path / f"{name}.{side}").write_text("word\n")
    overrides = ["data.prepare=text", "data.options=['--size','9']", f"data.folder={tmp_path}"]
    overrides += ["data.source=nl", "data.target=fy", "data.monolingual=true"]
    recipe = load(str(ROOT / "configs/base/multi30k_small.yaml"), overrides)
    (line,) = build(recipe)[0].commands
    script, out = CHECKOUT / "scripts/prepare/text.sh", OUT
    expected = ["bash", script, out, "nl", "fy", "--size", "9", "--monolingual", "--data"]
    assert list(line) == [*expected, str(tmp_path)]
    (tmp_path / "mono.valid.fy").write_text("")
    with pytest.raises(RecipeError, match=r"no file mono\.valid\.fy \(or an empty one\)"):
        load(str(ROOT / "configs/base/multi30k_small.yaml"), overrides)


def test_six_files_in_place_of_a_folder(tmp_path):
    own = [str(tmp_path / f"{name}.txt") for name in "abcdef"]
    for name in "abcdef":
        (tmp_path / f"{name}.txt").write_text("word\n")
    overrides = ["data.source=nl", "data.target=fy", f"data.files=[{','.join(own)}]"]
    recipe = load(str(ROOT / "configs/text/small.yaml"), overrides)
    prepare, encode = build(recipe)[:2]
    assert list(prepare.commands[0])[3:] == ["nl", "fy", "--files", *own]
    assert set(own) <= set(prepare.reads)  # another text is another stage
    assert "auto" in encode.commands[0]
    for wrong, message in (
        ([f"data.folder={tmp_path}"], f"not with folder: {tmp_path}"),
        (["data.prepare=multi30k"], "not with prepare: multi30k"),
        ([f"data.files=[{own[0]}]"], "six are needed, of nl and fy in turns: [train.nl,"),
        ([f"data.files=[{','.join(own[:5])},x]"], "there is no file x (or an empty one)"),
        (["data.vocabulary=0"], "data.vocabulary: 4 or more are needed (three are symbols)"),
    ):
        with pytest.raises(RecipeError, match=re.escape(message)):
            load(str(ROOT / "configs/text/small.yaml"), [*overrides, *wrong])


@pytest.mark.parametrize(
    "overrides, words",
    [
        (["data.prepare=text"], "data.folder: prepare: text needs the folder with the six files"),
        (["data.folder=."], "data.folder: prepare: toy makes its text itself and takes no ."),
        (["data.source=de.x"], "data.source: a language is needed"),
        (["data.source=\u00e9"], "data.source: a language is needed"),
    ],
)
def test_what_its_text_lacks_is_said_before_anything_runs(overrides, words):
    with pytest.raises(RecipeError, match=re.escape(words)):
        load(str(ROOT / "configs/smoke/quickstart.yaml"), overrides)


CONFIGS = sorted(path for path in (ROOT / "configs").rglob("*.yaml"))
# multi30k.sh and the sweeps name bases, too.
BASES = ("multi30k_small", "multi30k_bart", "multi30k_bart_small")
OTHERS = ("base", "hydra", "sweeps")
RECIPES = [p for p in CONFIGS if p.parent.name not in OTHERS]
RECIPES += [ROOT / f"configs/base/{name}.yaml" for name in BASES]


def stand_ins(folder, recipe):
    """Overrides that name stand-ins for what a user of a recipe brings: BART's files, text."""
    for name in ("model.pt", "dict.txt", "encoder.json", "vocab.bpe"):
        (folder / name).write_text("")
    for split in ("train", "valid", "test"):
        for side in ("de", "en"):
            (folder / f"{split}.{side}").write_text("word\n")
    made = "/smoke/" in str(recipe)  # its text is made
    return [f"data.gpt2={folder}", *([] if made else [f"data.folder={folder}"]), "device=cpu"]


@pytest.mark.parametrize("path", RECIPES, ids=[str(p.relative_to(ROOT)) for p in RECIPES])
def test_shipped_recipes_are_accepted_by_fairseqs_parsers(path, tmp_path, capsys, quick_check):
    mine = stand_ins(tmp_path, path)
    assert main(["plan", str(path), "--runs", str(tmp_path / "runs"), *mine]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("fairseq-train ") for line in lines) >= 2


SWEEPS = sorted((ROOT / "configs/sweeps").glob("*.yaml"))


@pytest.mark.parametrize("path", SWEEPS, ids=[p.stem for p in SWEEPS])
def test_every_cell_of_the_shipped_sweeps_is_accepted(path, tmp_path, quick_check):
    sweep = load_sweep(str(path))
    found = cells(sweep)
    assert len(found) >= 2
    mine = stand_ins(tmp_path, sweep.recipe)
    recipes = open_recipes(sweep.recipe, [[*mine, *cell.overrides] for cell in found])
    # A cell that ran what another one runs would be no cell.
    runner = [Runner(stages, str(tmp_path)) for _, stages in recipes]
    assert len({each.keys["score"] for each in runner}) == len(found)
