#!/usr/bin/env python3
"""Time and memory of EISL from a model's last features or logits, against its peers, in one run.

    python scripts/benchmarks/losses.py --out rows.csv
    python scripts/benchmarks/losses.py --sizes 64x32x10000 --ngrams 2,3,4 --repeats 9

For every size (B x T x V): loss and backward from logits, medians over interleaved repeats;
and the peak of memory above the logits, each system in a process of its own (on Linux). The
last columns are ratios to fairseq's label-smoothed cross entropy and to the released way.
On a CPU there are further rows with times beside a busy process, one that computes all the
time: column ``beside``, ``--beside none,busy,idle-priority``.
"""

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

import torch
from common import (
    known,
    orders_of,
    parser_of,
    peak_memory,
    q20,
    q80,
    report,
    synchronise,
    taking_turns,
)
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch.nn import functional as F

from fairseq_eisl.losses import EISLOptions, eisl_feature_terms, eisl_logit_terms

WIDTH = 512  # of the features


def eisl_of(terms_of, outputs, targets, ngrams, **options):
    """The sum over sentences without padding; ``outputs``: logits, or features and weights."""
    seeds = torch.arange(len(targets), device=targets.device)
    options = {"options": EISLOptions(ngrams), "generator": seeds, **options}
    return terms_of(*outputs, targets, **options).total().sum()


def eisl(logits, targets, ngrams):
    return eisl_of(eisl_logit_terms, [logits], targets, ngrams)


def eisl_in_place(logits, targets, ngrams):
    return eisl_of(eisl_logit_terms, [logits], targets, ngrams, in_place=True)


def label_smoothed_cross_entropy(logits, targets, ngrams):
    log_probs = utils.log_softmax(logits, dim=-1).view(-1, logits.size(2))
    return label_smoothed_nll_loss(log_probs, targets.view(-1), 0.1, ignore_index=1)[0]


def cross_entropy(logits, targets, ngrams):
    log_probs = utils.log_softmax(logits, dim=-1).view(-1, logits.size(2))
    return F.nll_loss(log_probs, targets.view(-1), ignore_index=1, reduction="sum")


def nat_loss(logits, targets, ngrams):
    """As fairseq's criterion for non-autoregressive models: real slots picked out, smoothed."""
    mask = targets.ne(1)
    log_probs = F.log_softmax(logits[mask], dim=-1)
    nll = F.nll_loss(log_probs, targets[mask], reduction="none").float().mean()
    return 0.9 * nll - 0.1 * log_probs.float().mean()


def released(logits, targets, ngrams):
    """The steps of the authors' code: log-softmax, a clamped copy of it, gathered columns, and for
    each order a convolution with an identity kernel and a Gumbel softmax over positions."""
    log_probs = F.log_softmax(logits, dim=-1)
    clamped = F.relu(log_probs + 20) - 20
    index = targets.unsqueeze(1).expand(-1, logits.size(1), -1)
    cost = torch.gather(clamped, 2, index).unsqueeze(1)
    loss = 0
    for n in ngrams:
        kernel = torch.eye(n, device=logits.device, dtype=cost.dtype).view(1, 1, n, n)
        scores = F.conv2d(cost, kernel).squeeze(1) / n
        weights = F.gumbel_softmax(scores, tau=1, dim=1)
        loss = loss - (scores * weights).sum(1).mean(1).sum() / len(ngrams)
    return loss


SYSTEMS = {
    f.__name__: f
    for f in (
        *(label_smoothed_cross_entropy, cross_entropy, nat_loss, released),
        *(eisl, eisl_in_place),
    )
}
# From features: the output layer is part of what is measured.
FEATURES = {
    "features_label_smoothed_cross_entropy": lambda f, w, t, n: label_smoothed_cross_entropy(
        F.linear(f, w), t, n
    ),
    "features_eisl": lambda f, w, t, n: eisl_of(eisl_feature_terms, [f, w, None], t, n),
}
BASES = {False: ("label_smoothed_cross_entropy", "released"), True: (next(iter(FEATURES)), "")}


class Work:
    """One system at one size: inputs, and one step of it."""

    def __init__(self, name, size, ngrams, dtype, device):
        self.name, self.ngrams = name, ngrams
        batch, positions, vocabulary = size
        seed = torch.Generator().manual_seed(1)
        self.targets = torch.randint(4, vocabulary, (batch, positions), generator=seed).to(device)
        if name in FEATURES:
            shapes = [(batch, positions, WIDTH), (vocabulary, WIDTH)]
            self.leaves = [torch.randn(s, generator=seed).to(device, dtype) for s in shapes]
            self.leaves[1].mul_(0.05)
        else:
            self.leaves = [torch.randn(batch, positions, vocabulary, generator=seed)]
            self.leaves[0] = self.leaves[0].to(device, dtype)
        for leaf in self.leaves:
            leaf.requires_grad_()

    def step(self):
        """Seconds of the forward, and of forward and backward."""
        device = self.targets.device
        inputs = list(self.leaves)
        if self.name == "eisl_in_place":  # the leaf keeps its values; the copy is not timed
            inputs = [leaf.detach().clone().requires_grad_() for leaf in inputs]
        synchronise(device)
        start = time.perf_counter()
        loss = {**SYSTEMS, **FEATURES}[self.name](*inputs, self.targets, self.ngrams)
        synchronise(device)
        middle = time.perf_counter()
        torch.autograd.grad(loss, inputs)
        synchronise(device)
        return middle - start, time.perf_counter() - start


