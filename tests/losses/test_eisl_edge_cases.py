"""EISL at its borders: empty and short sentences, NaN, infinities, one-word vocabularies."""

import math

import pytest
import torch

from fairseq_eisl.losses import eisl_loss
from fairseq_eisl.losses.position_selection import SELECTION_ON, SELECTIONS
from tests.devices import DEVICES
from tests.losses.eisl_cases import example, prefix_mask
from tests.tolerances import assert_near

every_selection = pytest.mark.parametrize("selection", SELECTIONS)
NAN, INF = float("nan"), float("inf")


def logits_of(*shape, device="cpu"):
    seed = torch.Generator().manual_seed(5)
    return torch.randn(shape, generator=seed).to(device).requires_grad_()


@every_selection
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("empty", ["output_mask", "target_mask"])
def test_an_empty_sentence_is_an_attached_zero(empty, device, selection):
    """All padding on one side: zero loss and gradient; the other sentence is as if alone."""
    logits, targets = logits_of(2, 4, 5, device=device), torch.randint(5, (2, 4), device=device)
    mask = {empty: prefix_mask([0, 4], 4).to(device)}
    options = {"selection": selection, "generator": torch.tensor([1, 2]), "reduction": "none"}
    losses = eisl_loss(logits, targets, **mask, **options)
    assert losses[0] == 0 and losses[1] > 0
    (grad,) = torch.autograd.grad(losses.sum(), logits)
    assert not grad[0].any() and grad[1].any() and grad.isfinite().all()
    options["generator"] = torch.tensor([2])
    assert_near(losses[1:], eisl_loss(logits[1:], targets[1:], **options), torch.float32)


@every_selection
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)], ids=str)
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_tensors_without_elements(shape, reduction, selection):
    batch, positions, length = shape
    logits, targets = logits_of(batch, positions, 5), torch.zeros(batch, length).long()
    loss = eisl_loss(logits, targets, selection=selection, reduction=reduction)
    assert loss.shape == ((batch,) if reduction == "none" else ()) and not loss.any()
    loss.sum().backward()
    assert not logits.grad.any()


@every_selection
@pytest.mark.parametrize("positions, length, n", [(2, 5, 2), (5, 2, 2), (1, 5, 1), (3, 3, 3)])
def test_short_sentences_fall_back_to_the_longest_order_that_fits(positions, length, n, selection):
    logits, targets = logits_of(1, positions, 7), torch.randint(7, (1, length))
    options = {"selection": selection, "generator": torch.tensor([4])}
    loss = eisl_loss(logits, targets, ngrams=(4, 5, 6), weights=(2.0, 1.0, 0.5), **options)
    assert_near(loss, 3.5 * eisl_loss(logits, targets, ngrams=(n,), **options), torch.float32)
    # An order without weight stands in for nothing.
    for ngrams in ((4, 1), (4, 0)):
        loss = eisl_loss(logits, targets, ngrams=ngrams, weights=(1.0, 0.0), **options)
        assert_near(loss, eisl_loss(logits, targets, ngrams=(n,), **options), torch.float32)


@every_selection
def test_orders_that_do_not_fit_leave_their_weight_to_the_others(selection):
    logits, targets = logits_of(1, 6, 7), torch.randint(7, (1, 3))
    options = {"selection": selection, "generator": torch.tensor([4])}
    loss = eisl_loss(logits, targets, ngrams=(1, 2, 4), weights=(0.3, 0.1, 0.6), **options)
    same = eisl_loss(logits, targets, ngrams=(1, 2), weights=(0.75, 0.25), **options)
    assert_near(loss, same, torch.float32)


