"""``--task style_transfer``: its data, and what it says of wrong ones."""

import re
import shutil

import pytest
import torch

from tests.criterions.style import TASK, build, preprocess, write_styles
from tests.toy import parse


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("styles")
    write_styles(folder / "raw")
    code, output = preprocess(folder / "raw", folder / "bin")
    assert code == 0, output
    return folder


@pytest.fixture
def data(made, tmp_path):
    """A copy to break."""
    shutil.copytree(made / "bin", tmp_path / "bin")
    return tmp_path / "bin"


def load(data, split="train", **options):
    """The task with a split, of options of the task."""
    from fairseq import tasks

    cfg = parse(str(data), *TASK, "--criterion", "style_transfer", arch="style_transfer").copy()
    cfg.task.update(options)
    task = tasks.setup_task(cfg.task)
    task.load_dataset(split)
    return task


def test_two_files_of_unequal_length_are_the_two_styles(made):
    task = load(made / "bin")
    found = task.datasets["train"]
    assert len(found) == 150 and task.styles == ["bad", "good"]
    lines = [line for style in ("bad", "good") for line in (made / f"raw/train.{style}").open()]
    for index in (0, 59, 60, 149):
        item = found[index]
        assert task.dictionary.string(item["tokens"]) == lines[index].strip()
        assert item["style"] == int(index >= 60)


def test_a_batch_is_padded_on_the_right_and_its_own_target(made):
    task = load(made / "bin")
    dataset = task.datasets["train"]
    batch = dataset.collater([dataset[i] for i in (0, 70, 3)])
    net, pad, eos = batch["net_input"], task.dictionary.pad(), task.dictionary.eos()
    assert torch.equal(net["src_tokens"], batch["target"]) and net["styles"].tolist() == [0, 1, 0]
    assert torch.equal(net["prev_output_tokens"][:, 0], torch.full((3,), eos))
    for row, length in zip(batch["target"], net["src_lengths"].tolist()):
        assert row[length - 1] == eos and row[length:].eq(pad).all()
    assert batch["ntokens"] == int(net["src_lengths"].sum())


def test_longer_sentences_are_left_out_and_counted_but_never_of_the_test_set(made, caplog):
    every = load(made / "bin", max_words=0).datasets["train"]
    longest = 4
    expected = int((every.sizes > longest + 1).sum())
    assert 0 < expected < len(every)
    with caplog.at_level("INFO"):
        task = load(made / "bin", max_words=longest)
    assert f"{expected:,} longer than --max-words 4 are left out" in caplog.text
    assert len(task.datasets["train"]) == len(every) - expected
    task.load_dataset("test")
    assert len(task.datasets["test"]) == 13
    with pytest.raises(ValueError, match="--max-words 1: every sentence of train is longer"):
        load(made / "bin", max_words=1)


def refuse(words, *arguments, **options):
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        load(*arguments, **options)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(data):
    (data / "train.bad-good.good.idx").unlink()
    (data / "train.bad-good.good.bin").unlink()
    refuse("train.bad-good.good.idx: there is no such file (split train, style good)", data)


def test_an_empty_file_is_one_line(made, tmp_path):
    shutil.copytree(made / "raw", tmp_path / "raw")
    (tmp_path / "raw/train.bad").write_text("")
    code, output = preprocess(tmp_path / "raw", tmp_path / "bin")
    assert code == 0, output
    refuse("train.bad-good.bad: there is no sentence of style bad in it", tmp_path / "bin")


def test_dictionaries_must_be_one(made, tmp_path):
    code, output = preprocess(made / "raw", tmp_path / "bin", "--thresholdsrc", "1")
    assert code == 0, output
    refuse(
        "the dictionaries of bad and good differ; preprocess both with --joined-", tmp_path / "bin"
    )


def test_wrong_names_and_places_are_one_line(data, tmp_path):
    refuse("--styles a,b: the files of", data, styles="a,b")
    refuse("--styles bad: two names are needed", data, styles="bad")
    refuse("--transfer-to: 'best' is unknown; choose from other, own, bad, good", data,
           transfer_to="best")  # fmt: skip
    refuse("nowhere: there is no such folder of data", tmp_path / "nowhere")
    (tmp_path / "none").mkdir()
    refuse("there are no files SPLIT.A-B.A.idx of two styles", tmp_path / "none")
    (data / "dict.good.txt").unlink()
    refuse("dict.good.txt: there is no such dictionary (style good)", data)


def test_another_criterion_is_refused(data):
    task = load(data)
    cfg = parse(str(data), *TASK, "--criterion", "style_transfer", arch="style_transfer")
    wrong = cfg.criterion.copy()
    wrong._name = "eisl"
    with pytest.raises(ValueError, match="--criterion eisl does not train --task style_transfer"):
        task.build_criterion(wrong)


@pytest.mark.parametrize(
    "wanted, expected", [("other", [1, 0]), ("own", [0, 1]), ("good", [1, 1]), ("bad", [0, 0])]
)
def test_the_style_that_is_generated(made, wanted, expected):
    found = build(made / "bin", flags=["--transfer-to", wanted])
    batch = found.sample(0, 17)
    assert batch["net_input"]["styles"].tolist() == [0, 1]
    assert found.task.wanted_styles([found.model], batch["net_input"]).tolist() == expected


def test_what_a_user_types_has_the_style_that_the_classifier_says(made):
    found = build(made / "bin")
    tokens = [found.task.dictionary.encode_line(t).long() for t in ("the noun1 is fine", "awful")]
    dataset = found.task.build_dataset_for_inference(tokens, [len(t) for t in tokens])
    batch = dataset.collater([dataset[0], dataset[1]])
    source = batch["net_input"]["src_tokens"]
    assert "styles" not in batch["net_input"]
    guessed = found.model.classifier(source, source.ne(found.task.dictionary.pad())).argmax(1)
    wanted = found.task.wanted_styles([found.model], batch["net_input"])
    assert wanted.tolist() == (1 - guessed).tolist()


def test_nouns_by_the_tagger(made):
    pytest.importorskip("textblob", reason="nouns need textblob")
    task = load(made / "bin", content_words="nouns")
    item = task.datasets["train"][0]
    words = [task.dictionary[token] for token in item["tokens"].tolist()]
    assert item["content"].dtype == torch.bool and len(item["content"]) == len(words)
    assert not item["content"][words.index("the")] and not item["content"][-1]


def test_without_the_tagger_the_flag_says_what_is_missing(made, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "textblob.en", None)
    refuse("--content-words nouns: tagging words needs textblob: pip install textblob",
           made / "bin", content_words="nouns")  # fmt: skip
