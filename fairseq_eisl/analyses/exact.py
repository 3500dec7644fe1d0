"""``exact``: EISL by one forward on the candidate against its exact value (App. A.7)."""

import argparse
import time
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch import Tensor

from ..common.errors import Refused
from ..decoding.fairseq.candidates import decode
from ..decoding.fairseq.model_scores import encode, scores
from ..evaluation.figures.exact import draw_exact, exact_values
from ..losses import EISLOptions, exact_autoregressive_eisl
from . import options
from .outputs import forward
from .sentences import Sample, SentencePairs
from .trained import Trained

_SHOWN = ("checkpoint", "updates", "approximate", "exact", "difference", "correlation")


def add_parser(commands) -> None:
    part = commands.add_parser(
        "exact",
        help="EISL by one forward against its exact value, over the checkpoints of a training",
        description="The value of EISL that training computes, with one forward on the candidate, "
        "against the exact one, whose n-grams are conditioned on themselves: values, difference "
        "and cost. The exact one takes a run of the decoder for every position and n-gram.",
    )
    options.reads_models(part, sentences=50, batch=25)
    options.chooses_loss(part, ["1,2"], many=False)
    options.makes_noise(part, ["none"], many=False)
    options.decodes(part)
    part.add_argument(
        "--start",
        metavar="[NAME=]FILE",
        help="the checkpoint that the training began with (--finetune-from-model): its update 0",
    )
    options.writes(part)
    part.set_defaults(do=run)


def run(args: argparse.Namespace) -> None:
    """Print, append and draw both values of each checkpoint."""
    if args.start is not None and args.untrained:
        raise Refused("--start, --untrained: one of them is the update 0 of the training")
    options.check_files(args)
    ((orders, loss),) = options.losses(args).items()
    (noise,) = options.noises(args)
    rows: List[Dict[str, Any]] = []
    for trained, pairs in options.models(args):
        if args.start is not None and not rows:
            trained = trained._replace(updates=0)
        options.say(f"{trained.name}: {trained.updates} updates")
        found = compare(trained, pairs, loss, noise, args.noise_seed, args.candidate_after_eos)
        about = {**options.about(args, trained, pairs), "ngram": orders}
        rows.append({**about, "noise": noise, "seed": args.noise_seed, **found})
    rows.sort(key=lambda row: row["updates"])
    options.finish(
        args, rows, [*_SHOWN, "cost_ratio"], lambda rows, path: draw_exact(exact_values(rows), path)
    )


@torch.no_grad()
def compare(
    trained: Trained,
    pairs: SentencePairs,
    loss: EISLOptions,
    noise: str = "none",
    seed: int = 1,
    after_eos: bool = False,
) -> Dict[str, Any]:
    """Columns of a row: means over sentences in nats, of the same candidates.

    ``difference``: the mean of exact - approximate; ``difference_abs`` that of its absolute
    value; ``correlation``: Pearson's over sentences, empty where one of them does not vary.
    ``approximate_ms``, ``exact_ms``: milliseconds a sentence, decoding of the candidate aside.
    """
    found: List[Tensor] = []
    spent = [0.0, 0.0]
    for sample in pairs.noisy(noise, seed):
        values, seconds = _both(trained, sample, loss, after_eos)
        found.append(values)
        spent = [a + b for a, b in zip(spent, seconds)]
    approximate, exact = torch.cat(found, 1)
    difference = exact - approximate
    both = torch.stack([approximate, exact])
    varies = bool((both.std(1) > 0).all()) and len(difference) > 1
    return {
        "approximate": options.number(float(approximate.mean())),
        "exact": options.number(float(exact.mean())),
        "difference": options.number(float(difference.mean())),
        "difference_abs": options.number(float(difference.abs().mean())),
        "correlation": options.number(float(torch.corrcoef(both)[0, 1])) if varies else "",
        "approximate_ms": options.number(1000 * spent[0] / len(pairs)),
        "exact_ms": options.number(1000 * spent[1] / len(pairs)),
        "cost_ratio": options.number(spent[1] / spent[0]),
    }


def _both(
    trained: Trained, sample: Sample, loss: EISLOptions, after_eos: bool
) -> Tuple[Tensor, List[float]]:
    """(2, B) the approximate and the exact values of a batch, and the seconds that they took."""
    symbols = trained.task.target_dictionary
    at_eos = "go_on" if after_eos else "end"
    found = decode(trained.model, sample, symbols.pad(), symbols.eos(), at_eos=at_eos)
    target = sample["target"]
    loss = loss.without_noise()

    def exactly() -> Tensor:
        return exact_autoregressive_eisl(
            logits_of(trained, sample, found.prefix[:, :1]),
            found.tokens,
            target,
            output_mask=found.mask,
            target_mask=target.ne(symbols.pad()),
            reduction="none",
            **vars(loss),
        )

    forward(trained, sample, found)  # the first one is slow
    start = time.perf_counter()
    approximate = forward(trained, sample, found).terms(loss).total()
    middle = time.perf_counter()
    exact = exactly()
    end = time.perf_counter()
    return torch.stack([approximate.double(), exact]), [middle - start, end - middle]


def logits_of(
    trained: Trained, sample: Sample, first: Tensor
) -> Callable[[Tensor, Tensor], Tensor]:
    """What :func:`exact_autoregressive_eisl` asks for, of a model and the sources of a batch.

    ``first``: (B, 1) int64, the token that decoding starts from.
    """
    model = trained.model
    encoder_out = encode(model.encoder, sample["net_input"])

    def logits(tokens: Tensor, sentences: Tensor) -> Tensor:
        prefix = torch.cat([first[sentences], tokens[:, :-1]], 1)
        chosen = model.encoder.reorder_encoder_out(encoder_out, sentences)
        return scores(model, model.decoder(prefix, encoder_out=chosen)).values

    return logits
