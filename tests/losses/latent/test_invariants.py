"""Padding, batches, dtypes, long outputs and wrong input of losses over latent alignments."""

import pytest
import torch

from fairseq_eisl.losses import EISLOptions, NGramWeights
from fairseq_eisl.losses.latent import (
    ctc_expected_ngrams,
    ctc_ngram_log_probs,
    dag_log_likelihood,
    dag_ngram_log_probs,
    eisl_ctc_terms,
    eisl_dag_terms,
    passing_probabilities,
)
from tests.devices import DEVICES
from tests.losses.latent.cases import Case, case, random_links
from tests.tolerances import assert_near

NAN = float("nan")


def ctc(found: Case, **options):
    chosen = EISLOptions(**{"selection": "softmax", **options})
    terms = eisl_ctc_terms(found.logits, found.targets, found.blank, **found.masks, options=chosen)
    return terms.total()


def dag(found: Case, **options):
    chosen = EISLOptions(**{"selection": "softmax", **options})
    terms = eisl_dag_terms(found.logits, found.links, found.targets, **found.masks, options=chosen)
    return terms.total()


def weighted(kind, found: Case, weights, **options):
    """The loss with weights of n-grams, which go where word_starts go."""
    terms, given = (eisl_ctc_terms, found.blank) if kind is ctc else (eisl_dag_terms, found.links)
    first = (found.targets, given) if kind is ctc else (given, found.targets)
    chosen = EISLOptions(**{"selection": "softmax", **options})
    rest = {**found.masks, "options": chosen, "ngram_weights": weights}
    return terms(found.logits, *first, **rest).total()


both = pytest.mark.parametrize("kind", [ctc, dag], ids=["ctc", "dag"])


@both
@pytest.mark.parametrize("selection", ["softmax", "uniform", "count"])
def test_a_batch_is_its_sentences(kind, selection):
    found = case((9, 5, 1, 4), (6, 2, 3, 0), vocabulary=6)
    together = kind(found, selection=selection)
    alone = torch.cat([kind(found.rows(b), selection=selection) for b in range(4)])
    assert_near(together, alone, torch.float64)
    assert together[3] == 0


@both
@pytest.mark.parametrize("selection", ["softmax", "count"])
def test_each_n_gram_has_its_weight(kind, selection):
    """The loss is a sum over n-grams: each one alone, times its weight."""
    found = case((7, 4), (5, 3), vocabulary=5)
    tokens, pairs = torch.ones(2, 5), torch.rand(2, 4, dtype=torch.float64)
    options = {"ngrams": (2,), "selection": selection}
    alone = []
    for s in range(4):
        one = torch.zeros(2, 4)
        one[:, s] = 1.0
        alone.append(weighted(kind, found, NGramWeights(tokens, one), **options))
    assert_near(torch.stack(alone).sum(0), kind(found, **options), torch.float64)
    expected = (torch.stack(alone, 1) * pairs).sum(1)
    assert_near(
        weighted(kind, found, NGramWeights(tokens, pairs), **options), expected, torch.float64
    )


@both
@pytest.mark.parametrize("garbage", [NAN, torch.inf, 50.0])
def test_padding_never_matters(kind, garbage):
    found = case((7, 4), (5, 2), vocabulary=5)
    expected = kind(found)
    logits = found.logits.masked_fill(~found.output_mask.unsqueeze(2), garbage)
    targets = found.targets.masked_fill(~found.target_mask, -100)
    changed = found._replace(logits=logits.requires_grad_(), targets=targets)
    loss = kind(changed)
    assert_near(loss, expected, torch.float64)
    loss.sum().backward()
    assert logits.grad.isfinite().all() and not logits.grad[~found.output_mask].any()


