"""Corrupted targets: lengths, determinism, truncation and what stays untouched."""

import logging
import pickle
from random import Random

import numpy as np
import pytest
import torch

pytest.importorskip("fairseq")
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset  # noqa: E402

from fairseq_eisl.data.noisy_targets import NoisyTargetDataset, TargetCorruption  # noqa: E402
from fairseq_eisl.noise import Context, WordUnits, example_rng, parse_noise  # noqa: E402

WORDS = "a b c d e f g h al@@ pha".split()
DICTIONARY = Dictionary()
for word in WORDS:
    DICTIONARY.add_symbol(word)
BOS, PAD, EOS, UNK = (getattr(DICTIONARY, name)() for name in ("bos", "pad", "eos", "unk"))
UNITS = WordUnits(DICTIONARY.symbols, DICTIONARY.nspecial, UNK, "subword_nmt")
NOISES = ["repeat:0.5", "shuffle:all", "synthetic:6", "substitute:0.3,drop:0.3", "insert:0.5"]


def encode(line):
    return DICTIONARY.encode_line(line, add_if_not_exist=False).long()


def corruption(spec, seed=1, max_length=None, blank=UNK):
    return TargetCorruption(parse_noise(spec), UNITS, blank, seed, max_length)


def make_pairs(size=60, longest=12, **options):
    """Pairs of random sentences; the first target is empty, the second one word."""
    rng = Random(3)
    lines = ["", "c"]
    while len(lines) < size:
        line = " ".join(rng.choices(WORDS[:8] + ["al@@ pha"], k=rng.randint(1, longest)))
        lines.append(line)
    sides = []
    for side in (lines, lines[::-1]):
        rows = [encode(line) for line in side]
        sides.append(ListDataset(rows, [len(r) for r in rows]))
    target, source = sides
    return LanguagePairDataset(
        source, source.sizes, DICTIONARY, target, target.sizes, DICTIONARY, **options
    )


def make(spec, resample=False, seed=1, max_length=None, **options):
    return NoisyTargetDataset(
        make_pairs(**options), corruption(spec, seed, max_length), resample=resample
    )


def targets(dataset):
    return [dataset[i]["target"].tolist() for i in range(len(dataset))]


# -- one target ------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [*NOISES, "blank:0.5", "synthetic_released:5"])
def test_noise_of_an_example(spec):
    ids = encode("a al@@ pha b c").tolist()
    vocabulary = UNITS.vocabulary()
    noisy = [corruption(spec)(ids, index) for index in range(50)]
    for index, (result, cut) in enumerate(noisy):
        context = Context((UNK,), vocabulary)
        words = parse_noise(spec)([(4,), (12, 13), (5,), (6,)], example_rng(1, index), context)
        assert result == [i for word in words for i in word] + [EOS] and not cut
    assert len({tuple(result) for result, _ in noisy}) > 10
    assert corruption(spec)(ids, 3, epoch=2) != corruption(spec)(ids, 3, epoch=3)
    assert corruption(spec, seed=2)(ids, 3) != corruption(spec, seed=1)(ids, 3)


@pytest.mark.parametrize("spec", [*NOISES, "blank:1", "drop:1", "synthetic:10"])
def test_special_symbols_stay(spec):
    body = encode("a b al@@ pha")[:-1].tolist()
    for head, tail in (([], [EOS]), ([BOS], [EOS]), ([PAD, BOS], [EOS, PAD, PAD]), ([], [])):
        for index in range(100):
            ids, _ = corruption(spec)(head + body + tail, index)
            inner = ids[len(head) : len(ids) - len(tail)]
            assert ids == head + inner + tail
            assert inner and not {BOS, PAD, EOS} & set(inner)
            assert inner == corruption(spec)(body, index)[0]  # they do not change the noise
            assert all(i != 12 or j == 13 for i, j in zip(inner, inner[1:] + [0]))
    for ids in ([], [EOS], [BOS, EOS], [PAD, PAD]):
        assert corruption(spec)(ids, 0) == (ids, False)


