"""Values of EISL that are known beforehand: by hand, in closed form, or from cross entropy."""

import math

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.losses import (
    EISLLoss,
    EISLOptions,
    eisl_from_log_probs,
    eisl_logit_terms,
    eisl_loss,
)
from fairseq_eisl.losses.position_selection import SELECTIONS, select_positions
from tests.losses.eisl_cases import example
from tests.tolerances import assert_near

# Three positions, each with probability 1/2 on its own token and 1/4 on the others.
DIAGONAL = torch.tensor([[[2.0, 1, 1], [1, 2, 1], [1, 1, 2]]]).double().div(4).log()
COUNTING = torch.tensor([[0, 1, 2]])
LN2 = math.log(2)


@pytest.mark.parametrize(
    "n, normalize, selection_on, expected",
    [
        # A column has probabilities 1/2, 1/4, 1/4, which are their own softmax:
        # ln 2 / 2 + 2 (2 ln 2) / 4 = 1.5 ln 2.
        (1, True, "log_prob", 1.5 * LN2),
        # g is 1/4 on the diagonal and 1/16 off it: q = 4/5, 1/5.
        (2, False, "log_prob", (4 / 5) * 2 * LN2 + (1 / 5) * 4 * LN2),
        # Half of log g in both places: q = 2/3, 1/3.
        (2, True, "log_prob", (2 / 3) * LN2 + (1 / 3) * 2 * LN2),
        # Softmax of g itself: q is proportional to exp(1/4), exp(1/16).
        (2, False, "prob", 2 * LN2 + 2 * LN2 / (1 + math.exp(3 / 16))),
        # One position is left: cross entropy, of the sentence and of a token.
        (3, False, "log_prob", 3 * LN2),
        (3, True, "log_prob", LN2),
    ],
)
def test_a_diagonal_by_hand(n, normalize, selection_on, expected):
    loss = eisl_loss(
        DIAGONAL,
        COUNTING,
        ngrams=(n,),
        normalize=normalize,
        selection_on=selection_on,
        selection="softmax",
    )
    assert loss.item() == pytest.approx(expected, abs=1e-12)


def test_the_diagonals_published_decimals():
    """The numbers that an independent reading of the authors' code gave."""

    def value(n, **options):
        return eisl_loss(DIAGONAL, COUNTING, ngrams=(n,), selection="softmax", **options).item()

    assert value(1) == pytest.approx(1.039721, abs=1e-6)
    assert value(2, normalize=False) == pytest.approx(1.663553, abs=1e-6)
    assert value(2) == pytest.approx(0.924196, abs=1e-6)
    assert value(2, normalize=False, selection_on="prob") == pytest.approx(2.0147, abs=1e-4)
    assert value(3, normalize=False) == pytest.approx(2.079442, abs=1e-6)
    assert value(3) == pytest.approx(0.693147, abs=1e-6)


@pytest.mark.parametrize("n, expected", [(1, 0.924196), (2, 0.693147)])
def test_padding_by_hand(n, expected):
    """Two tokens and a pad. The authors' code, which has no masks, gives 1.0756 and 0.9882."""
    logits = torch.tensor([[[2.0, 1, 1], [1, 2, 1], [4 / 3] * 3]]).double().log()
    mask = torch.tensor([[True, True, False]])
    loss = eisl_loss(
        logits,
        torch.tensor([[0, 1, 2]]),
        output_mask=mask,
        target_mask=mask,
        ngrams=(n,),
        selection="softmax",
    )
    assert loss.item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("normalize, expected", [(False, 0.924196), (True, 0.4628)])
def test_impossible_tokens_at_the_floor_by_hand(normalize, expected):
    """bos a b eos with the ends known and two open slots, p(a) = p(b) = 1/2.

    The bigrams cost ln 2, 2 ln 2 and ln 2 where they belong, and 20 or more elsewhere.
    """
    known = float("-inf")
    logits = torch.full((1, 4, 4), known).double()
    logits[0, 0, 0] = logits[0, 3, 3] = 0.0
    logits[0, 1:3, 1:3] = 0.0
    loss = eisl_loss(
        logits, torch.arange(4).view(1, 4), ngrams=(2,), selection="softmax", normalize=normalize
    )
    assert loss.item() == pytest.approx(expected, abs=5e-5)