@both
def test_without_tokens_or_slots_the_loss_is_a_zero_of_the_graph(kind):
    found = case((3, 3), (2, 2))
    none = torch.zeros_like
    for masks in (
        {"target_mask": none(found.target_mask)},
        {"output_mask": none(found.output_mask)},
    ):
        changed = found._replace(logits=found.logits.clone().requires_grad_(), **masks)
        loss = kind(changed)
        assert loss.tolist() == [0.0, 0.0]
        loss.sum().backward()
        assert (changed.logits.grad == 0).all()
    empty = Case(*(part[:0] for part in found))
    assert kind(empty).shape == (0,)


@both
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("selection", ["gumbel", "count"])
def test_float32_at_many_slots(kind, device, selection):
    """256 slots, value and gradient within 1e-4 of float64."""
    exact = case((256, 200), (60, 50), vocabulary=40, scale=2.0)
    results = []
    for dtype in (torch.float64, torch.float32):
        logits = exact.logits.to(device, dtype, copy=True).requires_grad_()
        links = exact.links.clamp(min=-1e4).to(device, dtype).requires_grad_()
        found = Case(logits, links, *(part.to(device) for part in exact[2:]))
        chosen = EISLOptions((1, 2, 3, 4), selection=selection)
        rest = {**found.masks, "options": chosen, "generator": torch.arange(2, device=device)}
        if kind is ctc:
            loss = eisl_ctc_terms(logits, found.targets, found.blank, **rest).total()
        else:
            loss = eisl_dag_terms(logits, links, found.targets, **rest).total()
        loss.sum().backward()
        grads = [logits.grad] + ([links.grad] if kind is dag else [])
        results.append([loss.detach(), *grads])
    for a, b in zip(*results):
        error = (a.double() - b.double()).abs().max() / a.abs().max()
        assert error < 1e-4, error.item()


@both
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(kind, dtype):
    found = case((30, 20), (12, 9), vocabulary=12, dtype=dtype)
    found = found._replace(logits=(found.logits * 8).requires_grad_())
    found = found._replace(links=found.links.clamp(min=-1e4).requires_grad_())
    loss = kind(found)
    assert loss.dtype == torch.float32
    exact = found._replace(logits=found.logits.double(), links=found.links.double())
    assert_near(loss, kind(exact), torch.float32)
    loss.sum().backward()
    assert found.logits.grad.isfinite().all() and found.logits.grad.dtype == dtype
    assert kind is ctc or found.links.grad.isfinite().all()


