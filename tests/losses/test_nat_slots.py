"""EISL on the slots of non-autoregressive models: pinning, anchors, special symbols."""

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import SPECIALS, EISLOptions, Slots, reference, slot_terms, token_log_probs
from tests.losses.eisl_cases import gumbel_noise, ngram_weights, options, prefix_mask, word_starts
from tests.tolerances import assert_near

fixed = settings(
    derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
V = 7
ENDS = 2  # the first ids stand for bos and eos


def sentences(lengths, seed: int = 1):
    """Targets ``0 words 1`` of these lengths (tokens), padded with -100; real; special."""
    generator = torch.Generator().manual_seed(seed)
    real = prefix_mask(lengths, max(lengths, default=0))
    targets = torch.randint(ENDS, V, real.shape, generator=generator)
    special = torch.zeros_like(real)
    for row, length in enumerate(lengths):
        if length > 0:
            targets[row, 0], special[row, 0] = 0, True
        if length > 1:
            targets[row, length - 1], special[row, length - 1] = 1, True
    return targets.masked_fill(~real, -100), real, special


@st.composite
def cases(draw):
    lengths = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    seed = draw(st.integers(0, 2**31))
    targets, real, special = sentences(lengths, seed)
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*targets.shape, V, generator=generator, dtype=torch.float64)
    kind = draw(st.sampled_from(["all", "words", "some"]))
    if kind == "all":
        predicted = real
    elif kind == "words":
        predicted = real & ~special
    else:
        predicted = torch.rand(targets.shape, generator=generator) < 0.5
    seeds = torch.randint(2**62, (len(lengths),), generator=generator)
    specials = draw(st.sampled_from(SPECIALS))
    counting = draw(word_starts(*targets.shape)), draw(ngram_weights(*targets.shape))
    return logits * 2, targets, real, predicted, special, specials, draw(options()), seeds, counting


def compare(case, dtype):
    logits, targets, real, predicted, special, specials, chosen, seeds, (starts, weights) = case
    logits = logits.to(dtype).requires_grad_()
    arguments = targets, real, predicted, special, specials
    noise = gumbel_noise(seeds, targets.size(1), targets.size(1))
    rest = {**chosen, "noise": noise, "counting": (starts, weights)}
    expected = reference.slot_loss(logits, *arguments, **rest)
    share = torch.arange(1, targets.size(0) + 1, dtype=torch.float64)
    (grad,) = torch.autograd.grad((expected * share).sum(), logits)
    slots = Slots(targets, real, predicted, special, starts, weights)
    options = EISLOptions(**chosen)
    losses = slot_terms(logits, slots, specials=specials, options=options, generator=seeds).total()
    assert_near(losses, expected, dtype, "value")
    (losses * share.to(dtype)).sum().backward()
    assert_near(logits.grad, grad, dtype, "gradient")


@settings(fixed, max_examples=200)
@given(cases())
def test_value_and_gradient_equal_the_reference_in_float64(case):
    compare(case, torch.float64)


@settings(fixed, max_examples=60)
@given(cases())
def test_value_and_gradient_equal_the_reference_in_float32(case):
    compare(case, torch.float32)


@pytest.mark.parametrize("normalize, mean", [(False, 0.924196), (True, 0.462825)])
def test_a_pinned_sentence_has_the_worked_out_value(normalize, mean):
    """bos a b eos with the inner slots predicted, p(a) = p(b) = 1/2 in both, 2-grams.

    Sums of log-probabilities: (bos a) fits at slot 0 with ln 1/2 and elsewhere at most
    at the floor; (a b) at slot 1 with 2 ln 1/2; (b eos) at slot 2 with ln 1/2. Each
    position selection is all but certain, so the costs are 0.6931, 1.3863, 0.6931.
    Averaged over n, the floor of 20 / 2 leaks e^-10 of the selection's weight.
    """
    targets = torch.tensor([[0, 2, 3, 1]])
    logits = torch.full((1, 4, V), -200.0, dtype=torch.float64)
    logits[:, :, 2:4] = 0.0
    special = torch.tensor([[True, False, False, True]])
    chosen = EISLOptions((2,), selection="softmax", normalize=normalize)
    real = torch.ones_like(special)
    terms = slot_terms(logits, Slots(targets, real, ~special, special), options=chosen)
    assert terms.total().item() == pytest.approx(mean, abs=2e-4)
    if not normalize:
        assert terms.total().item() == pytest.approx(4 / 3 * math.log(2), abs=1e-6)
    assert terms.anchors.item() == 0 and terms.share.item() == 1


def test_anchored_symbols_get_cross_entropy_at_their_own_slot():
    targets, real, special = sentences([4, 5], seed=3)
    logits = torch.randn(2, 5, V, dtype=torch.float64)
    chosen = EISLOptions((1, 2), selection="softmax")
    terms = slot_terms(logits, Slots(targets, real, real, special), options=chosen)
    log_probs = logits.log_softmax(2)
    for row, length in enumerate([4, 5]):
        nll = -log_probs[row, 0, 0] - log_probs[row, length - 1, 1]
        assert_near(terms.anchors[row], nll / length, torch.float64)
        assert terms.share[row].item() == pytest.approx((length - 2) / length)
        # The words are those of the sentence without its ends.
        inner = slice(1, length - 1)
        everything = torch.ones(1, length - 2, dtype=torch.bool)
        words = slot_terms(
            logits[row : row + 1, inner],
            Slots(targets[row : row + 1, inner], everything, everything, ~everything),
            specials="include",
            options=chosen,
        )
        assert_near(terms.eisl.total()[row], words.total()[0], torch.float64)


