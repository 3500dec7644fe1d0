"""The hashed random numbers: as good as a stream, and never at the ends of the interval."""

import itertools
import math

import pytest
import torch

from fairseq_eisl.losses import random_numbers
from fairseq_eisl.losses.random_numbers import fold, gumbel, sentence_seeds, uniform
from tests.devices import DEVICES

EULER = 0.5772156649015329
# Seeds are fixed, so these tests pass or fail for good: 5 standard errors are no flake.
SIGMAS = 5.0


def kolmogorov_smirnov(sample: torch.Tensor) -> float:
    """sqrt(n) times the largest distance between the sample's and the uniform distribution.

    Above 1.95 in one of a thousand uniform samples.
    """
    ranked = sample.flatten().double().sort().values
    n = ranked.numel()
    steps = torch.arange(n + 1, dtype=torch.float64) / n
    distance = torch.maximum(steps[1:] - ranked, ranked - steps[:-1]).max()
    return distance.item() * math.sqrt(n)


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """In standard errors of independent samples."""
    pair = torch.stack([a.flatten(), b.flatten()]).double()
    return torch.corrcoef(pair)[0, 1].item() * math.sqrt(a.numel())


# Slices in which a weak hash would show: along each coordinate, and along the seeds.
SAMPLES = {
    "all coordinates": lambda: uniform(torch.arange(20), 100, 100),
    "one sentence": lambda: uniform(torch.tensor([11]), 300, 300),
    "one position": lambda: uniform(torch.tensor([7]), 1, 200_000),
    "one n-gram": lambda: uniform(torch.tensor([7]), 200_000, 1),
    "consecutive seeds": lambda: uniform(torch.arange(200_000), 1, 1),
    "negative seeds": lambda: uniform(-torch.arange(200_000) - 1, 1, 1),
    "seeds of the high half": lambda: uniform(torch.arange(200_000) << 32, 1, 1),
    "orders of a sentence": lambda: uniform(
        torch.cat([fold(torch.tensor([3]), n) for n in range(1, 5000)]), 2, 2
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_uniform_in_distribution(name):
    sample = SAMPLES[name]()
    n = sample.numel()
    assert kolmogorov_smirnov(sample) < 1.95
    sample = sample.double()
    assert abs(sample.mean() - 0.5) < SIGMAS * math.sqrt(1 / 12 / n)
    assert abs(sample.var() - 1 / 12) < SIGMAS * math.sqrt(1 / 180 / n)
    # Low bits as well: the fraction of 1024 u is uniform too.
    assert kolmogorov_smirnov((sample * 1024).frac()) < 1.95


def test_neighbours_are_independent():
    u = uniform(torch.arange(40), 70, 70)
    for seed, t, s in itertools.product((0, 1, 2), repeat=3):
        if seed or t or s:
            shifted = u[seed:, t:, s:]
            base = u[: 40 - seed, : 70 - t, : 70 - s]
            assert abs(correlation(base, shifted)) < SIGMAS, (seed, t, s)
    assert abs(correlation(u[:, 1:, :-1], u[:, :-1, 1:])) < SIGMAS
    # Orders of one sentence, and the two coordinates changed for one another.
    seeds = torch.arange(40)
    for n in (1, 2, 3):
        orders = (uniform(fold(seeds, m), 70, 70) for m in (n, n + 1))
        assert abs(correlation(*orders)) < SIGMAS, n
    assert abs(correlation(u, u.transpose(1, 2).contiguous())) < SIGMAS * math.sqrt(2)


def test_pairs_of_neighbours_fill_the_square():
    """Chi-square over 16 x 16 cells of (u[i], u[i + 1]), in each direction."""
    u = uniform(torch.arange(64), 64, 64)
    for a, b in ((u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u[:, :, 1:], u[:, :, :-1])):
        cells = (a * 16).long() * 16 + (b * 16).long()
        counts = torch.bincount(cells.flatten(), minlength=256).double()
        expected = a.numel() / 256
        chi_square = ((counts - expected) ** 2 / expected).sum().item()
        assert abs(chi_square - 255) < SIGMAS * math.sqrt(2 * 255)


def test_sentences_and_orders_do_not_share_numbers():
    """24 bits and 160,000 draws: chance alone repeats numbers, but no row of them."""
    rows = uniform(torch.arange(10_000), 1, 4).squeeze(1)
    assert len(rows.unique(dim=0)) == 10_000
    rows = uniform(torch.tensor([1]), 10_000, 4).squeeze(0)
    assert len(rows.unique(dim=0)) == 10_000


@pytest.mark.parametrize("device", DEVICES)
def test_a_number_depends_on_its_seed_and_coordinates_alone(device):
    seeds = torch.tensor([5, 2**61, -3])
    small, large = uniform(seeds, 3, 4), uniform(seeds[[2, 0]].to(device), 9, 7).cpu()
    assert small.dtype == torch.float32 and small.shape == (3, 3, 4)
    assert torch.equal(small[[2, 0]], large[:, :3, :4])  # bit by bit, on any device
    assert torch.equal(fold(seeds.to(device), 2).cpu(), fold(seeds, 2))
    assert (fold(seeds, 1) != fold(seeds, 2)).all()


def test_every_number_there_is_lies_inside_the_interval_and_gives_a_finite_gumbel(monkeypatch):
    """Only the upper 23 of a hash's 32 bits are used, so all cases can be tried."""
    monkeypatch.setattr(random_numbers, "fold", lambda seeds: seeds)
    previous = 0.0
    for states in (torch.arange(2**23) << 9).split(2**20):
        u, g = uniform(states), gumbel(states)
        assert 0.0 < u.min() and u.max() < 1.0
        assert u[0] > previous and (u[1:] > u[:-1]).all()
        assert g.isfinite().all() and (g[1:] >= g[:-1]).all()
        previous = u[-1]
    ends = torch.tensor([0, 2**32 - 1])
    assert uniform(ends).tolist() == [2.0**-24, 1 - 2.0**-24]


def test_ten_thousand_draws_over_a_vocabulary_are_finite():
    """10,000 x 32,000 Gumbel numbers, whose extremes and moments are those of the distribution."""
    low, high, total, square, count = math.inf, -math.inf, 0.0, 0.0, 0
    for seeds in torch.arange(10_000).split(1):  # chunks that stay in the cache: 3 times faster
        g = gumbel(seeds, 32_000)
        least, most = torch.aminmax(g)  # NaN, if there is one
        assert math.isfinite(least) and math.isfinite(most)
        low, high = min(low, least.item()), max(high, most.item())
        if seeds[0] % 100 == 0:
            total, square = total + g.double().sum(), square + g.double().square().sum()
            count += g.numel()
    assert -math.log(24 * math.log(2)) <= low < -2.7 and 16 < high <= 24 * math.log(2) + 1e-3
    mean, variance = total / count, square / count - (total / count) ** 2
    assert abs(mean - EULER) < SIGMAS * math.sqrt(math.pi**2 / 6 / count)
    # The fourth central moment of a Gumbel variable is 5.4 squared variances.
    assert abs(variance - math.pi**2 / 6) < SIGMAS * math.sqrt(4.4 / count) * math.pi**2 / 6


def test_the_best_noisy_score_is_a_sample_of_the_softmax():
    """The Gumbel-max theorem, which is what makes the noise a selection of a position."""
    scores = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()
    chosen = (scores.view(4, 1) + gumbel(torch.arange(500), 4, 200)).argmax(1)
    counts = torch.bincount(chosen.flatten(), minlength=4)
    for count, p in zip(counts.tolist(), scores.exp().tolist()):
        n = chosen.numel()
        assert abs(count - n * p) < SIGMAS * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("device", DEVICES)
def test_sentence_seeds(device):
    given = torch.tensor([1, -5, 2**62])
    assert torch.equal(sentence_seeds(given, 3, device).cpu(), given)
    drawn = [
        sentence_seeds(torch.Generator().manual_seed(seed), 1000, device) for seed in (1, 1, 2)
    ]
    assert drawn[0].device.type == device and drawn[0].dtype == torch.int64
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert len(drawn[0].unique()) == 1000
    assert drawn[0].max() > 2**61  # from a wide range, so that seeds hardly ever meet
    assert sentence_seeds(None, 2, device).shape == (2,)


@pytest.mark.parametrize("seeds", [torch.zeros(2).int(), torch.zeros(2), torch.zeros(3).long()])
def test_seeds_of_a_wrong_kind_are_refused(seeds):
    with pytest.raises(ValueError, match="generator: seeds must be int64 of shape \\(2,\\)"):
        sentence_seeds(seeds, 2, "cpu")