def test_the_gradient_passes_through_the_selection():
    """A column with probabilities 1/2, 1/4, 1/4: d/dS of -sum q S is -q (1 + S - sum q S).

    Detached weights would give -q = -0.5, -0.25, -0.25 instead.
    """
    scores = torch.tensor([0.5, 0.25, 0.25]).double().log().view(1, 3, 1).requires_grad_()
    options = EISLOptions((1,), selection="softmax")
    terms = eisl_from_log_probs(scores, torch.zeros(1, 1, dtype=torch.long), options=options)
    terms.total().sum().backward()
    expected = torch.tensor([-0.6733, -0.1634, -0.1634]).double()
    torch.testing.assert_close(scores.grad.flatten(), expected, rtol=0, atol=5e-5)


def test_below_the_floor_there_is_no_gradient():
    """Log-probabilities of about -25 and -5 in one column: only the second one learns."""
    logits = torch.tensor([[[0.0, -25.0], [0.0, -5.0]]]).double().requires_grad_()
    loss = eisl_loss(logits, torch.tensor([[1]]), ngrams=(1,), selection="uniform")
    loss.backward()
    p = math.exp(-5) / (1 + math.exp(-5))
    assert loss.item() == pytest.approx((20 - math.log(p)) / 2)
    assert logits.grad[0, 0].tolist() == [0.0, 0.0]
    assert logits.grad[0, 1].tolist() == pytest.approx([(1 - p) / 2, (p - 1) / 2])


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("normalize", [True, False])
def test_cross_entropy_is_the_order_of_the_whole_target(selection, normalize):
    """n = T* with T = T*: per-token NLL if normalised, sentence NLL if not. Gradients too."""
    seed = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 5, 9, generator=seed).double().requires_grad_()
    targets = torch.randint(9, (3, 5), generator=seed)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    nll = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none") * mask
    expected = nll.sum(1) / (mask.sum(1) if normalize else 1)
    loss = eisl_loss(
        logits,
        targets,
        output_mask=mask,
        target_mask=mask,
        ngrams=(0,),
        selection=selection,
        normalize=normalize,
        reduction="none",
    )
    assert_near(loss, expected, torch.float64)
    grads = [torch.autograd.grad(value.sum(), logits)[0] for value in (loss, expected)]
    assert_near(*grads, torch.float64)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_model_that_knows_nothing_pays_log_v_a_token(selection):
    logits, targets = torch.zeros(2, 6, 10), torch.randint(10, (2, 4))
    for n in (1, 2, 3):
        loss = eisl_loss(logits, targets, ngrams=(n,), selection=selection)
        assert loss.item() == pytest.approx(math.log(10), rel=1e-5)
        loss = eisl_loss(logits, targets, ngrams=(n,), selection=selection, normalize=False)
        assert loss.item() == pytest.approx(n * math.log(10), rel=1e-5)


def test_one_position_cannot_serve_all_n_grams():
    """Position 0 knows both words; sinkhorn leaves it to one and sends the other on."""
    probs = torch.tensor([[[0.5, 0.5, 0.0], [0.2, 0.1, 0.7], [0.1, 0.2, 0.7]]])
    scores = probs.double().log()[:, :, :2]
    valid = torch.ones(1, 3).bool()
    soft, _ = select_positions(scores, valid, "softmax", temperature=0.3)
    assert soft[0, 0].sum() > 1.8
    shared, entropy = select_positions(scores, valid, "sinkhorn", temperature=0.3)
    assert torch.allclose(shared.sum(1), torch.ones(1, 2).double())
    assert shared[0].sum(1).max() < 1.3 and (entropy > 0).all()
    # What is no n-gram takes no part, and two copies of one are content with one position.
    for multiplicity, same in (([1, 0], [0]), ([2, 2], [0, 1])):
        found, _ = select_positions(
            *(scores, valid, "sinkhorn"),
            temperature=0.3,
            multiplicity=torch.tensor([multiplicity]),
        )
        assert torch.allclose(found[:, :, same], soft[:, :, same])


