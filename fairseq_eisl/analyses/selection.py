"""``selection``: where the position selection puts its mass, and whether it is the true place."""

import argparse
import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor

from ..common.errors import Refused, naming
from ..evaluation.figures.selection import draw_selection, selection_values
from ..losses import EISLOptions, NGramPositions, ngram_positions
from ..losses.ngrams import window_mask
from . import options
from .outputs import Output, on_candidate, on_target
from .sentences import SentencePairs
from .trained import Trained

CANDIDATES = ("target", "greedy")
_SHOWN = ("checkpoint", "n", "noise", "agreement", "mass", "chance", "entropy", "ngrams", "known")
_SHORT, _LONG = 5, 13  # tokens of a sentence whose heat map can be read


def add_parser(commands) -> None:
    part = commands.add_parser(
        "selection",
        help="where the position selection puts its mass, and how often that is the true place",
        description="The weights q of the position selection on noisy targets. The true places of "
        "an n-gram are those where the candidate says it; with the clean target as the candidate "
        "every n-gram that the noise has left whole has one.",
    )
    options.reads_models(part, sentences=200, batch=50)
    options.chooses_loss(part, ["1", "2"])
    options.makes_noise(part, ["shuffle:3"], many=False)
    part.add_argument(
        "--candidate",
        choices=CANDIDATES,
        default="target",
        help="the clean target, or the model's own greedy output (default: %(default)s)",
    )
    part.add_argument(
        "--example",
        type=int,
        metavar="INDEX",
        help="the pair of the heat map, from 0 (default: the first short one that has noise)",
    )
    options.writes(part)
    part.set_defaults(do=run)


def run(args: argparse.Namespace) -> None:
    """Print, append and draw the selection of each model."""
    options.check_files(args)
    (noise,) = options.noises(args)
    for text, loss in options.losses(args).items():
        if len(loss.ngrams) > 1 or loss.ngrams[0] < 1:
            raise Refused(f"--ngram {text}: one order of 1 or more is needed")
    loss = next(iter(options.losses(args).values()))
    orders = [chosen.ngrams[0] for chosen in options.losses(args).values()]
    rows: List[Dict[str, Any]] = []
    for trained, pairs in options.models(args):
        with naming(f"--example {args.example}"):
            example = example_of(pairs, noise, args.noise_seed, args.example, max(orders))
        for n in orders:
            batches = outputs(trained, pairs, noise, args.noise_seed, args.candidate)
            found = selected(batches, n, loss, example, trained.task.target_dictionary.symbols)
            about = options.about(args, trained, pairs)
            about.update(noise=noise, seed=args.noise_seed, candidate=args.candidate)
            rows.append({**about, "n": n, **found})
    options.finish(
        args, rows, _SHOWN, lambda rows, path: draw_selection(selection_values(rows), path)
    )


@torch.no_grad()
def outputs(
    trained: Trained, pairs: SentencePairs, noise: str, seed: int, candidate: str
) -> Iterator[Tuple[Output, Tensor]]:
    """The model's outputs beside noisy targets, and the pairs' indices."""
    for noisy, clean in zip(pairs.noisy(noise, seed), pairs.clean()):
        if candidate == "target":
            yield on_target(trained, noisy, clean), noisy["id"]
        else:
            yield on_candidate(trained, noisy), noisy["id"]


def example_of(
    pairs: SentencePairs, noise: str, seed: int, index: Optional[int], order: int = 1
) -> int:
    """The index of the pair whose heat map is drawn; it has n-grams of the ``order``, if one has.

    Raises:
        ValueError: the one that is asked for is not among the pairs, or too short.
    """
    both = list(zip(pairs.items, pairs.corrupted(noise, seed)))
    known = {int(clean["id"]): min(len(item["target"]) for item in pair)
             for pair in both for clean in pair[:1]}  # fmt: skip
    if index is not None:
        if index not in known:
            raise ValueError(f"there are the pairs 0 to {max(known)}")
        if known[index] < order:
            raise ValueError(f"the pair has {known[index]} tokens, too few for --ngram {order}")
        return index
    changed = [
        int(clean["id"])
        for clean, noisy in both
        if clean["target"].tolist() != noisy["target"].tolist()
        and all(max(_SHORT, order) <= len(i["target"]) <= _LONG for i in (clean, noisy))
    ]
    return min(changed or [i for i, tokens in known.items() if tokens >= order] or known)


