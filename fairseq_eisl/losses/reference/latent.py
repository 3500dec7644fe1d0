"""EISL and likelihood over latent alignments, by enumeration of everything that may be said.

CTC: all V^L ways to fill L slots, each read as a human would (merge repeats, drop blanks). Directed
acyclic decoders: all paths from the first vertex to the last. For a handful of slots only.
"""

import itertools
from collections import defaultdict
from typing import Any, Dict, Iterator, List, Tuple

import torch
from torch import Tensor

from .sentence import Options, log_softmax, raised, sentence_loss, truth

Said = List[Tuple[int, int]]
"""Pairs of a slot and the word that it says; of a run of slots that are merged, the last one."""


def ctc_outputs(logits: Tensor, blank: int) -> Iterator[Tuple[Tensor, Said]]:
    """Every way to fill the slots of (L, V) logits: its probability, and what is read.

    >>> even = torch.zeros(2, 2)
    >>> [(p.item(), said) for p, said in ctc_outputs(even, 1)]
    [(0.25, [(1, 0)]), (0.25, [(0, 0)]), (0.25, [(1, 0)]), (0.25, [])]
    """
    probs = [log_softmax(row.double()).exp() for row in logits]
    for filled in itertools.product(range(logits.size(1)), repeat=len(probs)):
        chance = torch.ones((), dtype=torch.float64)
        for row, symbol in zip(probs, filled):
            chance = chance * row[symbol]
        ends = [t for t in range(len(filled)) if filled[t : t + 1] != filled[t + 1 : t + 2]]
        yield chance, [(t, filled[t]) for t in ends if filled[t] != blank]


def dag_paths(links: Tensor) -> Iterator[Tuple[Tensor, List[int]]]:
    """Every path through (L, L) log-probabilities of transitions: its probability, its vertices."""
    last, probs = len(links) - 1, links.double().exp()
    for count in range(last):
        for between in itertools.combinations(range(1, last), count):
            path, chance = [0, *between, last], torch.ones((), dtype=torch.float64)
            for t, u in zip(path, path[1:]):
                chance = chance * probs[t, u]
            yield chance, path
    if last == 0:
        yield torch.ones((), dtype=torch.float64), [0]


def ctc_eisl_loss(
    logits: Tensor,
    targets: Tensor,
    blank: int,
    output_mask: Tensor,
    target_mask: Tensor,
    **options: Any,
) -> Tensor:
    """(B,) float64 EISL of CTC slots; options as the implementation's.

    Shapes: logits (B, L, V), targets (B, S), masks (B, L) and (B, S).
    """
    chosen, losses = Options(**options), []
    for b in range(len(targets)):
        at = truth(output_mask, b, logits.size(1))
        found: Dict[Any, Any] = defaultdict(float)
        for chance, said in ctc_outputs(logits[b, : sum(at)], blank):
            for n in range(1, len(said) + 1):
                for i in range(len(said) - n + 1):
                    slot = said[i][0]
                    found[slot, tuple(word for _, word in said[i : i + n])] += chance
        losses.append(_sentence(found, at, targets, target_mask, b, chosen))
    return torch.stack(losses)


def dag_eisl_loss(
    logits: Tensor,
    links: Tensor,
    targets: Tensor,
    output_mask: Tensor,
    target_mask: Tensor,
    **options: Any,
) -> Tensor:
    """(B,) float64 EISL of the vertices of a directed acyclic graph.

    Shapes: logits (B, L, V), links (B, L, L), targets (B, S), masks (B, L) and (B, S).
    """
    chosen, losses = Options(**options), []
    for b in range(len(targets)):
        at = truth(output_mask, b, logits.size(1))
        probs = [log_softmax(row.double()).exp() for row in logits[b, : sum(at)]]
        found: Dict[Any, Any] = defaultdict(float)
        grams = truth(target_mask, b, targets.size(1))
        tokens = targets[b].tolist()
        wanted = {
            tuple(tokens[s : s + n])
            for n in range(1, len(grams) + 1)
            for s in range(len(grams) - n + 1)
            if all(grams[s : s + n])
        }
        for chance, path in dag_paths(links[b, : sum(at), : sum(at)]) if probs else []:
            for gram in wanted:
                for i in range(len(path) - len(gram) + 1):
                    product = chance
                    for vertex, word in zip(path[i:], gram):
                        product = product * probs[vertex][word]
                    found[path[i], gram] = found[path[i], gram] + product
        losses.append(_sentence(found, at, targets, target_mask, b, chosen))
    return torch.stack(losses)


def _sentence(found, at, targets: Tensor, target_mask: Tensor, b: int, chosen: Options) -> Tensor:
    """EISL of a sentence from the probabilities of its n-grams by slot."""
    tokens = targets[b].tolist()

    def window(n: int, t: int, s: int) -> Tensor:
        chance = found[t, tuple(tokens[s : s + n])]
        chance = torch.as_tensor(chance, dtype=torch.float64)
        return raised(chance.log(), n * chosen.floor)

    grams = truth(target_mask, b, targets.size(1))
    return sentence_loss(window, at, grams, tokens, chosen, {})


def ctc_likelihood(logits: Tensor, target: List[int], blank: int) -> Tensor:
    """The probability that the slots of (L, V) logits say the target, float64."""
    total = torch.zeros((), dtype=torch.float64)
    for chance, said in ctc_outputs(logits, blank):
        if [word for _, word in said] == target:
            total = total + chance
    return total


def dag_likelihood(logits: Tensor, links: Tensor, target: List[int]) -> Tensor:
    """The probability that a path through (L, V) logits and (L, L) links says the target."""
    probs, total = [log_softmax(row.double()).exp() for row in logits], torch.zeros(())
    for chance, path in dag_paths(links):
        if len(path) == len(target):
            for vertex, word in zip(path, target):
                chance = chance * probs[vertex][word]
            total = total + chance
    return total.double()


def dag_log_likelihood(log_probs: Tensor, links: Tensor) -> Tensor:
    """The logarithm of the same for more vertices than can be enumerated, from (L, S)
    log-probabilities of the target's tokens: token by token, in the log domain."""
    never = torch.full((len(links),), -1e30, dtype=torch.float64)
    ways = links.double().clamp(min=-1e30)
    paths = torch.cat([log_probs[:1, 0].double(), never[1:]])
    for s in range(1, log_probs.size(1)):
        paths = (paths.unsqueeze(1) + ways).logsumexp(0) + log_probs[:, s].double()
    return paths[-1]
