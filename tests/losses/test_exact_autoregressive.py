"""The exact autoregressive EISL: n-grams conditioned on themselves (App. A.7)."""

import pytest
import torch

from fairseq_eisl.losses import eisl_loss, exact_autoregressive_eisl, reference
from fairseq_eisl.losses.position_selection import SELECTIONS
from tests.devices import DEVICES
from tests.losses.eisl_cases import gumbel_noise, prefix_mask
from tests.tolerances import assert_near

V = 5
OUTPUT_MASK, TARGET_MASK = prefix_mask([4, 3, 0], 4), prefix_mask([5, 2, 3], 5)
SEEDS = torch.tensor([8, 2**50, 3])


def tokens(length: int, seed: int):
    return torch.randint(V, (3, length), generator=torch.Generator().manual_seed(seed))


CANDIDATES, TARGETS = tokens(4, 1), tokens(5, 2)


class Toy:
    """A tiny autoregressive model: logits from the sum of the embedded prefix and the sentence.

    With ``context=False`` the prefix is ignored: position and sentence decide alone.
    """

    def __init__(self, context: bool):
        seed = torch.Generator().manual_seed(3)
        self.place, self.sentence, self.embedding = (
            torch.randn(size, V, generator=seed) for size in (12, 3, V)
        )
        self.context = context
        self.calls = 0

    def __call__(self, tokens, sentences):
        self.calls += 1
        device = tokens.device
        logits = self.place.to(device)[: tokens.size(1)] + self.sentence.to(device)[
            sentences
        ].unsqueeze(1)
        if self.context:
            seen = self.embedding.to(device)[tokens].cumsum(1)
            logits = logits + torch.cat([torch.zeros_like(seen[:, :1]), seen[:, :-1]], 1)
        return logits


OPTIONS = [
    {"ngrams": (1, 2, 3), "weights": (0.5, 0.3, 0.2)},
    {"ngrams": (4,), "normalize": False},  # too long for two sentences: the fallback order
    {"ngrams": (0, -1), "selection_on": "prob", "floor": -2.0},
]


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("device", DEVICES)
def test_it_equals_the_literal_reference(device, options, selection):
    toy = Toy(context=True)
    masks = {"output_mask": OUTPUT_MASK, "target_mask": TARGET_MASK}
    expected = reference.exact_autoregressive_eisl(
        toy,
        CANDIDATES,
        TARGETS,
        **masks,
        **options,
        selection=selection,
        noise=gumbel_noise(SEEDS, 4, 5),
    )
    # Padding of the targets holds what fairseq and transformers put there.
    targets = TARGETS.masked_fill(~TARGET_MASK, -100)
    for batch in (1, 3, 256):
        loss = exact_autoregressive_eisl(
            toy,
            CANDIDATES.to(device),
            targets.to(device),
            **{name: mask.to(device) for name, mask in masks.items()},
            **options,
            selection=selection,
            generator=SEEDS,
            reduction="none",
            batch=batch,
        )
        assert_near(loss, expected, torch.float32)


def test_all_ngrams_of_a_place_share_a_call():
    toy = Toy(context=True)
    exact_autoregressive_eisl(toy, CANDIDATES, TARGETS)
    assert toy.calls == 4
    exact_autoregressive_eisl(toy, CANDIDATES, TARGETS, batch=8)  # 3 x 5 n-grams at each place
    assert toy.calls == 4 + 4 * 2


@pytest.mark.parametrize("selection", SELECTIONS)
def test_without_context_it_equals_the_approximation(selection):
    """If p(y_t) ignores the prefix, one forward over the candidate says it all."""
    toy = Toy(context=False)
    options = {
        "output_mask": OUTPUT_MASK,
        "target_mask": TARGET_MASK,
        "ngrams": (1, 2, 0),
        "selection": selection,
        "generator": SEEDS,
        "reduction": "none",
    }
    exact = exact_autoregressive_eisl(toy, CANDIDATES, TARGETS, **options)
    logits = toy(CANDIDATES, torch.arange(3))
    assert_near(exact, eisl_loss(logits, TARGETS, **options), torch.float32)


def test_with_context_it_does_not_equal_the_approximation():
    toy = Toy(context=True)
    options = {"ngrams": (2,), "selection": "softmax"}
    exact = exact_autoregressive_eisl(toy, CANDIDATES, TARGETS, **options)
    approximate = eisl_loss(toy(CANDIDATES, torch.arange(3)), TARGETS, **options)
    assert abs(exact - approximate) > 0.01


def test_the_candidate_after_the_place_of_the_ngram_does_not_matter():
    """A mask that leaves one place: only the prefix before it is read."""
    toy, options = Toy(context=True), {"ngrams": (2,), "reduction": "none"}
    options["output_mask"] = torch.tensor([[False, True, True, False]] * 3)
    changed = CANDIDATES.clone()
    changed[:, 1:] = (changed[:, 1:] + 1) % V
    exact, same = (
        exact_autoregressive_eisl(toy, candidates, TARGETS, **options)
        for candidates in (CANDIDATES, changed)
    )
    assert torch.equal(exact, same)
    changed[:, 0] = (changed[:, 0] + 1) % V
    assert not torch.equal(exact, exact_autoregressive_eisl(toy, changed, TARGETS, **options))


def test_reductions_gradient_and_no_tokens():
    toy, none = Toy(context=True), torch.zeros(3, 5).bool()
    losses = exact_autoregressive_eisl(toy, CANDIDATES, TARGETS, reduction="none")
    assert not losses.requires_grad
    for reduction in ("sum", "mean"):
        loss = exact_autoregressive_eisl(toy, CANDIDATES, TARGETS, reduction=reduction)
        assert torch.equal(loss, getattr(losses, reduction)())
    assert exact_autoregressive_eisl(toy, CANDIDATES, TARGETS, target_mask=none) == 0
    assert exact_autoregressive_eisl(toy, CANDIDATES[:0], TARGETS[:0]) == 0


@pytest.mark.parametrize(
    "options, words",
    [
        ({"reduction": "average"}, ["reduction='average'", "mean, sum, none"]),
        ({"batch": 0}, ["batch", "1 or more", "0"]),
        ({"selection": "best"}, ["selection='best'", ", ".join(SELECTIONS)]),
        ({"output_mask": OUTPUT_MASK[:2]}, ["output_mask", "(3, 4)", "(2, 4)"]),
        ({"target_mask": TARGET_MASK.long()}, ["target_mask", "boolean", "torch.int64"]),
    ],
)
def test_errors_name_argument_value_and_choices(options, words):
    with pytest.raises(ValueError) as error:
        exact_autoregressive_eisl(Toy(context=True), CANDIDATES, TARGETS, **options)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    "selection, draws", [("softmax", False), ("hard", False), ("gumbel", True)]
)
def test_only_noise_draws_random_numbers(selection, draws):
    state = torch.get_rng_state()
    exact_autoregressive_eisl(
        *(lambda tokens, sentences: torch.zeros(*tokens.shape, 4), torch.ones(1, 3).long()),
        *(torch.ones(1, 3).long(),),
        **{"ngrams": (1,), "selection": selection},
    )
    assert torch.equal(state, torch.get_rng_state()) != draws
