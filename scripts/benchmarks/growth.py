#!/usr/bin/env python3
"""How the time of EISL (loss and backward from logits) grows with B, T and V.

    python scripts/benchmarks/growth.py --out rows.csv

One of the three is varied, the others stay at the base; the exponent is the slope of a straight
line through the logarithms of the median times, so 1 is linear growth and 2 quadratic. The last
rows are the share of what works on T x S tensors (sums of n-grams, selection of positions) at the
longest T, in the loss and in a whole training step of a small CMLM; the rest is linear in T.
"""

import math
import statistics
from functools import partial

import steps
import torch
from common import known, orders_of, parser_of, report, seconds_of, taking_turns
from losses import Work

from fairseq_eisl.losses import EISLOptions, eisl_from_log_probs

BASE = {"B": 16, "T": 32, "V": 8000}
GRIDS = {"B": (8, 16, 32, 64), "T": (16, 32, 64, 128), "V": (4000, 8000, 16000, 32000)}


def medians(calls, repeats, device, label):
    """Median seconds of each call; they take turns."""
    steps = {name: partial(seconds_of, call, device) for name, call in calls.items()}
    found = taking_turns(steps, repeats, label)
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def from_log_probs(batch, length, ngrams, device):
    """The part that works on T x S numbers: forward and backward from them."""
    log_probs = torch.randn(batch, length, length).to(device).requires_grad_()
    targets = torch.zeros(batch, length, dtype=torch.int64, device=device)
    options = {"options": EISLOptions(ngrams), "generator": torch.arange(batch, device=device)}

    def call():
        loss = eisl_from_log_probs(log_probs, targets, **options).total().sum()
        torch.autograd.grad(loss, log_probs)

    return call


def training_step(batch, length, vocabulary, ngrams, dtype, device):
    """Forward and backward of the CMLM of steps.py with EISL."""
    task = steps.make_task(max(10, vocabulary))
    model = steps.make_model("nat", task, device, dtype)
    sample = steps.make_sample("nat", task, batch, length, device)
    criterion = steps.eisl(task, ngrams)
    return lambda: steps.train_step(lambda *args: criterion(*args)[0], model, sample, device)


class Grid:
    """Sizes of the loss, its orders of n-grams, type of numbers, device and repeats."""

    def __init__(self, args):
        self.args, self.ngrams = args, orders_of(args.ngrams)
        self.dtype, self.device = getattr(torch, args.dtype), torch.device(args.device)

    def sizes(self, **other):
        """B, T and V: the base with another value of one of them."""
        return tuple(self.scaled({**BASE, **other}[key]) for key in "BTV")

    def scaled(self, value):
        return max(2, round(value * self.args.scale))

    def work(self, sizes):
        return Work("eisl", sizes, self.ngrams, self.dtype, self.device)

    def medians(self, calls, label):
        return medians(calls, self.args.repeats, self.device, label)


def growth_rows(grid, axis):
    """The time at each size of an axis, and the exponent."""
    works = {value: grid.work(grid.sizes(**{axis: value})) for value in GRIDS[axis]}
    found = grid.medians({value: work.step for value, work in works.items()}, axis)
    slope = statistics.linear_regression(
        [math.log(grid.scaled(value)) for value in found], [math.log(s) for s in found.values()]
    ).slope
    for value, seconds in found.items():
        yield {"what": axis, "value": grid.scaled(value), "ms": f"{1e3 * seconds:.2f}"}
    yield {"what": f"exponent of {axis}", "value": f"{slope:.2f}", "ms": ""}


def share_rows(grid):
    """The share of what works on T x S numbers, at the longest T."""
    batch, length, vocabulary = grid.sizes(T=GRIDS["T"][-1])
    calls = {"loss": grid.work((batch, length, vocabulary)).step}
    calls["part"] = from_log_probs(batch, length, grid.ngrams, grid.device)
    calls["training step"] = training_step(
        batch, length, vocabulary, grid.args.ngrams, grid.dtype, grid.device
    )
    found = grid.medians(calls, "T x S")
    for whole in ("loss", "training step"):
        what, share = f"T x S in the {whole}, T = {length}", found["part"] / found[whole]
        yield {"what": what, "value": f"{share:.3f}", "ms": f"{1e3 * found[whole]:.2f}"}


def main():
    parser = parser_of(__doc__.splitlines()[0], repeats=5)
    parser.add_argument("--ngrams", default="2,3,4")
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes, e.g. 0.1 for a try")
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats: 1 or more is needed, not {args.repeats}")
    if not 0.05 <= args.scale <= 10:
        parser.error(f"--scale: 0.05 to 10 is needed, not {args.scale}")
    grid = Grid(args)
    settings = {"ngrams": args.ngrams, "dtype": args.dtype, "beside": "none", **known()}
    rows = [row for axis in GRIDS for row in growth_rows(grid, axis)]
    rows += share_rows(grid)
    report([{**row, **settings} for row in rows], ["what", "value", "ms"], args.out)


if __name__ == "__main__":
    main()
