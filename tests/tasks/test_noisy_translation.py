"""The task ``noisy_translation``: which split is corrupted, how, and by which flags."""

import io
import json
import logging
import sys
from pathlib import Path
from random import Random

import pytest
import torch

pytest.importorskip("fairseq")
from fairseq.data import Dictionary, LanguagePairDataset, indexed_dataset  # noqa: E402
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

from fairseq_eisl.data.noisy_targets import NoisyTargetDataset  # noqa: E402
from fairseq_eisl.noise import command  # noqa: E402
from fairseq_eisl.tasks.noisy_translation import (  # noqa: E402
    NoisyTranslationConfig,
    NoisyTranslationTask,
)

WORDS = [f"w{i}" for i in range(12)]
SIZES = {"train": 50, "valid": 10, "test": 10}


def write_data(folder: Path, words=WORDS, bound: int = 9, sizes=SIZES):
    """Copy pairs xx -> yy in the mmap format; returns the lines of each split."""
    dictionary, rng, lines = Dictionary(), Random(1), {}
    for word in words:
        dictionary.add_symbol(word)
    for side in ("xx", "yy"):
        dictionary.save(str(folder / f"dict.{side}.txt"))
    for split, size in sizes.items():
        lines[split] = [" ".join(rng.choices(words, k=rng.randint(1, bound))) for _ in range(size)]
        for side in ("xx", "yy"):
            write_ids(
                folder / f"{split}.xx-yy.{side}",
                [dictionary.encode_line(s, add_if_not_exist=False) for s in lines[split]],
            )
    return lines


def write_ids(prefix: Path, rows):
    builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", vocab_size=100)
    for row in rows:
        builder.add_item(row)
    builder.finalize(f"{prefix}.idx")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return folder, write_data(folder)


def make_task(folder, **fields):
    cfg = OmegaConf.structured(NoisyTranslationConfig)
    defaults = {
        "data": str(folder),
        "source_lang": "xx",
        "target_lang": "yy",
        "train_subset": "train",
        "dataset_impl": None,
        "required_seq_len_multiple": 1,
    }
    for name, value in {**defaults, **fields}.items():
        cfg[name] = value
    return NoisyTranslationTask.setup_task(cfg)


def load(task, split="train", **options):
    task.load_dataset(split, **options)
    return task.dataset(split)


def targets(task, dataset):
    strings = (dataset[i]["target"] for i in range(len(dataset)))
    return [task.tgt_dict.string(ids) for ids in strings]


def test_registration():
    assert TASK_REGISTRY["noisy_translation"] is NoisyTranslationTask
    assert TASK_DATACLASS_REGISTRY["noisy_translation"] is NoisyTranslationConfig


def test_each_shard_has_noise_of_its_own(data):
    """The first that of data in one folder."""
    folder, _ = data

    def of(place, epoch):
        task = make_task(place, target_noise="repeat:0.5")
        return targets(task, load(task, epoch=epoch, combine=False, data_selector=None))

    both = f"{folder}:{folder}"
    assert of(both, 1) == of(both, 3) == of(folder, 1) == of(folder, 2)
    assert of(both, 2) == of(both, 4) != of(both, 1)


