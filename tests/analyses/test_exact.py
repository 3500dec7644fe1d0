"""The exact value of a model against one forward."""

import pytest
import torch

from fairseq_eisl.analyses.exact import compare, logits_of
from fairseq_eisl.losses import EISLOptions

OPTIONS = EISLOptions((1, 2), selection="softmax")


def test_both_values_and_their_difference(case):
    row = compare(case.trained, case.pairs, OPTIONS, "repeat:0.5")
    number = {key: float(value) for key, value in row.items()}
    difference = number["exact"] - number["approximate"]
    assert number["difference"] == pytest.approx(difference, abs=1e-4)
    assert number["difference_abs"] >= abs(number["difference"]) > 1e-3
    assert -1 <= number["correlation"] <= 1
    assert number["cost_ratio"] == pytest.approx(
        number["exact_ms"] / number["approximate_ms"], rel=1e-3
    )


def test_of_unigrams_one_forward_is_exact(case):
    """A unigram is conditioned on the candidate before it alone."""
    row = compare(case.trained, case.pairs, EISLOptions((1,), selection="softmax"))
    assert float(row["difference_abs"]) < 1e-5
    assert float(row["correlation"]) == pytest.approx(1, abs=1e-4)


def test_the_logits_are_those_of_the_model(case):
    batch = next(case.pairs.clean())
    first = batch["net_input"]["prev_output_tokens"][:, :1]
    rows = torch.tensor([3, 0, 3])
    with torch.no_grad():
        found = logits_of(case.trained, batch, first)(batch["target"][rows], rows)
        expected = case.trained.model(**batch["net_input"])[0][rows]
    real = batch["target"][rows].ne(case.trained.task.target_dictionary.pad())
    assert torch.allclose(found[real], expected[real], atol=1e-4)