@pytest.mark.parametrize("blank", [BOS, PAD, EOS])
def test_blank_must_be_a_word(blank):
    with pytest.raises(ValueError, match="--target-noise-blank: .*<unk>"):
        corruption("blank:0.1", blank=blank)
    assert corruption("blank:1", blank=4)([5, 6, EOS], 0)[0] == [4, 4, EOS]


# -- truncation ------------------------------------------------------------------------------


def test_truncation_keeps_eos_and_whole_words():
    ids = encode("al@@ pha b al@@ pha").tolist()
    expected = {
        11: "al@@ pha al@@ pha b b al@@ pha al@@ pha",
        10: "al@@ pha al@@ pha b b al@@ pha",
        9: "al@@ pha al@@ pha b b al@@ pha",
        8: "al@@ pha al@@ pha b b",
        6: "al@@ pha al@@ pha b",
    }
    for limit, line in expected.items():
        assert corruption("repeat:1", max_length=limit)(ids, 0) == (
            encode(line).tolist(),
            limit < 11,
        )
    # Too long without noise: fairseq's own treatment (skipped, with a warning) is left alone.
    whole = encode(expected[11]).tolist()
    for limit in (5, 3, 1, 0, None):
        assert corruption("repeat:1", max_length=limit)(ids, 0) == (whole, False)
    limited = corruption("repeat:1", max_length=9)([BOS, *ids], 0)
    assert limited == ([BOS, *encode("al@@ pha al@@ pha b b").tolist()], True)


def test_truncation_is_logged(caplog):
    caplog.set_level(logging.INFO, "fairseq_eisl")
    dataset = make("repeat:1", max_length=14)
    clean = [len(row) for row in make_pairs().tgt]
    cut = sum(2 * n - 1 > 14 >= n for n in clean)
    assert cut > 5
    assert f"{cut} targets outgrew 14 tokens" in caplog.text
    assert "--max-target-positions" in caplog.text
    for length, row in zip(clean, targets(dataset)):
        assert row[-1] == EOS and row.count(EOS) == 1
        assert len(row) <= 14 or length > 14
    caplog.clear()
    make("repeat:1", max_length=100)
    assert "outgrew" not in caplog.text
    tokens = f"{sum(clean):,} -> {2 * sum(clean) - len(clean):,} target tokens in 60 examples"
    assert f"target noise repeat:1, seed 1: {tokens}" in caplog.text


# -- the dataset -----------------------------------------------------------------------------


@pytest.mark.parametrize("spec", NOISES)
@pytest.mark.parametrize("max_length", [None, 10])
def test_sizes_are_the_true_lengths(spec, max_length):
    dataset, pairs = make(spec, max_length=max_length), make_pairs()
    lengths = [len(row) for row in targets(dataset)]
    assert len(dataset) == len(lengths) == 60
    assert dataset.tgt_sizes.tolist() == lengths
    assert dataset.sizes.tolist() == [[s, t] for s, t in zip(pairs.src_sizes.tolist(), lengths)]
    assert [dataset.size(i)[1] for i in range(60)] == lengths
    assert dataset.num_tokens_vec(np.arange(60)).tolist() == [
        max(len(dataset[i]["source"]), lengths[i]) for i in range(60)
    ]
    for batch in dataset.batch_by_size(dataset.ordered_indices(), max_tokens=60):
        sample = dataset.collater([dataset[i] for i in batch])
        assert sample["target"].numel() <= 60
        assert sample["ntokens"] == sum(lengths[i] for i in batch)
    kept, ignored = dataset.filter_indices_by_size(np.arange(60), (100, 8))
    assert ignored == [i for i in range(60) if lengths[i] > 8] and len(kept) + len(ignored) == 60


@pytest.mark.parametrize("spec", NOISES)
def test_noise_is_there_and_only_on_targets(spec):
    dataset, pairs = make(spec), make_pairs()
    assert [dataset[i]["id"] for i in range(60)] == list(range(60))
    assert all(torch.equal(dataset[i]["source"], pairs[i]["source"]) for i in range(60))
    changed = sum(t != pairs[i]["target"].tolist() for i, t in enumerate(targets(dataset)))
    assert changed > 30
    assert dataset[5]["target"].dtype == torch.long
    assert targets(dataset)[0] == [EOS]