@both
def test_autocast_changes_nothing(kind):
    found = case((9, 5), (6, 2), vocabulary=6, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(kind(found), kind(found))
        inside = kind(found)
    assert torch.equal(inside, kind(found))


@both
def test_unlikely_words_have_their_probability_in_float32(kind):
    """4-grams of e-60, far below what the dtype holds once a fifth token is added."""
    found = case((6, 6), (4, 4), vocabulary=5, dtype=torch.float32)
    found.logits.fill_(0.0)
    found.logits[..., :3] = -15.0
    loss = kind(found, ngrams=(4,))
    exact = found._replace(logits=found.logits.double(), links=found.links.double())
    assert_near(loss, kind(exact, ngrams=(4,)), torch.float32)
    # The order of the whole target, in float64 whatever comes in.
    long = case((40,), (30,), vocabulary=30, dtype=torch.float32, scale=4.0)
    exact = long._replace(logits=long.logits.double(), links=long.links.double())
    assert_near(kind(long, ngrams=(0,)), kind(exact, ngrams=(0,)), torch.float32)


def test_slots_that_are_sure_are_the_slots_of_any_model():
    """Without blanks and repeats a CTC output is a row of slots, and so is a chain."""
    from fairseq_eisl.losses import eisl_loss

    seed = torch.Generator().manual_seed(1)
    logits = torch.randn(2, 6, 9, generator=seed).double()
    logits[:, ::2, :4], logits[:, 1::2, 4:8] = -1e4, -1e4  # neighbours share no word
    logits[..., 8] = -1e4  # the blank
    targets = torch.randint(4, (2, 5), generator=seed)
    targets[:, ::2] += 4
    mask, targets_mask = torch.ones(2, 6).bool(), torch.ones(2, 5).bool()
    chain = torch.eye(6).roll(1, 1).triu(1).log().double().expand(2, -1, -1)
    # A floor for whole n-grams is none for each token.
    options = {"ngrams": (1, 2, 3), "selection": "softmax", "floor": -1e5}
    expected = eisl_loss(logits, targets, **options, reduction="none")
    found = Case(logits, chain, targets, mask, targets_mask)
    for kind in (ctc, dag):
        assert_near(kind(found, **options), expected, torch.float64)


def test_a_path_passes_some_vertex_last():
    """Rows sum to one, hence all of the probability arrives at the last vertex; in float32, too."""
    mask = torch.arange(256) < torch.tensor([[256], [77]])
    links = random_links(3 * torch.randn(2, 256, 256), mask)
    passed = passing_probabilities(links, mask)
    assert passed[0, -1].item() == pytest.approx(1, abs=1e-5)
    assert passed[1, 76].item() == pytest.approx(1, abs=1e-5) and not passed[1, 77:].any()


def test_counts_add_up_to_the_expected_length():
    """Over a vocabulary that is the target, unigrams are all that there is."""
    found = case((8, 5), (3, 3), vocabulary=4)
    targets = torch.arange(3).expand(2, -1)
    index = torch.arange(4).expand(2, 8, -1)
    probs = found.logits.log_softmax(2).gather(2, index)
    (order,) = ctc_ngram_log_probs(
        probs[:, :, :3], probs[:, :, 3], targets, output_mask=found.output_mask, orders=[1]
    )
    real = order.log_probs.exp() * order.places.unsqueeze(2)
    expected = ctc_expected_ngrams(found.logits.log_softmax(2), 3, output_mask=found.output_mask)
    assert_near(real.sum((1, 2)), expected, torch.float64)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"targets": torch.zeros(2, 9).long()}, r"targets must have shape \(B, S\)"),
        ({"output_mask": torch.ones(2, 3).bool()}, "output_mask must be a boolean tensor"),
        ({"links": torch.zeros(2, 4, 3)}, r"links must have shape \(B, L, L\) = \(2, 4, 4\)"),
        ({"blanks": torch.zeros(2, 3)}, r"blank_log_probs must have shape \(B, L\) = \(2, 4\)"),
        ({"log_probs": torch.zeros(2, 4)}, r"floating-point tensor of shape \(B, L, S\)"),
    ],
)
def test_wrong_shapes_are_refused(changes, words):
    given = {
        "log_probs": torch.zeros(2, 4, 3),
        "links": torch.zeros(2, 4, 4),
        "blanks": torch.zeros(2, 4),
        "targets": torch.zeros(2, 3).long(),
        "output_mask": torch.ones(2, 4).bool(),
        **changes,
    }
    extra, rest = given.pop("blanks"), {"output_mask": given.pop("output_mask"), "orders": [1, 2]}
    links = given.pop("links")
    with pytest.raises(ValueError, match=words):
        if "blanks" in changes:
            list(ctc_ngram_log_probs(given["log_probs"], extra, given["targets"], **rest))
        else:
            list(dag_ngram_log_probs(given["log_probs"], links, given["targets"], **rest))


def test_wrong_ids_and_links_are_refused():
    found = case((3,), (2,))
    with pytest.raises(ValueError, match=r"blank must be an id in \[0, 4\), not 4"):
        eisl_ctc_terms(found.logits, found.targets, 4, **found.masks)
    with pytest.raises(ValueError, match=r"targets must be ids in \[0, 4\)"):
        eisl_dag_terms(found.logits, found.links, found.targets + 4, **found.masks)
    with pytest.raises(ValueError, match="links must have shape"):
        dag_log_likelihood(found.log_probs(), found.links[:, :2], **found.masks)