@pytest.mark.parametrize("specials", SPECIALS)
def test_observed_and_padded_slots_get_no_gradient_whatever_they_hold(specials):
    targets, real, special = sentences([6, 4], seed=5)
    predicted = torch.zeros_like(real)
    predicted[0, 2:4] = predicted[1, 1:3] = True
    chosen = EISLOptions((1, 2, 3), selection="softmax")

    def gradient(fill: float):
        torch.manual_seed(1)
        logits = torch.randn(2, 6, V, dtype=torch.float64)
        logits = logits.masked_fill(~predicted.unsqueeze(2), fill).requires_grad_()
        slots = Slots(targets, real, predicted, special)
        loss = slot_terms(logits, slots, specials=specials, options=chosen).total()
        loss.sum().backward()
        return loss.detach(), logits.grad

    (loss, grad), (other, other_grad) = gradient(0.0), gradient(float("nan"))
    assert torch.isfinite(loss).all() and torch.equal(loss, other)
    assert torch.equal(grad, other_grad)
    assert (grad[~predicted] == 0).all() and (grad[predicted].abs().sum(1) > 0).all()


@pytest.mark.parametrize("specials", SPECIALS)
@pytest.mark.parametrize("selection", ["gumbel", "softmax"])
def test_padding_and_the_order_of_the_batch_change_nothing(specials, selection):
    lengths = [6, 4, 2, 5]
    targets, real, special = sentences(lengths, seed=7)
    logits = torch.randn(4, 6, V, generator=torch.Generator().manual_seed(2)).double()
    predicted = torch.rand(4, 6, generator=torch.Generator().manual_seed(4)) < 0.6
    seeds = torch.tensor([5, 6, 7, 2**50])
    chosen = EISLOptions((1, 2, 4), selection=selection)

    def loss(rows, width=6):
        index = torch.tensor(rows)
        pad = (0, max(0, width - 6))
        arguments = [
            torch.nn.functional.pad(x[index], pad, value=value)[:, :width]
            for x, value in ((targets, 1), (real, False), (predicted, True), (special, True))
        ]
        scores = torch.nn.functional.pad(logits[index], (0, 0, *pad), value=3.0)[:, :width]
        options = {"specials": specials, "options": chosen, "generator": seeds[index]}
        return slot_terms(scores, Slots(*arguments), **options).total()

    whole = loss([0, 1, 2, 3])
    assert_near(loss([0, 1, 2, 3], 9), whole, torch.float64, "padding")
    assert_near(loss([3, 1, 0, 2]), whole[[3, 1, 0, 2]], torch.float64, "order")
    for row, length in enumerate(lengths):
        assert_near(loss([row], length)[0], whole[row], torch.float64, f"sentence {row} alone")


def test_only_ngrams_with_a_predicted_token_count():
    """a b c d e with only the last predicted: of four 2-grams one is left."""
    targets = torch.tensor([[2, 3, 4, 5, 6]])
    real = torch.ones(1, 5, dtype=torch.bool)
    predicted = torch.tensor([[False, False, False, False, True]])
    logits = torch.randn(1, 5, V, dtype=torch.float64)
    chosen = EISLOptions((2,), selection="softmax", normalize=False)
    slots = Slots(targets, real, predicted, ~real)
    loss = slot_terms(logits, slots, specials="include", options=chosen).total()
    own = -token_log_probs(logits, targets)[0, 4, 4]
    # (d e) at slot 3 costs the NLL of e; elsewhere at least the floor, hence not chosen.
    assert loss.item() == pytest.approx(own.item(), abs=1e-6)


def test_without_a_predicted_token_the_loss_is_a_zero_of_the_graph():
    targets, real, special = sentences([4, 0], seed=9)
    for predicted in (torch.zeros_like(real), ~real):
        logits = torch.randn(2, 4, V, requires_grad=True)
        terms = slot_terms(logits, Slots(targets, real, predicted, special))
        loss = terms.total()
        assert loss.tolist() == [0.0, 0.0] and loss.requires_grad
        loss.sum().backward()
        assert (logits.grad == 0).all()


def test_gradcheck():
    targets, real, special = sentences([5, 3], seed=11)
    predicted = real & (torch.rand(2, 5, generator=torch.Generator().manual_seed(1)) < 0.7)
    logits = torch.randn(2, 5, V, dtype=torch.float64, requires_grad=True)
    chosen = EISLOptions((1, 2, 0), selection="softmax")
    for specials in SPECIALS:
        torch.autograd.gradcheck(
            lambda x, specials=specials: slot_terms(
                x, Slots(targets, real, predicted, special), specials=specials, options=chosen
            ).total(),
            logits,
        )


def test_wrong_input_is_refused():
    targets, real, special = sentences([4, 3])
    logits = torch.zeros(2, 4, V)
    with pytest.raises(ValueError, match="'anchors' is unknown; choose from anchor, include"):
        slot_terms(logits, Slots(targets, real, real, special), specials="anchors")
    with pytest.raises(ValueError, match=r"logits must have shape \(B, T, V\)"):
        slot_terms(logits[:, :3], Slots(targets, real, real, special))
    with pytest.raises(ValueError, match="predicted must be a boolean tensor"):
        slot_terms(logits, Slots(targets, real, real.long(), special))
    with pytest.raises(ValueError, match="targets must be ids in"):
        slot_terms(logits, Slots(targets.clamp(min=0) + V, real, real, special))