@pytest.mark.parametrize(
    "noise", ["repeat:0.5", "shuffle:3", "synthetic:6", "substitute:0.3", "drop:0.2,insert:0.2"]
)
def test_equal_to_the_command(data, noise, tmp_path, monkeypatch):
    """On unsplit text, a corrupted file is what the task trains on."""
    folder, lines = data
    task = make_task(folder, target_noise=noise, target_noise_seed=7)
    out = io.BytesIO()
    text = "".join(line + "\n" for line in lines["train"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    flags = ["--noise", noise, "--seed", "7", "--blank-symbol", "<unk>"]
    command.main([*flags, "--vocabulary", str(folder / "dict.yy.txt")])
    corrupted = out.getvalue().decode().splitlines()
    assert targets(task, load(task)) == corrupted != lines["train"]


def test_only_the_training_split_is_corrupted(data):
    folder, lines = data
    task = make_task(folder, target_noise="repeat:1")
    for split in ("valid", "test"):
        assert type(load(task, split)) is LanguagePairDataset
        assert targets(task, task.dataset(split)) == lines[split]
    train = load(task, epoch=1, combine=True, data_selector=None)  # as the trainer calls it
    assert isinstance(train, NoisyTargetDataset)
    noisy = [" ".join(w for word in s.split() for w in (word, word)) for s in lines["train"]]
    assert targets(task, train) == noisy
    # fairseq-generate and fairseq-validate pass the checkpoint's task.
    clean = load(task, task_cfg=task.cfg)
    assert targets(task, clean) == lines["train"]
    # The same split is no training split where another one is.
    other = make_task(folder, target_noise="repeat:1", train_subset="valid")
    assert targets(other, load(other)) == lines["train"]
    assert targets(other, load(other, "valid")) != lines["valid"]


def test_no_noise_by_default(data):
    folder, lines = data
    for fields in ({}, {"target_noise": "none"}):
        task = make_task(folder, **fields)
        assert type(load(task)) is LanguagePairDataset
        assert targets(task, task.dataset("train")) == lines["train"]


def test_inference_data_has_no_noise(data):
    task = make_task(data[0], target_noise="repeat:1")
    dataset = task.build_dataset_for_inference([torch.tensor([4, 5, 2])], [3])
    assert type(dataset) is LanguagePairDataset


def rows_of(task, **options):
    """The targets that an epoch's batches hold, by example."""
    found = {}
    batches = task.get_batch_iterator(task.dataset("train"), disable_iterator_cache=True, **options)
    for sample in batches.next_epoch_itr(shuffle=True):
        if not sample:  # fills up the smaller part of two ranks
            continue
        for i, row in zip(sample["id"].tolist(), sample["target"]):
            found[i] = task.tgt_dict.string(row[row != task.tgt_dict.pad()])
    return found


@pytest.mark.filterwarnings("ignore:.*pin_memory")
@pytest.mark.parametrize("resample", [False, True])
def test_training_batches(data, resample):
    """Equal for any batch size and number of ranks; by epoch only on demand.

    Workers are in ``tests/data/test_noisy_targets.py``: fairseq's iterator takes five
    seconds a worker to end.
    """
    folder, _ = data
    epochs = {}
    for options in ({"max_sentences": 4}, {"max_sentences": 16}, "ranks"):
        task = make_task(folder, target_noise="synthetic:6", target_noise_resample=resample)
        load(task)
        for epoch in (1, 2):
            if options == "ranks":
                halves = [
                    rows_of(task, max_tokens=60, num_shards=2, shard_id=i, epoch=epoch)
                    for i in range(2)
                ]
                assert not set(halves[0]) & set(halves[1])
                rows = {**halves[0], **halves[1]}
            else:
                rows = rows_of(task, **options, epoch=epoch)
            assert sorted(rows) == list(range(50))
            assert epochs.setdefault(epoch, rows) == rows
    assert (epochs[1] == epochs[2]) is not resample


@pytest.mark.filterwarnings("ignore:.*pin_memory")
def test_batches_are_made_anew_when_lengths_change(data):
    folder, _ = data
    for resample in (True, False):
        task = make_task(folder, target_noise="repeat:0.5", target_noise_resample=resample)
        dataset = load(task)
        first = task.get_batch_iterator(dataset, max_tokens=40, epoch=1)
        second = task.get_batch_iterator(dataset, max_tokens=40, epoch=2)
        assert (first is second) is not resample
        for batch in second.frozen_batches:
            assert dataset.collater([dataset[i] for i in batch])["target"].numel() <= 40


def test_each_noise_seed_gives_other_targets(data):
    folder, _ = data
    seen = set()
    for seed in (1, 2, -5):
        task = make_task(folder, target_noise="shuffle:3", target_noise_seed=seed)
        seen.add("\n".join(targets(task, load(task))))
    assert len(seen) == 3


def test_length_limit(data):
    folder, lines = data
    task = make_task(folder, target_noise="repeat:1", max_target_positions=12)
    lengths = [len(s.split()) + 1 for s in targets(task, load(task))]
    assert lengths == [min(2 * len(line.split()), 11) + 1 for line in lines["train"]]
    # The model's limit counts too, once the model is built.
    task._model_max_target = 6
    lengths = [len(s.split()) + 1 for s in targets(task, load(task))]
    clean = [len(line.split()) for line in lines["train"]]
    assert lengths == [min(2 * n, 5) + 1 if n < 6 else 2 * n + 1 for n in clean]


# -- blank symbol, word units ----------------------------------------------------------------


def test_blank_symbol(data):
    folder, lines = data
    for blank in ("<unk>", "w3"):
        task = make_task(folder, target_noise="blank:1", target_noise_blank=blank)
        expected = [" ".join(blank for _ in line.split()) for line in lines["train"]]
        assert targets(task, load(task)) == expected
        assert len(task.tgt_dict) == len(task.src_dict) == 16


def test_unknown_blank_symbol(data):
    with pytest.raises(ValueError) as error:
        make_task(data[0], target_noise="blank:1", target_noise_blank="[...]")
    message = str(error.value)
    assert message.startswith("--target-noise-blank: '[...]'") and "<unk>" in message
    for special in ("<s>", "<pad>", "</s>"):
        with pytest.raises(ValueError, match="--target-noise-blank"):
            load(make_task(data[0], target_noise="blank:1", target_noise_blank=special))


@pytest.mark.parametrize("noise", ["repeat:1.5", "repeats:0.1", "repeat:0.1,", "shuffle:x"])
def test_bad_noise(data, noise):
    with pytest.raises(ValueError, match=f"^--target-noise: .*{noise}"):
        make_task(data[0], target_noise=noise)


@pytest.mark.parametrize("noise", ["", " ", ","])
def test_an_empty_noise_is_refused(data, noise):
    with pytest.raises(ValueError, match="^--target-noise: .*choose from none, "):
        make_task(data[0], target_noise=noise)


def test_bad_scheme(data):
    with pytest.raises(Exception, match="spm"):
        make_task(data[0], target_noise="repeat:1", target_noise_bpe="spm")
    message = "^--target-noise-bpe gpt2: .* no symbol of the dictionary has it; choose from none, "
    with pytest.raises(ValueError, match=message):
        make_task(data[0], target_noise="repeat:1", target_noise_bpe="gpt2")


@pytest.mark.parametrize(
    ("words", "scheme"),
    [
        (["al", "##x", "b"], "wordpiece"),
        (["al", "x</w>", "b</w>"], "end_of_word"),
        (["al", "x_EOW", "b_EOW"], "eow"),
        (["al", "x\u2581", "b\u2581"], "sentencepiece_suffix"),
        (["al\uffed", "x", "b"], "joiner"),
    ],
)
def test_pieces_of_other_kinds_stay_together(tmp_path, caplog, words, scheme):
    caplog.set_level(logging.INFO, "fairseq_eisl")
    write_data(tmp_path, words)
    for side in ("xx", "yy"):
        write_ids(tmp_path / f"train.xx-yy.{side}", [torch.IntTensor([4, 5, 6, 4, 5, 2])])
    for fields in ({}, {"target_noise_bpe": scheme}):
        task = make_task(tmp_path, target_noise="repeat:1", **fields)
        assert load(task)[0]["target"].tolist() == [4, 5, 4, 5, 6, 6, 4, 5, 4, 5, 2]
    assert f"target words are split as: {scheme}" in caplog.text


@pytest.mark.parametrize(
    ("words", "scheme", "glued"),
    [
        (["al@@", "x", "b"], "subword_nmt", "@@ "),
        (["\u2581al", "x", "\u2581b", "\u2581"], "sentencepiece", "sentencepiece"),
        (["al", "x", "b"], "none", None),
    ],
)
def test_word_units_from_the_dictionary(tmp_path, caplog, words, scheme, glued):
    caplog.set_level(logging.INFO, "fairseq_eisl")
    write_data(tmp_path, words)
    word = [4, 5] if scheme != "none" else [4]
    for side in ("xx", "yy"):  # "alx b alx"
        write_ids(tmp_path / f"train.xx-yy.{side}", [torch.IntTensor([*word, 6, *word, 2])])
    task = make_task(tmp_path, target_noise="repeat:1")
    ids = load(task)[0]["target"]
    assert ids.tolist() == [*word, *word, 6, 6, *word, *word, 2]
    assert f"target words are split as: {scheme}" in caplog.text
    whole = "alx" if scheme != "none" else "al"
    assert task.tgt_dict.string(ids, glued) == f"{whole} {whole} b b {whole} {whole}"
    # The flag overrules what the dictionary looks like.
    plain = make_task(tmp_path, target_noise="repeat:1", target_noise_bpe="none")
    assert load(plain)[0]["target"].tolist() == [i for i in [*word, 6, *word] for _ in "12"] + [2]


def test_gpt2_numbers(tmp_path):
    """BART's kind of dictionary: word boundaries are read from encoder.json."""
    pieces = ["hel", "lo", "\u0120hel", "\u0120a", "a", "!", "\u0120"]
    numbers = [str(20_000 + i) for i in range(len(pieces))]
    write_data(tmp_path, numbers)
    rows = [torch.IntTensor([4, 5, 7, 2]), torch.IntTensor([9, 7, 2])]  # "hello a", "! a"
    for side in ("xx", "yy"):
        write_ids(tmp_path / f"train.xx-yy.{side}", rows)
    with pytest.raises(ValueError, match=r"--target-noise-gpt2-encoder.*encoder\.json"):
        make_task(tmp_path, target_noise="shuffle:1")
    make_task(tmp_path)  # without noise nothing is needed
    content = json.dumps({piece: 20_000 + i for i, piece in enumerate(pieces)})
    (tmp_path / "elsewhere.json").write_text(content)
    for fields in ({"target_noise_gpt2_encoder": str(tmp_path / "elsewhere.json")}, {}):
        task = make_task(tmp_path, target_noise="shuffle:1", **fields)
        dataset = load(task)
        assert dataset[0]["target"].tolist() == [8, 6, 5, 2]  # "a hello"
        assert dataset[1]["target"].tolist() == [8, 10, 9, 2]  # "a !", with a piece for the space
        assert dataset.tgt_sizes.tolist() == [4, 4]
        (tmp_path / "encoder.json").write_text(content)


# -- what cannot be combined -----------------------------------------------------------------


@pytest.mark.parametrize("option, value", [("load_alignments", True), ("num_batch_buckets", 3)])
def test_what_cannot_be_combined_is_refused_before_data_are_loaded(data, option, value):
    flag = "--" + option.replace("_", "-")
    with pytest.raises(ValueError, match=f"{flag} {value} cannot be combined with --target-noise"):
        make_task(data[0], target_noise="repeat:1", **{option: value})
    make_task(data[0], **{option: value})  # without noise it is fairseq's own business


def test_without_any_limit_no_target_is_cut(data):
    task = make_task(data[0], target_noise="repeat:1", max_target_positions=0)
    clean = load(make_task(data[0])).tgt_sizes
    assert (load(task).tgt_sizes == 2 * clean - 1).all()  # every word twice, one end symbol
