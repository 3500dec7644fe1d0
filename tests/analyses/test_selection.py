"""Where the position selection puts its mass."""

import json

import pytest
import torch

from fairseq_eisl.analyses.outputs import Output
from fairseq_eisl.analyses.selection import example_of, outputs, selected, true_places
from fairseq_eisl.decoding import Candidates
from fairseq_eisl.losses import EISLOptions, eisl_from_log_probs, ngram_positions
from fairseq_eisl.losses.position_selection import SELECTIONS

SYMBOLS = list("abcdefgh")
SOFTMAX = EISLOptions(selection="softmax")


def output(candidate, target, sharp: float) -> Output:
    """A model that says the candidate, ``sharp`` times as loud as anything else."""
    tokens, targets = torch.tensor([candidate]), torch.tensor([target])
    logits = sharp * torch.nn.functional.one_hot(tokens, len(SYMBOLS)).float()
    mask = torch.ones_like(tokens, dtype=torch.bool)
    found = Candidates(tokens, tokens, mask)
    return Output(logits.log_softmax(2), found, targets, torch.ones_like(targets).bool())


def columns(n, sharp, candidate=(0, 1, 2, 3), target=(2, 3, 0, 1)):
    batches = iter([(output(list(candidate), list(target), sharp), torch.tensor([7]))])
    return selected(batches, n, SOFTMAX, 7, SYMBOLS)


def test_a_sure_model_is_right_and_a_flat_one_no_better_than_chance():
    for n, known in ((1, 1), (2, 2 / 3)):
        sure, flat = columns(n, sharp=50.0), columns(n, sharp=0.0)
        assert float(sure["agreement"]) == 1 and float(sure["mass"]) == pytest.approx(1, abs=1e-4)
        assert flat["mass"] == flat["chance"] == sure["chance"]
        assert float(flat["mass"]) == pytest.approx(1 / (5 - n), abs=1e-4)
        assert float(sure["known"]) == pytest.approx(known, abs=1e-4)
        assert sure["ngrams"] == 5 - n


def test_every_place_that_says_the_ngram_is_true():
    found = true_places(output([0, 1, 0, 1], [0, 1, 2, 0], 1.0), 2)
    assert found[0].T.int().tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_the_example_is_the_matrix_of_the_row():
    found = columns(2, sharp=50.0)
    assert json.loads(found["example_target"]) == ["c", "d", "a", "b"]
    assert json.loads(found["example_candidate"]) == ["a", "b", "c", "d"]
    weights = json.loads(found["example_weights"])  # n-grams by places
    assert weights[0] == [0, 0, 1] and weights[2] == [1, 0, 0]
    assert json.loads(found["example_truth"]) == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_without_known_ngrams_there_is_no_agreement():
    found = columns(1, sharp=1.0, target=(4, 5))
    assert found["agreement"] == found["mass"] == "" and float(found["known"]) == 0


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_weights_are_those_of_the_loss(selection):
    generator = torch.Generator().manual_seed(4)
    log_probs = -torch.rand(3, 5, 6, generator=generator) * 4
    targets = torch.randint(3, (3, 6), generator=generator)
    masks = {
        "output_mask": torch.arange(5).lt(torch.tensor([[5], [3], [4]])),
        "target_mask": torch.arange(6).lt(torch.tensor([[6], [6], [2]])),
    }
    seeds = torch.tensor([1, 2, 3])
    options = EISLOptions((2,), selection=selection)
    terms = eisl_from_log_probs(log_probs, targets, **masks, options=options, generator=seeds)
    found = ngram_positions(log_probs, targets, 2, **masks, options=options, generator=seeds)
    losses = -(found.weights * found.scores).sum((1, 2)) / found.grams.sum(1)
    assert torch.allclose(losses, terms.losses[:, 0], atol=1e-6)
    sums = found.weights.sum(1)[found.grams]
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
    assert not found.weights.masked_select(~found.places.unsqueeze(2)).any()


@pytest.mark.parametrize("n", [0, 4])
def test_an_order_that_fits_nowhere_is_refused(n):
    with pytest.raises(ValueError, match="n must be between 1 and 3"):
        ngram_positions(torch.zeros(1, 3, 5), torch.zeros(1, 5, dtype=torch.long), n)


def test_the_clean_target_as_candidate_says_all_that_noise_leaves_whole(case):
    pairs, symbols = case.pairs, case.trained.task.target_dictionary.symbols
    example = example_of(pairs, "shuffle:2", 1, None)
    for candidate in ("target", "greedy"):
        batches = outputs(case.trained, pairs, "shuffle:2", 1, candidate)
        found = selected(batches, 1, SOFTMAX, example, symbols)
        assert (float(found["known"]) == 1) == (candidate == "target")
    tokens = sum(len(item["target"]) for item in pairs.items)
    assert found["ngrams"] == tokens
    with pytest.raises(ValueError, match="there are the pairs 0 to 11"):
        example_of(pairs, "none", 1, 99)


def test_the_example_has_ngrams_of_the_longest_order(case):
    lengths = {int(item["id"]): len(item["target"]) for item in case.pairs.items}
    order = max(lengths.values())
    assert lengths[example_of(case.pairs, "none", 1, None, order)] == order
    short = min(lengths, key=lengths.get)
    assert lengths[short] < order
    with pytest.raises(ValueError, match=f"{lengths[short]} tokens, too few for --ngram {order}"):
        example_of(case.pairs, "none", 1, short, order)
    assert example_of(case.pairs, "none", 1, None, order + 1) in lengths  # none has any
