"""Texts of two styles made ready: what each file holds, and what is said of wrong ones."""

import importlib.util
import subprocess

import pytest

from tests.toy import ROOT, environment

PREPARE = ROOT / "scripts/prepare"
LINES = {
    "train.bad": ["the soup is awful .", " awful\tservice ", "", "poor staff ."],
    "train.good": ["the soup is great .", "lovely wine ."],
    "valid.bad": ["it was poor .", "no"],
    "valid.good": ["it was fine .", "yes"],
    "test.bad": ["the wine is poor ."],
    "test.good": ["the staff is great .", "lovely soup ."],
    "human.bad": ["The wine isn't poor, it's great!"],
    "human.good": ["the staff is awful.", "The soup cost $3.50 (bad)..."],
}


def module():
    spec = importlib.util.spec_from_file_location("styles", PREPARE / "styles.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def write(folder, texts):
    folder.mkdir(exist_ok=True)
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def run(script, *words):
    done = subprocess.run(
        ["bash", str(PREPARE / script), *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    return done.returncode, done.stdout


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_two_texts_of_ones_own(tmp_path):
    raw = write(tmp_path / "raw", LINES)
    out = tmp_path / "out"
    code, said = run("styles.sh", out, "bad", "good", "--data", raw, "--first-valid", "1")
    assert code == 0, said
    assert lines_of(out / "train.bad") == ["the soup is awful .", "awful service", "poor staff ."]
    assert lines_of(out / "valid.good") == ["it was fine ."]
    assert lines_of(out / "test.source") == LINES["test.bad"] + LINES["test.good"]
    assert lines_of(out / "test.wanted") == ["good", "bad", "bad"]
    assert lines_of(out / "test.human") == [
        "the wine is n't poor , it 's great !",
        "the staff is awful .",
        "the soup cost $ 3.50 ( bad ) ...",
    ]
    assert lines_of(out / "mono.train.good") == [
        *("the soup is awful .", "the soup is great .", "awful service", "lovely wine ."),
        "poor staff .",
    ]


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"test.good": None}, "has no file test.good (or an empty one)"),
        ({"train.bad": []}, "has no file train.bad (or an empty one)"),
        ({"train.bad": ["", " "]}, "train.bad: there is no sentence in it"),
        ({"human.bad": ["a", "b"]}, "human.bad has 2 lines for 1 sentences of its style"),
    ],
)
def test_wrong_files_are_one_line(tmp_path, changes, words):
    raw = write(tmp_path / "raw", {k: v for k, v in {**LINES, **changes}.items() if v is not None})
    code, said = run("styles.sh", tmp_path / "out", "bad", "good", "--data", raw)
    assert code == 2 and words in said.splitlines()[-1], said


def test_a_text_is_never_written_over(tmp_path):
    raw = write(tmp_path / "raw", LINES)
    (tmp_path / "link").symlink_to(raw)
    for dest in (raw, tmp_path / "link"):
        code, said = run("styles.sh", dest, "bad", "good", "--data", raw, "--first", "1")
        assert code == 2 and "train.bad: it would be written over" in said, said
    assert {path.name for path in raw.iterdir()} == set(LINES)
    assert all(lines_of(raw / name) == lines for name, lines in LINES.items())


def test_what_is_left_out_is_said(tmp_path):
    raw = write(tmp_path / "raw", {**LINES, "valid.good": ["it\u2581was fine .", "", "yes"]})
    code, said = run("styles.sh", tmp_path / "out", "bad", "good", "--data", raw)
    assert code == 0, said
    assert "train.bad: 1 of 4 lines have no word and are left out" in said
    assert "train.bad: 1 of 4 lines hold white space other than the space" in said
    assert "valid.good: 1 of 3 lines hold \u2581" in said and "are kept" not in said
    assert lines_of(tmp_path / "out/valid.good") == ["it was fine .", "yes"]


def merged(folder, labels, lines=("x", "y z")):
    write(folder, {"train.0": ["a b", "c", "d"], "train.1": ["e", "f"], "test.merge": lines})
    return write(folder, {"test.labels": labels})


def test_a_merged_test_set_is_taken_apart_by_its_labels(tmp_path):
    raw = merged(tmp_path / "raw", ["1", "0"])
    code, said = run("political.sh", tmp_path / "out", "--data", raw, "--held-out", "1")
    assert code == 0, said
    out = tmp_path / "out"
    assert lines_of(out / "train.democratic") == ["a b", "c"]
    assert lines_of(out / "valid.democratic") == ["d"]
    assert lines_of(out / "test.source") == ["y z", "x"]
    assert lines_of(out / "test.wanted") == ["republican", "democratic"]
    assert not (out / "test.human").exists()


def test_a_merged_test_set_is_plain_text(tmp_path):
    raw = merged(tmp_path / "raw", ["1", "0", "0"], ["x\u2581a", "", "y"])
    code, said = run("political.sh", tmp_path / "out", "--data", raw, "--held-out", "1")
    assert code == 0 and "label 0: 1 of 2 lines have no word and are left out" in said, said
    assert lines_of(tmp_path / "out/test.source") == ["y", "x a"]


@pytest.mark.parametrize(
    "labels, words",
    [
        (["1"], "test.labels has 1 labels for the 2 lines of"),
        (["1", "2"], "test.labels: line 2: a label is 0 or 1, not '2'"),
        (["1", "1"], "test.labels: no line has the label 0"),
    ],
)
def test_labels_that_do_not_fit_are_one_line(tmp_path, labels, words):
    raw = merged(tmp_path / "raw", labels)
    code, said = run("political.sh", tmp_path / "out", "--data", raw, "--held-out", "1")
    assert code == 2 and words in said.splitlines()[-1], said


def test_more_held_out_than_there_is(tmp_path):
    raw = merged(tmp_path / "raw", ["1", "0"])
    code, said = run("political.sh", tmp_path / "out", "--data", raw)
    assert code == 2 and "train.0: 3 lines, not more than the held-out ones" in said


def test_people_are_written_as_the_corpora_are():
    as_written = module().as_written
    assert as_written("Can't we’ve 1,000.50 of THEM?") == "ca n't we 've 1,000.50 of them ?"
    assert as_written("it 's done .") == "it 's done ."


@pytest.mark.parametrize("name", ["yelp", "political"])
def test_the_real_text(tmp_path, name):
    folder = ROOT.parent / "shared/data" / name
    if not folder.is_dir():
        pytest.skip(f"{folder}: the text is not there")
    code, said = run(f"{name}.sh", tmp_path / "out", "--data", folder)
    assert code == 0, said
    sources, wanted = (lines_of(tmp_path / "out" / f"test.{n}") for n in ("source", "wanted"))
    assert len(sources) == len(wanted) == 1000 and len(set(wanted)) == 2
    train = set(lines_of(next((tmp_path / "out").glob("mono.train.*"))))
    if name == "yelp":
        assert len(lines_of(tmp_path / "out/test.human")) == 1000
        assert not train & set(sources)