def test_relative_orders_follow_each_sentence():
    case = example(selection="softmax")
    options = {"selection": "softmax", "reduction": "none"}
    losses = eisl_loss(case.logits, case.targets, **case.masks, **options, ngrams=(-1, 0))
    # Targets of 6, 6, 2 and 1 tokens against outputs of 7, 3, 6 and 1.
    for b, ngrams in enumerate([(5, 6), (3,), (1, 2), (1,)]):
        masks = {name: mask[b : b + 1] for name, mask in case.masks.items()}
        one = slice(b, b + 1)
        loss = eisl_loss(case.logits[one], case.targets[one], **masks, **options, ngrams=ngrams)
        assert_near(losses[one], loss, torch.float64)


@every_selection
@pytest.mark.parametrize("selection_on", SELECTION_ON)
def test_nan_at_a_real_position_is_never_a_number(selection, selection_on):
    case = example(selection=selection, selection_on=selection_on)
    logits = case.logits.clone()
    logits[1, 1, 0] = NAN
    logits.requires_grad_()
    options = {**case.masks, **case.options, "generator": case.seeds}
    losses = eisl_loss(logits, case.targets, **options, reduction="none")
    assert losses.isnan().tolist() == [False, True, False, False]
    assert eisl_loss(logits, case.targets, **options).isnan()
    (grad,) = torch.autograd.grad(losses.sum(), logits)
    assert grad[1, 1].isnan().any()
    assert grad[[0, 2, 3]].isfinite().all()


@every_selection
def test_a_position_without_a_distribution_is_never_a_number(selection):
    for row in ([-INF, -INF, -INF], [INF, 0.0, 0.0]):
        logits = torch.zeros(1, 3, 3)
        logits[0, 1] = torch.tensor(row)
        loss = eisl_loss(logits, torch.tensor([[0, 1, 2]]), ngrams=(1,), selection=selection)
        assert loss.isnan()


@every_selection
@pytest.mark.parametrize("selection_on", SELECTION_ON)
@pytest.mark.parametrize("normalize", [True, False])
def test_impossible_tokens_cost_the_floor(selection, selection_on, normalize):
    """-inf logits, as a decoder sets them for banned tokens."""
    logits = torch.zeros(1, 4, 3)
    logits[:, :, 1] = -INF
    logits.requires_grad_()
    options = {"selection": selection, "selection_on": selection_on, "normalize": normalize}
    loss = eisl_loss(logits, torch.tensor([[1, 1]]), ngrams=(2,), floor=-7.0, **options)
    assert loss.item() == pytest.approx(7.0 if normalize else 14.0)
    loss.backward()
    assert not logits.grad.any()
    logits.grad = None
    loss = eisl_loss(logits, torch.tensor([[0, 2]]), ngrams=(1,), **options)
    assert loss.item() == pytest.approx(math.log(2), rel=1e-5)
    loss.backward()
    assert logits.grad.isfinite().all() and not logits.grad[:, :, 1].any()


@every_selection
def test_a_vocabulary_of_one_word(selection):
    logits = logits_of(2, 4, 1)
    loss = eisl_loss(logits, torch.zeros(2, 3).long(), selection=selection)
    assert loss == 0
    loss.backward()
    assert not logits.grad.any()


@every_selection
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_sharp_and_confident_inputs_stay_finite(dtype, selection):
    """Logits near float16's limit and a temperature of 0.01."""
    logits = (logits_of(2, 6, 5).detach() * 2e4).clamp(-6e4, 6e4).to(dtype).requires_grad_()
    targets = torch.randint(5, (2, 6))
    loss = eisl_loss(
        logits, targets, selection=selection, temperature=0.01, normalize=False, ngrams=(1, 6)
    )
    loss.backward()
    assert loss.isfinite() and logits.grad.isfinite().all()


def test_noise_at_a_low_temperature_is_finite_in_half_precision():
    logits = logits_of(64, 30, 4).detach().half().requires_grad_()
    loss = eisl_loss(logits, torch.randint(4, (64, 30)), temperature=0.1, selection="gumbel")
    loss.backward()
    assert loss.isfinite() and logits.grad.isfinite().all()
