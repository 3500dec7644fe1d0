"""``gradients``: which n-gram order gives how much of the gradient of EISL."""

import argparse
import statistics
from typing import Any, Dict, Iterator, List

import torch
from torch import Tensor

from ..evaluation.figures.gradients import draw_gradients, gradient_shares
from ..losses import EISLOptions
from . import options
from .outputs import on_candidate, token_nll
from .sentences import Sample, SentencePairs
from .trained import Trained

CROSS_ENTROPY = "CE"
_SHOWN = ("checkpoint", "noise", "order", "weight", "norm", "share", "share_std", "cosine_clean")


def add_parser(commands) -> None:
    part = commands.add_parser(
        "gradients",
        help="which n-gram order gives how much of the gradient",
        description="The gradient of EISL in all parameters, order by order, in batches as a "
        "training has them, without dropout: the share of each order, and the cosine of its "
        "gradient with that of cross entropy on the clean targets.",
    )
    options.reads_models(part, sentences=200, batch=50)
    options.chooses_loss(part, ["1,2,3,4"], many=False)
    options.makes_noise(part, ["none", "shuffle:3", "repeat:0.5", "blank:0.3"])
    options.decodes(part)
    options.writes(part)
    part.set_defaults(do=run)


def run(args: argparse.Namespace) -> None:
    """Print, append and draw the shares of each model and noise."""
    options.check_files(args)
    noises, losses = options.noises(args), options.losses(args)
    ((_, loss),) = losses.items()
    rows: List[Dict[str, Any]] = []
    for trained, pairs in options.models(args):
        for noise in noises:
            for seed in args.noise_seed or [1]:
                options.say(f"{trained.name}: {noise}, seed {seed}")
                about = {**options.about(args, trained, pairs), "noise": noise, "seed": seed}
                found = gradients(trained, pairs, loss, noise, seed, args.candidate_after_eos)
                rows += [{**about, "ngram": args.ngram, **row} for row in found]
    options.finish(
        args, rows, _SHOWN, lambda rows, path: draw_gradients(gradient_shares(rows), path)
    )


def gradients(
    trained: Trained,
    pairs: SentencePairs,
    loss: EISLOptions,
    noise: str,
    seed: int,
    after_eos: bool = False,
) -> Iterator[Dict[str, Any]]:
    """A row an order, and one of cross entropy on the noisy targets: means over batches.

    ``norm``: of the gradient of the order's weighted loss, a mean over sentences in nats.
    ``share``: its projection on the gradient of the whole loss, over that one's norm, so that the
    shares of all orders sum to 1; negative where an order pulls back. ``share_std``: over batches.
    ``cosine_clean``: with the gradient of cross entropy on the clean targets.
    """
    orders = [str(n) for n in loss.ngrams] + ["short"]
    found: Dict[str, List[Dict[str, float]]] = {}
    for noisy, clean in zip(pairs.noisy(noise, seed), pairs.clean()):
        towards = ce_gradient(trained, clean)
        parts = order_gradients(trained, noisy, loss, after_eos)
        whole = torch.stack(parts).sum(0)
        for order, part in zip(orders, parts):
            one = _measures(part, towards)
            one["share"] = float(part @ whole / (whole @ whole)) if whole.any() else 0.0
            found.setdefault(order, []).append(one)
        found.setdefault(CROSS_ENTROPY, []).append(_measures(ce_gradient(trained, noisy), towards))
    weights = dict(zip(orders, loss.order_weights))
    for order, batches in found.items():
        if order == "short" and not any(one["norm"] for one in batches):
            continue  # every sentence has room for the orders
        shares = [one["share"] for one in batches if "share" in one]
        yield {
            "order": order,
            "weight": options.number(weights[order]) if order in weights else "",
            "batches": len(batches),
            "norm": _mean(batches, "norm"),
            "share": _mean(batches, "share") if shares else "",
            "share_std": options.number(statistics.pstdev(shares)) if shares else "",
            "cosine_clean": _mean(batches, "cosine_clean"),
        }


def _measures(gradient: Tensor, towards: Tensor) -> Dict[str, float]:
    norms = float(gradient.norm()), float(towards.norm())
    # Of no gradient there is no direction: it points nowhere.
    cosine = float(gradient @ towards) / (norms[0] * norms[1]) if all(norms) else 0.0
    return {"norm": norms[0], "cosine_clean": cosine}


def _mean(batches: List[Dict[str, float]], name: str) -> str:
    return options.number(statistics.fmean(one[name] for one in batches))


def order_gradients(
    trained: Trained, sample: Sample, loss: EISLOptions, after_eos: bool = False
) -> List[Tensor]:
    """The gradient of each order's weighted loss, a mean over sentences, in all parameters as one
    float64 vector; last that of sentences which have room for no order."""
    terms = on_candidate(trained, sample, after_eos).terms(loss)
    columns = (terms.losses * terms.weights).mean(0)
    last = len(columns) - 1
    return [_gradient(trained, column, keep=k < last) for k, column in enumerate(columns)]


def ce_gradient(trained: Trained, sample: Sample) -> Tensor:
    """The same of cross entropy a token."""
    tokens = sample["target"].ne(trained.task.target_dictionary.pad()).sum()
    return _gradient(trained, token_nll(trained, sample).sum() / tokens)


def _gradient(trained: Trained, loss: Tensor, keep: bool = False) -> Tensor:
    parameters = [p for p in trained.model.parameters() if p.requires_grad]
    parts = torch.autograd.grad(loss, parameters, retain_graph=keep, allow_unused=True)
    flat = [p.new_zeros(p.numel()) if g is None else g.flatten() for p, g in zip(parameters, parts)]
    return torch.cat(flat).double()