class _Sums(NamedTuple):
    """Over n-grams."""

    ngrams: Tensor
    known: Tensor
    agree: Tensor
    mass: Tensor
    chance: Tensor
    entropy: Tensor


def selected(
    batches: Iterator[Tuple[Output, Tensor]],
    n: int,
    loss: EISLOptions,
    example: int,
    symbols: Sequence[str],
) -> Dict[str, Any]:
    """Columns of a row, of the n-grams of one order.

    ``ngrams``: so many stand in the targets. ``known``: the share of them that the candidate says
    somewhere; of these alone are ``agreement``, how often the place of the largest weight is one
    of those, ``mass``, the weight on them, and ``chance``, the weight that equal weights would
    have there. ``entropy``: of q in nats, over all. ``example_...``: the words of the example's
    target and candidate, and q, n-grams by places, as JSON.
    """
    sums = torch.zeros(len(_Sums._fields), dtype=torch.float64)
    shown: Dict[str, Any] = {}
    for output, ids in batches:
        if min(output.log_probs.size(1), output.targets.size(1)) < n:
            continue
        found = ngram_positions(
            output.token_log_probs(),
            output.targets,
            n,
            output_mask=output.candidates.mask,
            target_mask=output.target_mask,
            options=loss.without_noise(),
        )
        truth = true_places(output, n)
        sums += torch.stack(_sums(found, truth)).double()
        row = ids.tolist().index(example) if example in ids.tolist() else None
        if row is not None:
            shown = _shown_example(output, found, truth, row, symbols)
    total = _Sums(*sums.tolist())  # type: ignore[arg-type]
    if not total.ngrams:
        raise Refused(f"--ngram {n}: no sentence has an n-gram of this order")
    of_known = {name: _ratio(getattr(total, name), total.known) for name in ("mass", "chance")}
    return {
        "ngrams": int(total.ngrams),
        "known": _ratio(total.known, total.ngrams),
        "agreement": _ratio(total.agree, total.known),
        **of_known,
        "entropy": _ratio(total.entropy, total.ngrams),
        **shown,
    }


def _ratio(value: Any, count: Any) -> str:
    """Empty where nothing is counted."""
    return options.number(float(value) / float(count)) if count else ""


def true_places(output: Output, n: int) -> Tensor:
    """(B, P, S') bool: the candidate says the n-gram at this place."""
    tokens, targets = output.candidates.tokens, output.targets
    same = tokens.unsqueeze(2).eq(targets.unsqueeze(1))
    places, grams = tokens.size(1) - n + 1, targets.size(1) - n + 1
    truth = window_mask(output.candidates.mask, n).unsqueeze(2)
    truth = truth & window_mask(output.target_mask, n).unsqueeze(1)
    for j in range(n):
        truth = truth & same[:, j : j + places, j : j + grams]
    return truth


def _sums(found: NGramPositions, truth: Tensor) -> _Sums:
    known = truth.any(1)
    best = found.weights.argmax(1, keepdim=True)
    return _Sums(
        ngrams=found.grams.sum(),
        known=known.sum(),
        agree=truth.gather(1, best).sum(),
        mass=(found.weights * truth).sum(),
        chance=(truth.sum(1) / found.places.sum(1, keepdim=True).clamp(min=1)).sum(),
        entropy=found.entropy.masked_fill(~found.grams, 0.0).sum(),
    )


def _shown_example(
    output: Output, found: NGramPositions, truth: Tensor, row: int, symbols: Sequence[str]
) -> Dict[str, str]:
    def words(tokens: Tensor, mask: Tensor) -> List[str]:
        return [symbols[token] for token in tokens[mask].tolist()]

    places, grams = found.places[row], found.grams[row]
    weights = found.weights[row][places][:, grams].T
    candidates = output.candidates
    return {
        "example_target": json.dumps(words(output.targets[row], output.target_mask[row])),
        "example_candidate": json.dumps(words(candidates.tokens[row], candidates.mask[row])),
        "example_weights": json.dumps([[round(q, 4) for q in line] for line in weights.tolist()]),
        "example_truth": json.dumps(truth[row][places][:, grams].T.int().tolist()),
    }
