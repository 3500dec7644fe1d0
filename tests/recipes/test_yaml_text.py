"""Text stays text, in files and on the command line; what is no text is named by its line."""

import pytest

from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.schema import RecipeError, as_override, load, run_name
from fairseq_eisl.recipes.sweep import cells, load_sweep
from tests.recipes.conftest import SMOKE

# YAML 1.1 makes switches, numbers, nothing and dates of most of them.
WORDS = [
    "no", "yes", "on", "off", "n", "y", "010", "0x10", "1e3", "1_000", "1:30", "2024-01-01", ".5",
    "1.10", "~", "+1", "0o7", ".inf", "=", "<<", "é",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_text_stays_text(word, write):
    text = f"base: {SMOKE}\nmodel_name: {word}\ntitle: {word}\ncolumns: {{targets: {word}}}\n"
    text += f"data: {{options: [{word}]}}\n"
    path = str(write("r.yaml", text))
    overrides = [f"{key}={word}" for key in ("model_name", "title", "+columns.targets")]
    overrides.append(f"data.options=[{word}]")
    for recipe in (load(path), load(str(SMOKE), overrides)):
        assert recipe.model_name == recipe.title.split(" (")[0] == word
        assert recipe.columns.targets == word and list(recipe.data.options) == [word]
        stages = build(recipe)
        assert f"targets={word}" in stages[-1].commands[0] and word in stages[0].commands[0]


@pytest.mark.parametrize("word", ["no", "on", "de", "y"])
def test_a_language_is_text(word):
    recipe = load(str(SMOKE), [f"data.source={word}"])
    assert recipe.data.source == word
    command = {stage.name: stage for stage in build(recipe)}["preprocess"].commands[0]
    assert command[command.index("-s") + 1] == word


@pytest.mark.parametrize("word", ["null", "no"])
def test_only_null_takes_a_column_away(word, write):
    path = write("r.yaml", f"base: {SMOKE}\ncolumns: {{targets: raw}}\n")
    found = load(str(path), [f"columns.targets={word}"]).columns.targets
    assert found == (None if word == "null" else word)
    assert load(str(path), ["columns.targets='null'"]).columns.targets == "null"


def test_numbers_and_switches_are_such_where_flags_are(write):
    text = "flags: {lr: 1e-4, max-update: 1e3, fp16: true, cpu: False, bpe: no, x: '5', y: ~}\n"
    flags = load(str(write("r.yaml", f"base: {SMOKE}\n{text}"))).flags
    found = [flags[key] for key in ("lr", "max-update", "fp16", "cpu", "bpe", "x", "y")]
    assert found == [1e-4, 1000, True, False, "no", "5", None]
    recipe = load(str(SMOKE), ["seed=010", "half_precision=no", "average=null"])
    assert (recipe.seed, recipe.half_precision, recipe.average) == (10, False, None)


def test_text_on_the_command_line_needs_no_quotes_of_yaml():
    for text in ("a: b", "x # y", "{z}", "[w]", "it's"):
        assert load(str(SMOKE), [f"data.test_set={text}"]).data.test_set == text
    recipe = load(str(SMOKE), ['flags.eval-bleu-args={"beam": 2}'])
    assert recipe.flags["eval-bleu-args"] == '{"beam": 2}'


@pytest.mark.parametrize("text", ["no", "null", "a: b", "it's", "'x'", '"', "", "[1, 2]", "# c"])
def test_an_override_of_a_text_is_read_back(text):
    recipe = load(str(SMOKE), [as_override("data.test_set", text or "x")])
    assert recipe.data.test_set == (text or "x")


def test_an_axis_of_a_sweep_is_text(write):
    axes = "  data.source: [no, 010, 1e3, 1:30]\n"
    path = write("s.yaml", f"name: s\nrecipe: {SMOKE}\naxes:\n{axes}")
    found = [cell.overrides for cell in cells(load_sweep(str(path)))]
    assert found == [[f"data.source={word}"] for word in ("no", "010", "1e3", "1:30")]


def test_a_run_again_from_its_own_recipe_has_the_same_text(write):
    from fairseq_eisl.recipes.runner import as_text

    recipe = load(str(SMOKE), ["+columns.targets=010", "+columns.x='null'", "model_name=no"])
    again = load(str(write("recipe.yaml", as_text(recipe))))
    assert again == recipe and run_name(again) == "smoke_multi30k_repeat50-seed1"


BAD = [
    (b"name: x\nnoise: r\xe9\n", "r.yaml: line 2: not UTF-8"),
    ("name: x\n".encode("utf-16"), "r.yaml: line 1: not UTF-8"),
    (b"name: x\nseed: 1\nname: y\n", "r.yaml: line 3: the key name is there twice"),
    (b"flags:\n  lr: 1\n  lr: 2\n", "r.yaml: line 3: the key lr is there twice"),
    (b"name: x\nflags: {a: [}\n", "r.yaml: line 2: no YAML: "),
    (b"name: x\n\tseed: 1\n", "r.yaml: line 2: no YAML: "),
    (b"name: a\x00b\n", "r.yaml: no YAML: "),
    (b"name: &a [*a]\n", "r.yaml: line 1: an alias that holds itself"),
    (b"name: !!python/object:os.system x\n", "r.yaml: "),
    (b"name: !x y\n", "r.yaml: line 1: !x is no tag"),
    (b"- a\n", "r.yaml: a recipe is a mapping"),
    (b"a\n", "r.yaml: a recipe is a mapping"),
    (b"data: 5\n", "r.yaml: data: a mapping of keys to values is needed, not '5'"),
    (b"data: [a]\n", "r.yaml: data: a mapping of keys to values is needed, not ['a']"),
    (b"train: {ce: 5}\n", "r.yaml: train.ce: a mapping of keys to values is needed, not '5'"),
    (b"train: [ce]\n", "r.yaml: train: a mapping of names to values is needed, not ['ce']"),
    (b"variants: {a: 1}\n", "r.yaml: variants: a list is needed"),
    (b"launcher: torchrun\n", "r.yaml: launcher: a list is needed, e.g. [a, b], not 'torchrun'"),
    (b"title: {a: b}\n", "r.yaml: title: one word is needed, not {'a': 'b'}"),
    (b"base: {a: b}\n", "r.yaml: base: a file or a list of files is needed, not {'a': 'b'}"),
    (b"base: [[a]]\n", "r.yaml: base: a file or a list of files is needed, not ['a']"),
    (b"base: [~]\n", "r.yaml: base: a file or a list of files is needed, not '~'"),
    (b"base: [a, nofile.yaml]\n", "r.yaml: base: "),
    (b"base: nofile.yaml\n", "r.yaml: base: "),
    (b"base: r.yaml\n", "the files are each other's base: "),
    (b"base: .\n", "this is a folder"),
    (b"? [a]\n: b\n", "r.yaml: line 1: a key is one word"),
]


@pytest.mark.parametrize("content, message", BAD, ids=[repr(content) for content, _ in BAD])
def test_a_wrong_file_is_one_line(content, message, tmp_path, capsys):
    (tmp_path / "r.yaml").write_bytes(content)
    assert main(["plan", str(tmp_path / "r.yaml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("recipes: ") and message in line, line


@pytest.mark.parametrize("override", ["data=5", "train=5", "base=nofile.yaml", "flags=x", "=1"])
def test_a_wrong_override_is_one_line(override, capsys):
    assert main(["plan", str(SMOKE), override]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"recipes: {override}: "), line


def test_merges_of_yaml_are_read(write):
    text = f"base: {SMOKE}\ntrain:\n  ce: &x {{flags: {{lr: 1}}}}\n  eisl: {{<<: *x, start: ce}}\n"
    recipe = load(str(write("r.yaml", text)))
    assert recipe.train.eisl.flags.lr == 1 and recipe.train.eisl.start == "ce"


def test_a_folder_is_no_recipe(tmp_path):
    with pytest.raises(RecipeError, match="this is a folder"):
        load(str(tmp_path))
