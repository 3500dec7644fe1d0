"""eisl_loss against the literal float64 reference: values and gradients."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings

from fairseq_eisl.losses import (
    EISLOptions,
    eisl_feature_terms,
    eisl_logit_terms,
    eisl_loss,
    reference,
)
from fairseq_eisl.losses.position_selection import CHOICES, SELECTION_ON
from tests.devices import DEVICES
from tests.losses.eisl_cases import Case, cases, example, gumbel_noise
from tests.tolerances import assert_near

# The same cases in every run: a green suite stays green until the code changes.
fixed = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


def whole(logits, targets, output_mask, target_mask, case):
    masks = {"output_mask": output_mask, "target_mask": target_mask}
    options = {"generator": case.seeds, "reduction": "none", **case.options}
    counting = {"word_starts": case.word_starts, "ngram_weights": case.ngram_weights}
    return eisl_loss(logits, targets, **masks, **options, **counting)


def named_terms_arguments(targets, output_mask, target_mask, case):
    masks = {"output_mask": output_mask, "target_mask": target_mask}
    options = {"options": EISLOptions(**case.options), "generator": case.seeds}
    counting = {"word_starts": case.word_starts, "ngram_weights": case.ngram_weights}
    return targets, {**masks, **options, **counting}


def in_place(logits, *rest):
    """As in a training step: the logits are no leaf, and lost after the backward."""
    targets, named = named_terms_arguments(*rest)
    return eisl_logit_terms(logits * 1, targets, **named, in_place=True).total()


def from_features(logits, *rest):
    """The logits as features, of which the output layer makes the logits."""
    targets, named = named_terms_arguments(*rest)
    identity = torch.eye(logits.size(2), dtype=logits.dtype, device=logits.device)
    return eisl_feature_terms(logits, identity, None, targets, **named).total()


VARIANTS = {"whole": whole, "in place": in_place, "from features": from_features}


def agree(case: Case, dtype: torch.dtype, device: str = "cpu"):
    """Every variant's loss of each sentence, and the gradients of a weighted sum of them, are the
    reference's."""
    logits = case.logits.detach().to(dtype).requires_grad_()
    batch, positions, _ = logits.shape
    noise = gumbel_noise(case.seeds, positions, case.targets.size(1))
    counting = {"word_starts": case.word_starts, "ngram_weights": case.ngram_weights}
    rest = {**case.options, "noise": noise, **counting}
    expected = reference.eisl_loss(logits, case.targets, **case.masks, **rest)
    # Unequal weights, so that a gradient in the wrong sentence shows.
    share = torch.arange(1, batch + 1, dtype=torch.float64)
    (grad,) = torch.autograd.grad((expected * share).sum(), logits)

    def move(tensor):
        return None if tensor is None else tensor.detach().to(device)

    compute_dtype = torch.promote_types(dtype, torch.float32)
    masks = move(case.output_mask), move(case.target_mask)
    for name, losses_of in VARIANTS.items():
        ours = move(logits).requires_grad_()
        losses = losses_of(ours, move(case.targets), *masks, case)
        assert losses.dtype == compute_dtype and losses.requires_grad
        assert_near(losses, expected, compute_dtype, f"{name}: value")
        (losses * move(share).to(losses.dtype)).sum().backward()
        assert ours.grad.dtype == dtype
        assert_near(ours.grad, grad, dtype, f"{name}: gradient")


@settings(fixed, max_examples=300)
@given(cases())
def test_value_and_gradient_in_float64(case):
    agree(case, torch.float64)


@settings(fixed, max_examples=100)
@given(cases())
def test_value_and_gradient_in_float32(case):
    agree(case, torch.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("selection_on", SELECTION_ON)
@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str
)
def test_dtypes_and_devices(dtype, selection, selection_on, device):
    # The reference gets the rounded logits, so half precision has no other excuse: its
    # value is held to the tolerance of float32, its gradient to one rounding.
    agree(example(dtype, selection=selection, selection_on=selection_on), dtype, device)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_sinkhorn_counts_equal_n_grams_as_one(n):
    """Few words and sharp scores: n-grams that are equal, or begin alike, want one position."""
    for number in range(10):
        seed = torch.Generator().manual_seed(number)
        logits = torch.randn(2, 7, 2, generator=seed, dtype=torch.float64) * 3
        targets = torch.randint(2, (2, 7), generator=seed)
        options = {"ngrams": (n,), "weights": None, "selection": "sinkhorn", "temperature": 0.3}
        options.update(selection_on="log_prob", floor=-20.0, normalize=True)
        agree(Case(logits, targets, None, None, torch.zeros(2).long(), options), torch.float64)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_shifted_additions_are_the_convolution_with_one_hot_kernels(n, normalize):
    """Eq. 7, read off the implementation through ``uniform``: the mean of the scores."""
    logits = torch.randn(2, 6, 9, generator=torch.Generator().manual_seed(2)).double()
    targets = torch.randint(9, (2, 5), generator=torch.Generator().manual_seed(3))
    scores = reference.one_hot_convolution_scores(logits, targets, n)
    for b in range(2):
        for t in range(6 - n + 1):
            for s in range(5 - n + 1):  # a mask of one window each leaves one score
                at, gram = torch.zeros(1, 6).bool(), torch.zeros(1, 5).bool()
                at[0, t : t + n], gram[0, s : s + n] = True, True
                loss = eisl_loss(
                    logits[b : b + 1],
                    targets[b : b + 1],
                    output_mask=at,
                    target_mask=gram,
                    ngrams=(n,),
                    selection="uniform",
                    normalize=normalize,
                )
                score = scores[b, t, s] / (n if normalize else 1)
                assert_near(-loss, score, torch.float64)
