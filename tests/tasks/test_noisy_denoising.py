"""Denoising whose sources get noise on whole words, beside fairseq's masks."""

import subprocess
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_eisl.tasks.noisy_denoising import NoisyDenoisingConfig, NoisyDenoisingTask
from tests.toy import CPU, TINY, USER_DIR, run_cli

WORDS = ["▁one", "▁two", "▁th", "ree", "▁four", "▁five", "▁s", "ix", "▁seven"]
LINES = ["▁one ▁two ▁th ree ▁four ▁five ▁s ix ▁seven", "▁s ix ▁th ree", "▁one"] * 20


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mono")
    (folder / "text").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    command = ["fairseq-preprocess", "--only-source", "--trainpref", str(folder / "text")]
    command += ["--validpref", str(folder / "text"), "--destdir", str(folder / "bin")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "bin"


def task_of(data, noise, **options):
    flags = {"mask": 0.0, "mask_random": 0.0, "insert": 0.0, "rotate": 0.0, "seed": 1}
    flags.update(permute_sentences=0.0, replace_length=1, mask_length="span-poisson")
    flags.update(poisson_lambda=3.0, bpe=None, shorten_method="none", dataset_impl=None)
    flags.update(shorten_data_split_list="", sample_break_mode="eos", tokens_per_sample=64)
    flags.update(source_noise_seed=1, source_noise_bpe="auto", source_noise=noise)
    cfg = SimpleNamespace(**{**flags, "data": str(data), "shuffle_instance": False, **options})
    return NoisyDenoisingTask(cfg, Dictionary.load(str(data / "dict.txt")))


def pairs(task, epoch=1, split="train"):
    if split not in task.datasets:
        task.load_dataset(split)
    dataset = task.datasets[split]
    dataset.set_epoch(epoch)
    names = task.dictionary.symbols
    for i in range(len(dataset)):
        item = dataset[i]
        yield [[names[t] for t in item[side].tolist()[1:-1]] for side in ("source", "target")]


def words(pieces):
    return "".join(pieces).split("▁")[1:]


def test_words_stay_whole_and_targets_clean(data):
    moved = 0
    for (source, target), line in zip(pairs(task_of(data, "shuffle:all")), LINES):
        assert target == line.split()
        assert sorted(words(source)) == sorted(words(target))
        moved += words(source) != words(target)
    assert moved > 20


def test_a_mask_is_a_word_of_its_own(data):
    """Beside stock denoising with the same masks; pieces behind a mask go with it."""

    def masked(noise):
        found = pairs(task_of(data, noise, mask=0.3))
        return ["".join(source).replace("<mask>", "▁<mask>") for source, _ in found]

    plain, noisy = masked("none"), masked("shuffle:all")
    assert sum(text.count("<mask>") for text in plain) > 20
    for one, other in zip(plain, noisy):
        assert sorted(words(one)) == sorted(words(other))
    assert plain != noisy


def test_noise_is_of_seed_example_and_epoch(data):
    def sources(*more, **options):
        return [source for source, _ in pairs(task_of(data, "shuffle:all", **options), *more)]

    assert sources() == sources()
    assert sources() != sources(2)
    assert sources() != sources(source_noise_seed=2)
    assert [len(s) for s in sources()] == [len(line.split()) for line in LINES]


def test_without_noise_it_is_stock_denoising(data):
    task = task_of(data, "none")
    assert all(source == target for source, target in pairs(task))


def test_masks_are_of_seed_example_and_epoch(data):
    """Whatever has been drawn before and in whichever process: fairseq's own are of torch's
    generator, which every sentence moves on."""

    def sources(epoch=1, order=1, **options):
        task = task_of(data, "none", mask=0.3, **options)
        task.load_dataset("valid")
        dataset = task.datasets["valid"]
        dataset.set_epoch(epoch)
        ids = range(len(dataset))[::order]
        return {i: dataset[i]["source"].tolist() for i in ids}

    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = sources()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert one == sources() == sources(order=-1)
    assert one != sources(epoch=2) and one != sources(seed=2)
    task = task_of(data, "none", mask=0.3)
    for epoch in (1, 2, 1):  # by workers that outlive an epoch
        itr = task_itr(task, epoch)
        found = {int(i): s.tolist() for batch in itr for i, s in unpadded(batch)}
        assert found == sources(epoch)


def task_itr(task, epoch):
    if "valid" not in task.datasets:
        task.load_dataset("valid")
    dataset = task.datasets["valid"]
    dataset.set_epoch(epoch)
    if not hasattr(task, "loader"):
        task.loader = torch.utils.data.DataLoader(
            dataset, batch_size=7, num_workers=2, collate_fn=list, persistent_workers=True
        )
    return task.loader


def unpadded(batch):
    return [(item["id"], item["source"]) for item in batch]


def test_the_mask_is_no_word_to_put_in(data):
    """The dictionary gets it behind its words."""
    task = task_of(data, "insert:1")
    assert task.dictionary.index("<mask>") != task.dictionary.unk()
    sources = [source for epoch in range(8) for source, _ in pairs(task, epoch)]
    assert sum(map(len, sources)) > 3000 and not any("<mask>" in source for source in sources)


def test_a_list_of_noises_is_as_good_as_commas(data):
    task = task_of(data, ["shuffle:3", "drop:0.1"])
    assert list(pairs(task)) == list(pairs(task_of(data, "shuffle:3,drop:0.1")))


def test_an_idle_seed_is_said(data, caplog):
    task_of(data, "none", source_noise_seed=2)
    assert "--source-noise-seed: no effect without --source-noise" in caplog.text
    caplog.clear()
    task_of(data, "none")
    assert not caplog.text


@pytest.mark.parametrize(
    ("noise", "options", "message"),
    [
        ("shufle:3", {}, "--source-noise"),
        ("shuffle:3", {"source_noise_bpe": "gpt2"}, "--source-noise-bpe gpt2"),
    ],
)
def test_wrong_flags_are_named(data, noise, options, message):
    with pytest.raises(ValueError, match=message):
        task_of(data, noise, **options)


def test_it_trains(data, tmp_path):
    """And the words after --source-noise reach a checkpoint that resumes."""
    assert NoisyDenoisingConfig().source_noise == "none"
    words = ["--user-dir", USER_DIR, *CPU, *TINY, "--task", "noisy_denoising", "--seed", "1"]
    words += ["--arch", "bart_base", "--max-source-positions", "64", "--mask", "0.3"]
    words += ["--max-target-positions", "64", "--optimizer", "adam", "--lr", "0.005"]
    words += ["--mask-length", "span-poisson", "--replace-length", "1", "--max-tokens", "200"]
    words += ["--sample-break-mode", "eos", "--tokens-per-sample", "64"]
    words += ["--source-noise", "shuffle:3,drop:0.1", "--save-dir", str(tmp_path)]
    words += ["--share-all-embeddings", "--required-batch-size-multiple", "1"]
    code, output = run_cli("fairseq-train", str(data), *words, "--max-epoch", "2")
    assert code == 0, output[-2000:]
    state = torch.load(tmp_path / "checkpoint_last.pt", weights_only=False)
    assert state["cfg"]["task"]["source_noise"] == "shuffle:3,drop:0.1"
