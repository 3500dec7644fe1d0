#!/usr/bin/env python3
"""How the time of EISL (loss and backward from logits) grows with B, T and V.

    python scripts/benchmark_growth.py --out rows.csv

One of the three is varied, the others stay at the base; the exponent is the slope of a straight
line through the logarithms of the median times, so 1 is linear growth and 2 quadratic. The last
rows are the share of what works on T x S tensors (sums of n-grams, selection of positions) at the
longest T, in the loss and in a whole training step of a small CMLM; the rest is linear in T.
"""

import argparse
import math
import statistics
import sys
import time

import benchmark_steps as steps
import torch
from benchmark_losses import Work, orders_of, synchronise

from fairseq_eisl.common.provenance import provenance
from fairseq_eisl.common.rows import append_row
from fairseq_eisl.losses import EISLOptions, eisl_from_log_probs

BASE = {"B": 16, "T": 32, "V": 8000}
GRIDS = {"B": (8, 16, 32, 64), "T": (16, 32, 64, 128), "V": (4000, 8000, 16000, 32000)}


def medians(calls, repeats, device, label):
    """Median seconds of each call; they take turns."""
    times = {name: [] for name in calls}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            synchronise(device)
            start = time.perf_counter()
            call()
            synchronise(device)
            if repeat:  # the first one warms up
                times[name].append(time.perf_counter() - start)
        print(f"\r{label}: {repeat}/{repeats}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


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
    """Forward and backward of the CMLM of benchmark_steps.py with EISL."""
    task = steps.make_task(max(10, vocabulary))
    model = steps.make_model("nat", task, device, dtype)
    sample = steps.make_sample("nat", task, batch, length, device)
    criterion = steps.eisl(task, ngrams)
    return lambda: steps.train_step(lambda *args: criterion(*args)[0], model, sample, device)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ngrams", default="2,3,4")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes, e.g. 0.1 for a try")
    parser.add_argument("--out", help="a CSV file of rows; appended to")
    args = parser.parse_args()
    if args.repeats < 1 or not 0.05 <= args.scale <= 10:
        parser.error("--repeats must be 1 or more, --scale from 0.05 to 10")
    ngrams = orders_of(args.ngrams)
    dtype, device = getattr(torch, args.dtype), torch.device(args.device)
    known = {"ngrams": args.ngrams, "dtype": args.dtype, **provenance()}
    known["threads"] = torch.get_num_threads()
    rows = []

    def scaled(value):
        return max(2, round(value * args.scale))

    for axis, values in GRIDS.items():
        sizes = [{**BASE, axis: value} for value in values]
        works = {
            size[axis]: Work("eisl", tuple(scaled(size[k]) for k in "BTV"), ngrams, dtype, device)
            for size in sizes
        }
        found = medians({v: w.step for v, w in works.items()}, args.repeats, device, axis)
        slope = statistics.linear_regression(
            [math.log(scaled(value)) for value in found], [math.log(s) for s in found.values()]
        ).slope
        for value, seconds in found.items():
            rows.append({"what": axis, "value": scaled(value), "ms": f"{1e3 * seconds:.2f}"})
        rows.append({"what": f"exponent of {axis}", "value": f"{slope:.2f}", "ms": ""})
    batch, length, vocabulary = (scaled({**BASE, "T": GRIDS["T"][-1]}[k]) for k in "BTV")
    work = Work("eisl", (batch, length, vocabulary), ngrams, dtype, device)
    calls = {"loss": work.step, "part": from_log_probs(batch, length, ngrams, device)}
    calls["training step"] = training_step(batch, length, vocabulary, args.ngrams, dtype, device)
    found = medians(calls, args.repeats, device, "T x S")
    for whole in ("loss", "training step"):
        what, share = f"T x S in the {whole}, T = {length}", found["part"] / found[whole]
        rows.append({"what": what, "value": f"{share:.3f}", "ms": f"{1e3 * found[whole]:.2f}"})
    for row in rows:
        print("  ".join([row["what"].ljust(36), str(row["value"]).rjust(8), row["ms"].rjust(10)]))
    if args.out:
        for row in rows:
            append_row(args.out, {**row, **known})


if __name__ == "__main__":
    main()