def test_options_of_the_pairs_stay():
    options = {
        "left_pad_source": False,
        "left_pad_target": True,
        "input_feeding": False,
        "shuffle": False,
        "append_bos": True,
        "remove_eos_from_source": True,
        "append_eos_to_target": True,
        "src_lang_id": 1,
        "tgt_lang_id": 2,
        "pad_to_multiple": 8,
        "eos": 4,
    }
    dataset = make("shuffle:1", **options)
    assert {name: getattr(dataset, name) for name in options} == options


def test_prev_output_tokens_are_the_shifted_noisy_target():
    dataset = make("repeat:1")
    sample = dataset.collater([dataset[i] for i in (0, 1, 7)])
    prev, target = sample["net_input"]["prev_output_tokens"], sample["target"]
    for before, after in zip(prev.tolist(), target.tolist()):
        after = [i for i in after if i != PAD]
        assert before[: len(after)] == [EOS] + after[:-1]


def by_id(dataset, batches, workers=0):
    """The targets of a data loader's batches, by example."""
    loader = torch.utils.data.DataLoader(
        dataset, batch_sampler=batches, num_workers=workers, collate_fn=dataset.collater
    )
    found = {}
    for sample in loader:
        for i, row in zip(sample["id"].tolist(), sample["target"].tolist()):
            assert i not in found
            found[i] = [t for t in row if t != PAD]
    return [found[i] for i in range(len(dataset))]


@pytest.mark.parametrize("resample", [False, True])
def test_noise_depends_on_the_example_alone(resample):
    """Not on the order, the batch, the workers, or what was read before."""
    dataset = make("synthetic:6,substitute:0.2", resample)
    dataset.set_epoch(2)
    expected = targets(dataset)
    assert [dataset[i]["target"].tolist() for i in reversed(range(60))] == expected[::-1]
    for workers in (0, 1, 3):
        for size in (4, 16):
            order = Random(size).sample(range(60), 60)
            batches = [order[i : i + size] for i in range(0, 60, size)]
            torch.manual_seed(workers)
            np.random.seed(workers)
            assert by_id(dataset, batches, workers) == expected
    assert targets(make("synthetic:6,substitute:0.2", resample, seed=2)) != expected


def test_noise_is_the_same_in_every_epoch_unless_drawn_anew():
    same, fresh = make("repeat:0.5"), make("repeat:0.5", resample=True)
    once = targets(same)
    assert same.can_reuse_epoch_itr_across_epochs
    assert not fresh.can_reuse_epoch_itr_across_epochs  # as the lengths change
    seen = {}
    for epoch in (1, 2, 3, 2, 1):  # coming back to an epoch gives its noise again
        same.set_epoch(epoch)
        fresh.set_epoch(epoch)
        assert targets(same) == once
        rows = targets(fresh)
        assert seen.setdefault(epoch, rows) == rows
        assert fresh.tgt_sizes.tolist() == [len(row) for row in rows]
    assert seen[1] != seen[2] != seen[3] != seen[1]
    resumed = make("repeat:0.5", resample=True)
    resumed.set_epoch(3)
    assert targets(resumed) == seen[3]


def test_pickling():
    """Workers that do not fork receive the dataset pickled."""
    for resample in (False, True):
        dataset = make("repeat:0.5,substitute:0.2,shuffle:2", resample, max_length=10)
        dataset.set_epoch(2)
        copy = pickle.loads(pickle.dumps(dataset))
        assert targets(copy) == targets(dataset)
        copy.set_epoch(5)
        dataset.set_epoch(5)
        assert targets(copy) == targets(dataset)
        assert copy.tgt_sizes.tolist() == dataset.tgt_sizes.tolist()


def test_a_blank_with_a_place_in_the_dictionary_is_no_word_to_substitute():
    (blank,) = UNITS.vocabulary()[0]
    target = [i for (i,) in UNITS.vocabulary()[1:4]] + [EOS]
    corrupt = corruption("substitute:1.0", blank=blank)
    assert not any(blank in corrupt(target, index)[0] for index in range(200))