def test_selections_are_ordered_and_bound_the_loss_of_eq_3():
    """best position <= softmax <= uniform, and -log mean g <= uniform (Jensen)."""
    case = example()
    logits, targets = case.logits[:1], case.targets[:1]
    losses = {
        name: eisl_loss(logits, targets, ngrams=(1,), selection=name).item()
        for name in ("hard", "softmax", "uniform")
    }
    assert losses["hard"] < losses["softmax"] < losses["uniform"]
    scores = logits.log_softmax(2)[0][:, targets[0]]
    assert losses["hard"] == pytest.approx(-scores.max(0).values.mean().item())
    assert losses["uniform"] == pytest.approx(-scores.mean().item())
    assert -scores.exp().mean(0).log().mean().item() < losses["uniform"]


def test_temperature_goes_from_the_best_position_to_all_of_them():
    case = example()

    def value(selection, temperature=1.0):
        options = {"selection": selection, "temperature": temperature}
        return eisl_loss(case.logits, case.targets.clamp(min=0), ngrams=(2,), **options).item()

    assert value("softmax", 1e-3) == pytest.approx(value("hard"), rel=1e-6)
    assert value("softmax", 1e6) == pytest.approx(value("uniform"), rel=1e-4)


def test_reductions():
    case = example(selection="softmax")
    case.target_mask[1] = False
    none, total, mean = (
        eisl_loss(case.logits, case.targets, **case.masks, **case.options, reduction=reduction)
        for reduction in ("none", "sum", "mean")
    )
    assert none.shape == (4,) and total.shape == mean.shape == ()
    assert_near(total, none.sum(), torch.float64)
    assert_near(mean, none.sum() / 4, torch.float64)  # over sentences, the empty one included


def test_orders_and_their_entropy_are_reported():
    """Zero logits: the selection is uniform over T - n + 1 positions, so its entropy is the log."""
    targets = torch.tensor([[0, 1, 2, 0], [1, 0, 0, 0]])
    options = EISLOptions((1, 2), (0.8, 0.2), selection="softmax")
    mask = torch.tensor([[True] * 4, [True] + [False] * 3])
    terms = eisl_logit_terms(torch.zeros(2, 5, 3), targets, target_mask=mask, options=options)
    assert terms.weights.tolist() == [[pytest.approx(0.8), pytest.approx(0.2), 0], [1, 0, 0]]
    expected = [[math.log(5), math.log(4), 0], [math.log(5), 0, 0]]
    torch.testing.assert_close(terms.entropy, torch.tensor(expected))
    expected = [[math.log(3), math.log(3), 0], [math.log(3), 0, 0]]
    torch.testing.assert_close(terms.losses, torch.tensor(expected))
    assert not terms.entropy.requires_grad


def test_the_module_drops_the_noise_in_evaluation():
    case = example()
    arguments = (case.logits, case.targets, case.output_mask, case.target_mask)
    module = EISLLoss(**case.options, reduction="sum")
    assert module(*arguments) != module(*arguments)
    assert torch.equal(module(*arguments, case.seeds), module(*arguments, case.seeds))
    noisy = eisl_loss(
        *arguments[:2], **case.masks, **case.options, generator=case.seeds, reduction="sum"
    )
    assert torch.equal(module(*arguments, case.seeds), noisy)
    quiet = eisl_loss(
        *arguments[:2], **case.masks, **case.options, selection="softmax", reduction="sum"
    )
    assert torch.equal(module.eval()(*arguments), quiet)
    assert EISLLoss(selection="uniform").eval().options.without_noise().selection == "uniform"
