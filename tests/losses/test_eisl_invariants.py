"""What must not change EISL: padding, the other sentences of a batch, order, memory layout."""

import importlib

import pytest
import torch

from fairseq_eisl.losses import EISLLoss, eisl_loss
from fairseq_eisl.losses.position_selection import CHOICES, SELECTION_ON
from tests.devices import DEVICES
from tests.losses.eisl_cases import example, prefix_mask
from tests.losses.memory import LargeStorages, saved_for_backward
from tests.tolerances import assert_near

NAN = float("nan")


def losses_and_grad(case, device="cpu", **changes):
    """(B,) losses and the gradient of their sum, with the case's own noise.

    ``changes`` replace tensors of the case (``logits``, ``targets``, masks) or options.
    """
    tensors = {"logits": case.logits, "targets": case.targets, **case.masks}
    tensors["generator"] = case.seeds
    call = {**tensors, **case.options, "reduction": "none", **changes}
    call = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in call.items()}
    logits = call.pop("logits").detach().requires_grad_()
    losses = eisl_loss(logits, call.pop("targets"), **call)
    (grad,) = torch.autograd.grad(losses.sum(), logits)
    return losses.detach(), grad


def rows(case, index):
    """Changes that leave the sentences ``index`` of a case."""
    return {
        "logits": case.logits[index],
        "targets": case.targets[index],
        "output_mask": case.output_mask[index],
        "target_mask": case.target_mask[index],
        "generator": case.seeds[index],
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize("garbage", [NAN, float("inf"), float("-inf"), 50.0])
def test_padding_never_matters(garbage, selection, device):
    """Neither what it holds nor how much of it there is, for value, gradient and noise."""
    case = example(selection=selection)
    losses, grad = losses_and_grad(case, device)
    assert not grad[~case.output_mask].any()
    wide = torch.full((4, 12, 11), garbage, dtype=torch.float64)
    wide[:, :7] = case.logits.masked_fill(~case.output_mask.unsqueeze(2), garbage)
    for pad in (-100, 1, 10**12):
        targets = torch.full((4, 9), pad)
        targets[:, :6] = case.targets.masked_fill(~case.target_mask, pad)
        masks = {"output_mask": prefix_mask([7, 3, 6, 1], 12)}
        masks["target_mask"] = prefix_mask([6, 6, 2, 1], 9)
        same, wide_grad = losses_and_grad(case, device, logits=wide, targets=targets, **masks)
        assert_near(same, losses, torch.float64, "value")
        assert_near(wide_grad[:, :7], grad, torch.float64, "gradient")
        assert not wide_grad[:, 7:].any()


@pytest.mark.parametrize("ignored", [-100, 4])
def test_ignored_targets_are_masked_ones(ignored):
    """As torch's losses have it, in the function and in the module, with and without a mask."""
    case = example(selection="softmax")
    more = {"ignore_index": ignored, "output_mask": case.output_mask}
    real = case.target_mask & case.targets.ne(4)
    real[0, 2] = False  # a gap, across which no n-gram reaches
    targets = case.targets.masked_fill(~real, ignored)
    expected = eisl_loss(
        case.logits,
        targets,
        output_mask=case.output_mask,
        target_mask=real,
        selection="softmax",
        ignore_index=-1,
        reduction="none",
    )
    loss = EISLLoss(selection="softmax", reduction="none", ignore_index=ignored)
    for mask in (None, torch.ones_like(real)):
        given = {**more, "selection": "softmax", "reduction": "none", "target_mask": mask}
        assert torch.equal(eisl_loss(case.logits, targets, **given), expected)
        assert torch.equal(loss(case.logits, targets, case.output_mask, mask), expected)
    nothing = eisl_loss(case.logits.requires_grad_(), torch.full_like(targets, ignored), **more)
    assert nothing.item() == 0 and nothing.requires_grad


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("selection", CHOICES)
def test_a_batch_is_its_singletons(selection, device):
    """Each without its padding; the noise belongs to the sentence's seed."""
    case = example(selection=selection)
    losses, grad = losses_and_grad(case, device)
    for b in range(4):
        alone = rows(case, slice(b, b + 1))
        t, s = int(case.output_mask[b].sum()), int(case.target_mask[b].sum())
        alone["logits"], alone["targets"] = alone["logits"][:, :t], alone["targets"][:, :s]
        alone["output_mask"] = alone["target_mask"] = None
        loss, own_grad = losses_and_grad(case, device, **alone)
        assert_near(loss, losses[b : b + 1], torch.float64, "value")
        assert_near(own_grad, grad[b : b + 1, :t], torch.float64, "gradient")


def test_the_order_of_sentences_does_not_matter():
    case, order = example(selection="gumbel"), torch.tensor([2, 0, 3, 1])
    losses, grad = losses_and_grad(case)
    permuted, permuted_grad = losses_and_grad(case, **rows(case, order))
    assert_near(permuted, losses[order], torch.float64)
    assert_near(permuted_grad, grad[order], torch.float64)


@pytest.mark.parametrize("selection", ["softmax", "uniform", "hard", "sinkhorn", "count"])
def test_moved_words_cost_nothing_where_the_order_does_not_see_them(selection):
    """Unigrams may stand anywhere; a block that moves as a whole keeps its inner bigrams."""
    case = example(selection=selection)
    changes = {"logits": case.logits[:1], "targets": case.targets[:1], "output_mask": None}
    changes |= {"target_mask": None, "generator": None, "weights": None}
    loss = losses_and_grad(case, **changes, ngrams=(1,))[0]
    moved = {**changes, "logits": changes["logits"][:, [3, 1, 6, 0, 2, 5, 4]]}
    assert_near(losses_and_grad(case, **moved, ngrams=(1,))[0], loss, torch.float64)
    moved = {**changes, "targets": changes["targets"][:, [5, 4, 0, 1, 3, 2]]}
    assert_near(losses_and_grad(case, **moved, ngrams=(1,))[0], loss, torch.float64)
    assert not torch.allclose(
        losses_and_grad(case, **moved, ngrams=(2,))[0],
        losses_and_grad(case, **changes, ngrams=(2,))[0],
    )


@pytest.mark.parametrize("selection_on", SELECTION_ON)
@pytest.mark.parametrize(
    "selection", ["gumbel", "softmax", "uniform", "sinkhorn", "count"]
)  # hard is no function
def test_gradcheck(selection, selection_on):
    case = example(selection=selection, selection_on=selection_on)
    logits = case.logits[:3, :, :4].clone().requires_grad_()

    def loss(x):
        targets = case.targets[:3].clamp(min=0) % 4
        masks = {"output_mask": case.output_mask[:3], "target_mask": case.target_mask[:3]}
        return eisl_loss(x, targets, **masks, **case.options, generator=case.seeds[:3])

    assert torch.autograd.gradcheck(loss, logits)


def test_logits_need_not_be_contiguous():
    case = example()
    losses, grad = losses_and_grad(case)
    view = case.logits.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    assert not view.is_contiguous()
    same, same_grad = losses_and_grad(case, logits=view)
    assert_near(same, losses, torch.float64)
    assert_near(same_grad, grad, torch.float64)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_autocast_changes_nothing(dtype, device):
    case = example(dtype)
    losses, grad = losses_and_grad(case, device)
    low = torch.bfloat16 if device == "cpu" else torch.float16
    with torch.autocast(device, dtype=low):
        same, same_grad = losses_and_grad(case, device)
    assert same.dtype == torch.float32 and same_grad.dtype == dtype
    assert torch.equal(losses, same) and torch.equal(grad, same_grad)


def test_a_torch_generator_makes_the_noise_repeatable():
    case = example(selection="gumbel")

    def draw(generator):
        return losses_and_grad(case, generator=generator)[0]

    first = torch.Generator().manual_seed(1)
    value, next_value = draw(first), draw(first)
    assert torch.equal(value, draw(torch.Generator().manual_seed(1)))
    assert not torch.equal(value, next_value)
    assert not torch.equal(value, draw(torch.Generator().manual_seed(2)))
    with torch.random.fork_rng(devices=[]):  # None: torch's own generator
        torch.manual_seed(4)
        value, next_value = draw(None), draw(None)
        torch.manual_seed(4)
        assert torch.equal(value, draw(None)) and not torch.equal(value, next_value)


def test_without_noise_no_random_number_is_drawn():
    """A validation loss must not move the stream that training draws from."""
    case, state = example(selection="softmax"), torch.get_rng_state()
    losses_and_grad(case, generator=None)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("selection", CHOICES)
def test_forward_and_backward_keep_no_second_tensor_of_the_logits_size(selection, monkeypatch):
    module = importlib.import_module("fairseq_eisl.losses.token_log_probs")
    monkeypatch.setattr(module, "_CPU_BLOCK", 1)  # a sentence at a time
    logits = torch.randn(4, 6, 500, requires_grad=True)
    targets, size = torch.randint(500, (4, 5)), logits.numel() * 4
    with LargeStorages(size) as forward:
        loss, saved = saved_for_backward(lambda: eisl_loss(logits, targets, selection=selection))
    assert forward.besides(logits) == 0
    large = [t for t in saved if t.untyped_storage().nbytes() >= size]
    assert [t.data_ptr() for t in large] == [logits.data_ptr()]
    with LargeStorages(size) as backward:
        loss.backward()
    assert backward.besides(logits) == 1  # the gradient itself


def test_the_inputs_are_left_alone():
    case = example(torch.float32)
    before = [t.clone() for t in (case.logits, case.targets, case.output_mask, case.target_mask)]
    losses_and_grad(case)
    after = (case.logits, case.targets, case.output_mask, case.target_mask)
    assert all(map(torch.equal, before, after))
