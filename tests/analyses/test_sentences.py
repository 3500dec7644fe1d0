"""The sentence pairs that models are asked about."""

import pytest

from fairseq_eisl.analyses.sentences import SentencePairs
from fairseq_eisl.data.noisy_targets import NoisyTargetDataset


def test_batches_hold_the_first_pairs_of_like_length(case):
    batches = list(case.pairs.clean())
    assert [len(batch["id"]) for batch in batches] == [5, 5, 2]
    ids = [number for batch in batches for number in batch["id"].tolist()]
    assert sorted(ids) == list(range(12))
    lengths = [batch["target"].size(1) for batch in batches]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("noise", ["shuffle:all", "repeat:0.5", "blank:0.3", "none"])
def test_noise_is_that_of_a_training_on_the_split(case, noise):
    corruption = case.pairs.corruption(noise, seed=3)
    expected = NoisyTargetDataset(case.pairs.pairs, corruption)
    found = case.pairs.corrupted(noise, seed=3)
    assert len(found) == 12
    for item in found:
        assert item["target"].tolist() == expected[int(item["id"])]["target"].tolist()
    changed = [
        a["target"].tolist() != b["target"].tolist() for a, b in zip(found, case.pairs.items)
    ]
    assert any(changed) == (noise != "none")


def test_another_sentences_target(case):
    own = {int(item["id"]): item["target"].tolist() for item in case.pairs.items}
    pad = case.trained.task.target_dictionary.pad()
    seen = []
    for batch in case.pairs.unrelated():
        for number, target in zip(batch["id"].tolist(), batch["target"]):
            tokens = target[target.ne(pad)].tolist()
            assert tokens != own[number] or list(own.values()).count(tokens) > 1
            seen.append(tokens)
    assert sorted(seen) == sorted(own.values())
    with pytest.raises(ValueError, match="2 pairs or more"):
        SentencePairs(case.trained.task, "valid", most=1, batch=5).unrelated()
