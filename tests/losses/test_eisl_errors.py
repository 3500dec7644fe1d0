"""Bad input of eisl_loss: a ValueError that names the argument, its value and the choices."""

import pytest
import torch

from fairseq_eisl.losses import EISLLoss, EISLOptions, eisl_loss
from tests.devices import DEVICES

NAN, INF = float("nan"), float("inf")
LOGITS, TARGETS = torch.zeros(2, 4, 5), torch.zeros(2, 3).long()

OPTIONS = [
    ({"ngrams": ()}, ["ngrams", "one or more", "()"]),
    ({"ngrams": (1.5,)}, ["ngrams", "integers", "(1.5,)"]),
    ({"ngrams": 2}, ["ngrams", "one or more", "2"]),
    ({"ngrams": (True,)}, ["ngrams", "integers", "True"]),
    ({"weights": 0.5}, ["weights", "3 ngrams", "0.5"]),
    ({"temperature": "1"}, ["temperature", "number", "'1'"]),
    ({"floor": None}, ["floor", "finite", "None"]),
    ({"weights": (1.0,)}, ["weights", "3 ngrams", "not 1", "(1.0,)"]),
    ({"weights": (1.0, -0.5, 1.0)}, ["weights", "not negative", "-0.5"]),
    ({"weights": (1.0, NAN, 1.0)}, ["weights", "finite", "nan"]),
    ({"weights": (1.0, INF, 1.0)}, ["weights", "finite", "inf"]),
    ({"weights": (0.0, 0.0, 0.0)}, ["weights", "not all 0", "(0.0, 0.0, 0.0)"]),
    ({"selection": "best"}, ["selection='best'", "gumbel, softmax, uniform, hard"]),
    ({"selection_on": "logits"}, ["selection_on='logits'", "log_prob, prob"]),
    ({"temperature": 0.0}, ["temperature", "above 0", "0.0"]),
    ({"temperature": -1.0}, ["temperature", "above 0", "-1.0"]),
    ({"temperature": NAN}, ["temperature", "above 0", "nan"]),
    ({"temperature": INF}, ["temperature", "above 0", "inf"]),
    ({"floor": 0.0}, ["floor", "below 0", "0.0"]),
    ({"floor": -INF}, ["floor", "finite", "-inf"]),
    ({"floor": NAN}, ["floor", "finite", "nan"]),
    ({"reduction": "average"}, ["reduction='average'", "mean, sum, none"]),
]

TENSORS = [
    ({"logits": LOGITS[0]}, ["logits", "(B, T, V)", "(4, 5)"]),
    ({"logits": LOGITS.long()}, ["logits", "floating-point", "torch.int64"]),
    ({"targets": TARGETS[0]}, ["targets", "(B, S)", "(3,)"]),
    ({"targets": TARGETS[:1]}, ["targets", "B = 2", "(1, 3)"]),
    ({"targets": TARGETS.int()}, ["targets", "int64", "torch.int32"]),
    ({"targets": TARGETS + 5}, ["targets", "[0, 5)", "5"]),
    ({"targets": TARGETS - 1}, ["targets", "[0, 5)", "target_mask", "-1"]),
    ({"output_mask": torch.ones(2, 3).bool()}, ["output_mask", "(2, 4)", "(2, 3)"]),
    ({"output_mask": torch.ones(2, 4)}, ["output_mask", "boolean", "torch.float32"]),
    ({"target_mask": torch.ones(2, 4).bool()}, ["target_mask", "(2, 3)", "(2, 4)"]),
    ({"target_mask": torch.ones(2, 3).long()}, ["target_mask", "boolean", "torch.int64"]),
    ({"generator": torch.zeros(3).long()}, ["generator", "int64", "(2,)", "(3,)"]),
    ({"generator": torch.zeros(2)}, ["generator", "int64", "torch.float32"]),
]


def check(words, function, *arguments, **options):
    with pytest.raises(ValueError) as error:
        function(*arguments, **options)
    missing = [word for word in words if word not in str(error.value)]
    assert not missing, f"{missing} not in: {error.value}"


@pytest.mark.parametrize("options, words", OPTIONS, ids=lambda value: str(value)[:40])
def test_a_wrong_option_is_named_in_the_error(options, words):
    check(words, eisl_loss, LOGITS, TARGETS, **options)
    check(words, EISLLoss, **options)  # at once, not at the first batch
    if "reduction" not in options:
        check(words, EISLOptions, **options)


@pytest.mark.parametrize("tensors, words", TENSORS, ids=lambda value: str(value)[:40])
def test_tensors_that_do_not_fit_are_named_in_the_error(tensors, words):
    arguments = {"logits": LOGITS, "targets": TARGETS, **tensors}
    check(words, eisl_loss, **arguments)
    check(words, EISLLoss(), **arguments)


@pytest.mark.parametrize("device", DEVICES)
def test_errors_do_not_depend_on_the_device(device):
    """But for ids out of range, which on CUDA would cost a synchronisation to look at."""
    logits, targets = LOGITS.to(device), TARGETS.to(device)
    mask = torch.ones(2, 3, device=device).bool()
    check(["output_mask", "(2, 4)"], eisl_loss, logits, targets, output_mask=mask)


def test_options_are_checked_before_tensors_are_touched():
    check(["selection='best'"], eisl_loss, LOGITS * NAN, TARGETS, selection="best")


def test_options_as_lists_and_tuples_are_the_same():
    assert EISLOptions([1, 2], [0.8, 0.2]) == EISLOptions((1, 2), (0.8, 0.2))
    assert EISLOptions((1, 2)).weights == (0.5, 0.5)