# What the competitor computes; it ends with the benchmark, however that ends.
BUSY = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    sum(i * i for i in range(20000))
"""
BESIDE = ("none", "busy", "idle-priority")


@contextmanager
def beside(what):
    """Run beside nothing, or one process that computes all the time, at equal or at the lowest
    priority (nice 19)."""
    if what == "none":
        yield
        return
    command = [sys.executable, "-c", BUSY, str(os.getpid())]
    if what == "idle-priority":
        command = ["nice", "-n", "19", *command]
    busy = subprocess.Popen(command)
    try:
        time.sleep(0.2)  # until it computes
        yield
        if busy.poll() is not None:
            raise SystemExit(f"the busy process has ended by itself with status {busy.returncode}")
    finally:
        busy.kill()
        busy.wait()


def memory_of(name, size, ngrams, dtype, device):
    """Bytes above the inputs at the peak of one step, in this process."""
    work = Work(name, size, ngrams, dtype, device)
    # Memory of the first call of anything (thread pools, caches) is nobody's price.
    Work(name, (2, 8, 100), ngrams, dtype, device).step()
    inputs = list(work.leaves)

    def step():
        loss = {**SYSTEMS, **FEATURES}[name](*inputs, work.targets, ngrams)
        grads = torch.autograd.grad(loss, inputs)
        assert all(grad is not None for grad in grads)

    return peak_memory(step, device)


def measured_memory(name, size, args):
    """The same, on a CPU in a process of its own; on CUDA the allocator knows."""
    if args.device == "cuda":
        dtype, device = getattr(torch, args.dtype), torch.device(args.device)
        return memory_of(name, size, orders_of(args.ngrams), dtype, device)
    command = [sys.executable, __file__, "--memory-of", name, "--sizes", "x".join(map(str, size))]
    command += ["--ngrams", args.ngrams, "--dtype", args.dtype, "--device", args.device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def rows_of(size, names, ngrams, args, beside_what="none"):
    """Rows of one size; all systems take turns."""
    dtype, device = getattr(torch, args.dtype), torch.device(args.device)
    shown = "x".join(map(str, size))
    steps = {name: Work(name, size, ngrams, dtype, device).step for name in names}
    with beside(beside_what):
        times = taking_turns(steps, args.repeats, f"{shown}, beside {beside_what}")
    del steps
    logits = size[0] * size[1] * size[2] * torch.finfo(dtype).bits // 8
    rows = []
    for name in names:
        total = [both for _, both in times[name]]
        rows.append(
            {
                "system": name,
                "size": shown,
                "ngrams": args.ngrams,
                "dtype": args.dtype,
                "beside": beside_what,
                "forward_ms": 1e3 * statistics.median(forward for forward, _ in times[name]),
                "total_ms": 1e3 * statistics.median(total),
                "total_ms_q20": 1e3 * q20(total),
                "total_ms_q80": 1e3 * q80(total),
                # Memory does not depend on the neighbours.
                "peak_logits": measured_memory(name, size, args) / logits
                if beside_what == "none"
                else "",
            }
        )
    add_ratios(rows)
    return rows


def add_ratios(rows):
    """To the rows of one size those to the other losses."""
    by_name = {row["system"]: row for row in rows}
    for row in rows:
        for base, short in zip(BASES[row["system"] in FEATURES], ("ce", "released")):
            for key in ("total_ms", "peak_logits"):
                what = {"total_ms": "time", "peak_logits": "memory"}[key]
                # At tiny sizes a peak may be too small for the system to have noticed.
                ratio = row[key] / by_name[base][key] if base and by_name[base][key] else ""
                row[f"{what}_to_{short}"] = ratio


def sizes_of(text):
    try:
        sizes = [tuple(int(n) for n in size.split("x")) for size in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or any(len(size) != 3 or min(size) < 1 for size in sizes):
        raise SystemExit(f"--sizes: BxTxV[,BxTxV] is needed, such as 64x32x10000, not {text!r}")
    return sizes


def main():
    parser = parser_of(__doc__.splitlines()[0], repeats=7)
    parser.add_argument("--sizes", default="64x32x10000,32x40x32000", help="BxTxV, several by ,")
    parser.add_argument("--ngrams", default="2,3,4")
    parser.add_argument(
        "--beside",
        default="",
        help="none, busy, idle-priority, several by , (none,busy on a CPU, none on CUDA)",
    )
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.repeats < 1:
        parser.error(f"--repeats must be 1 or more, not {args.repeats}")
    ngrams = orders_of(args.ngrams)
    sizes = sizes_of(args.sizes)
    neighbours = (args.beside or {"cpu": "none,busy", "cuda": "none"}[args.device]).split(",")
    if not set(neighbours) <= set(BESIDE):
        raise SystemExit(f"--beside: choose from {', '.join(BESIDE)}, not {args.beside!r}")
    if args.memory_of:
        dtype, device = getattr(torch, args.dtype), torch.device(args.device)
        print(memory_of(args.memory_of, sizes[0], ngrams, dtype, device))
        return
    torch.manual_seed(1)
    settings = known()
    rows = []
    for size, what, names in itertools.product(sizes, neighbours, (SYSTEMS, FEATURES)):
        for row in rows_of(size, list(names), ngrams, args, what):
            rounded = {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
            rows.append({**rounded, **settings})
    shown = ["system", "size", "beside", "forward_ms", "total_ms", "time_to_ce", "time_to_released"]
    report(rows, [*shown, "peak_logits", "memory_to_ce"], args.out)


if __name__ == "__main__":
    # A plain kill of the benchmark ends the busy process, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
