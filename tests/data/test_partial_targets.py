"""What a non-autoregressive decoder sees of the target, and that nothing else decides it."""

from collections import Counter
from random import Random

import pytest
import torch

from fairseq_eisl.data.partial_targets import Symbols, partial_target
from tests.toy import NAT_ARCHS, Child, parse

SYMBOLS = Symbols(bos=0, pad=1, eos=2, unk=3)
TARGET = [0, 10, 11, 12, 13, 2]


def draws(kind, full=0.0, target=TARGET, count=4000):
    rng = Random(1)
    return [partial_target(target, kind, full, SYMBOLS, rng) for _ in range(count)]


def test_masks_keep_places_and_cover_at_least_one_word():
    numbers = Counter()
    for seen in draws("random_mask"):
        assert len(seen) == 6 and seen[0] == 0 and seen[-1] == 2
        assert all(s in (3, t) for s, t in zip(seen, TARGET))
        numbers[seen.count(3)] += 1
    # floor(4 U) + 1 is uniform over 1..4, as in fairseq's translation_lev.
    assert sorted(numbers) == [1, 2, 3, 4]
    assert all(abs(n / 4000 - 0.25) < 0.03 for n in numbers.values())


def test_each_word_is_masked_alike():
    places = Counter(i for seen in draws("random_mask") for i, s in enumerate(seen) if s == 3)
    # 2.5 of 4 words on average
    assert set(places) == {1, 2, 3, 4}
    assert all(abs(n / 4000 - 0.625) < 0.03 for n in places.values())


def test_deletion_keeps_the_order_and_a_uniform_number_of_words():
    numbers = Counter()
    for seen in draws("random_delete"):
        assert seen[0] == 0 and seen[-1] == 2
        kept = seen[1:-1]
        assert kept == sorted(kept) and set(kept) <= {10, 11, 12, 13}
        numbers[len(kept)] += 1
    assert sorted(numbers) == [0, 1, 2, 3]
    assert all(abs(n / 4000 - 0.25) < 0.03 for n in numbers.values())


@pytest.mark.parametrize(
    "kind, nothing", [("random_mask", [0, 3, 3, 3, 3, 2]), ("random_delete", [0, 2])]
)
def test_a_share_of_examples_shows_nothing(kind, nothing):
    assert all(seen == nothing for seen in draws(kind, 1.0, count=50))
    share = sum(seen == nothing for seen in draws(kind, 0.5)) / 4000
    assert abs(share - (0.5 + 0.5 / 4)) < 0.03


def test_the_other_kinds():
    assert draws("full_mask", count=1) == [[0, 3, 3, 3, 3, 2]]
    assert draws("no_noise", count=1) == [TARGET]


@pytest.mark.parametrize("kind", ["random_mask", "random_delete", "full_mask", "no_noise"])
@pytest.mark.parametrize("target", [[0, 2], [], [0, 9, 2]])
def test_short_targets(kind, target):
    for seen in draws(kind, 0.5, target, count=20):
        assert [s for s in seen if s in (0, 2)] == [s for s in target if s in (0, 2)]


# -- in batches of the task ----------------------------------------------------------------


def nat_task(toy, arch, *flags):
    from fairseq import tasks

    task = tasks.setup_task(parse(str(toy.bin), "--criterion", "eisl", *flags, arch=arch).task)
    task.load_dataset("train")
    task.load_dataset("valid")
    return task


def shown(task, split="train", epoch=1, seed=1, **options) -> dict:
    """What the decoder sees of each example in an epoch."""
    dataset = task.dataset(split)
    iterator = task.get_batch_iterator(dataset, epoch=epoch, seed=seed, **options)
    rows = {}
    for sample in iterator.next_epoch_itr(shuffle=True):
        for index, row in zip(sample["id"].tolist(), sample["prev_target"].tolist()):
            rows[index] = [t for t in row if t != 1]
    assert len(rows) == len(dataset)
    return rows


@pytest.mark.parametrize("arch", ["cmlm_transformer", "levenshtein_transformer"])
def test_masks_depend_on_seed_epoch_and_example_alone(toy, arch):
    """In a child, which need not wait for its workers to end."""

    def main():
        expected = shown(nat_task(toy, arch), max_sentences=4)
        for options in ({"max_sentences": 16}, {"max_tokens": 60, "num_workers": 3}):
            assert shown(nat_task(toy, arch), **options) == expected, options
        task = nat_task(toy, arch)
        assert shown(task, max_sentences=4, epoch=2) != expected
        assert shown(nat_task(toy, arch), seed=2, max_sentences=4) != expected
        # Validation shows the same in every epoch and for every seed.
        valid = shown(task, "valid", max_sentences=4)
        assert shown(nat_task(toy, arch), "valid", epoch=3, seed=5, max_sentences=7) == valid
        print("compared")

    code, output = Child(main).wait()
    assert code == 0 and "compared" in output, output


@pytest.mark.parametrize("arch", NAT_ARCHS)
def test_batches_have_the_width_of_their_targets(toy, arch):
    task = nat_task(toy, arch)
    for sample in task.get_batch_iterator(task.dataset("valid"), max_sentences=7).next_epoch_itr():
        prev, target = sample["prev_target"], sample["target"]
        assert prev.dtype == torch.int64 and prev[:, 0].eq(0).all()
        if arch != "levenshtein_transformer":
            assert prev.shape == target.shape and prev.eq(1).equal(target.eq(1))
