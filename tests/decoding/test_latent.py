"""Reading off CTC's slots, and paths through graphs."""

import pytest
import torch

from fairseq_eisl.decoding.latent import ctc_ends, packed, path_of
from fairseq_eisl.losses.reference import dag_paths
from tests.losses.latent.cases import random_links


def read(symbols, blank, length):
    mask = torch.arange(len(symbols)) < length
    ends = ctc_ends(torch.tensor([symbols]), blank, mask.unsqueeze(0))
    return packed(torch.tensor([symbols]), ends, fill=-1)[0][0].tolist()


@pytest.mark.parametrize(
    "symbols, length, expected",
    [
        ([5, 5, 9, 5, 6, 6], 6, [5, 5, 6]),
        ([9, 9, 9], 3, []),
        ([5, 5, 5], 3, [5]),
        ([5, 6, 6, 6], 3, [5, 6]),  # what is behind the end is not looked at
        ([9, 7], 2, [7]),
    ],
)
def test_repeats_are_merged_then_blanks_dropped(symbols, length, expected):
    assert read(symbols, 9, length) == expected


def test_packing():
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    keep = torch.tensor([[False, True, True], [False, False, False]])
    found, there = packed(values, keep, fill=0.0)
    assert found.tolist() == [[2.0, 3.0], [0.0, 0.0]]
    assert there.tolist() == [[True, True], [False, False]]
    assert packed(values[:0], keep[:0], fill=0)[0].shape == (0, 0)


def graph(seed, slots=(6, 4)):
    numbers = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(slots)) < torch.tensor(slots).unsqueeze(1)
    scores = torch.randn(len(slots), max(slots), max(slots), generator=numbers)
    tokens = 2 * torch.randn(len(slots), max(slots), generator=numbers) - 2
    return random_links(2 * scores, mask), tokens.clamp(max=0), mask


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_viterbi_finds_the_best_of_all_paths(seed, penalty):
    links, tokens, mask = graph(seed)
    found = path_of(links, tokens, mask, "viterbi", penalty)
    for b in range(2):
        count = int(mask[b].sum())
        best = max(
            (
                (chance.log() + tokens[b, path].sum()).item() / len(path) ** penalty,
                path,
            )
            for chance, path in dag_paths(links[b, :count, :count])
        )
        assert found[b].nonzero().flatten().tolist() == best[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("search", ["greedy", "lookahead"])
def test_the_other_searches_go_on_vertex_by_vertex(seed, search):
    links, tokens, mask = graph(seed)
    found = path_of(links, tokens, mask, search)
    for b in range(2):
        path, last = [0], int(mask[b].sum()) - 1
        while path[-1] != last:
            scores = links[b, path[-1]] + (tokens[b] if search == "lookahead" else 0)
            path.append(int(scores.argmax()))
        assert found[b].nonzero().flatten().tolist() == path


@pytest.mark.parametrize("search", ["greedy", "lookahead", "viterbi"])
def test_padding_and_small_graphs(search):
    links, tokens, mask = graph(1)
    together = path_of(links, tokens, mask, search)
    alone = path_of(links[1:, :4, :4], tokens[1:, :4], mask[1:, :4], search)
    assert together[1, :4].tolist() == alone[0].tolist() and not together[1, 4:].any()
    one = path_of(torch.full((1, 1, 1), -torch.inf), tokens[:1, :1], mask[:1, :1], search)
    assert one.tolist() == [[True]]
    assert path_of(links[:, :0, :0], tokens[:, :0], mask[:, :0], search).shape == (2, 0)


def test_an_unknown_search_is_refused():
    with pytest.raises(ValueError, match="search='best' is unknown; choose from greedy, look"):
        path_of(*graph(1), "best")
