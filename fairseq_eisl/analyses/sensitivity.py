"""``sensitivity``: how cross entropy and EISL of a trained model grow as targets are edited."""

import argparse
from typing import Any, Dict, Iterator, List, Sequence

from ..common.errors import Refused, naming
from ..evaluation.figures.noise_levels import split_noise
from ..evaluation.figures.sensitivity import draw_sensitivity, sensitivity_values
from ..losses import EISLOptions
from . import options
from .outputs import mean_losses
from .sentences import SentencePairs
from .trained import Trained

_LEVELS = ("0.1", "0.2", "0.3", "0.4", "0.5")
NOISES = (
    *(f"shuffle:{swaps}" for swaps in (2, 4, 6, 8, 10, "all")),
    *(f"repeat:{p}" for p in _LEVELS),
    *(f"blank:{p}" for p in _LEVELS),
)
_SHOWN = ("checkpoint", "noise", "seed", "system", "value", "ratio", "share")


def add_parser(commands) -> None:
    part = commands.add_parser(
        "sensitivity",
        help="how the losses of a trained model grow with edits of the targets",
        description="Cross entropy and EISL of a trained model, of clean targets, of the same "
        "with noise, and of those of other sentences. The share is 0 for a clean target and 1 for "
        "another sentence's, so that losses of different size compare.",
    )
    options.reads_models(part, sentences=200, batch=50)
    options.chooses_loss(part, ["1,2", "2,3,4"])
    options.makes_noise(part, NOISES)
    options.decodes(part)
    options.writes(part)
    part.set_defaults(do=run)


def run(args: argparse.Namespace) -> None:
    """Print, append and draw the sensitivity of one model."""
    options.check_files(args)
    noises, losses = options.noises(args), options.losses(args)
    for noise in noises if args.out is not None else ():
        with naming("--noise"):
            split_noise(noise)
    if len(args.checkpoint) > 1 or args.untrained:
        raise Refused("--checkpoint, --untrained: sensitivity is of one model at a time")
    rows: List[Dict[str, Any]] = []
    for trained, pairs in options.models(args):
        with naming(f"--checkpoint {args.checkpoint[0]}"):
            found = sensitivity(
                trained, pairs, losses, noises, args.noise_seed or [1], args.candidate_after_eos
            )
            rows += [{**options.about(args, trained, pairs), **row} for row in found]
    options.finish(
        args, rows, _SHOWN, lambda rows, path: draw_sensitivity(sensitivity_values(rows), path)
    )


def sensitivity(
    trained: Trained,
    pairs: SentencePairs,
    losses: Dict[str, EISLOptions],
    noises: Sequence[str],
    seeds: Sequence[int],
    after_eos: bool = False,
) -> Iterator[Dict[str, Any]]:
    """A row a noise, seed and loss.

    ``value``: cross entropy a token, or EISL a sentence, in nats, of the noisy targets; the
    position selection draws no noise. ``clean``, ``unrelated``: the same of the clean targets,
    and of those of other sentences. ``ratio``: value / clean. ``share``: (value - clean) /
    (unrelated - clean).

    Raises:
        ValueError: the model finds other sentences' targets no worse, so that nothing compares.
    """
    names = ["CE", *(f"EISL {orders}" for orders in losses)]
    chosen = list(losses.values())

    def values(batches) -> Dict[str, float]:
        ce, eisl = mean_losses(trained, batches, chosen, after_eos)
        return dict(zip(names, [ce, *eisl]))

    clean, unrelated = values(pairs.clean()), values(pairs.unrelated())
    for name in names:
        if not unrelated[name] > clean[name]:
            raise ValueError(
                f"{name} is {clean[name]:.4g} of the own targets and {unrelated[name]:.4g} of "
                "others: the model tells no target from another, is it trained?"
            )
    for noise in noises:
        for seed in seeds:
            options.say(f"{noise}, seed {seed}")
            for name, value in values(pairs.noisy(noise, seed)).items():
                low, high = clean[name], unrelated[name]
                yield {
                    "noise": noise,
                    "seed": seed,
                    "system": name,
                    "value": options.number(value),
                    "clean": options.number(low),
                    "unrelated": options.number(high),
                    "ratio": options.number(value / low),
                    "share": options.number(
                        (value - clean[name]) / (unrelated[name] - clean[name])
                    ),
                }
