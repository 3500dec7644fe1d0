#!/usr/bin/env python3
"""Time and memory of EISL over latent alignments, against those models' own likelihood, in one run.

    python scripts/benchmarks/latent.py --out rows.csv
    python scripts/benchmarks/latent.py --kinds paths --sizes 32x240x32x4000 --repeats 3

For every size (B x L x S x V: sentences, slots, target tokens, symbols) loss and backward:
  ctc    from logits: torch's ctc_loss behind a log-softmax, and EISL
  dag    from logits and transitions: the programme over target tokens in plain torch, and EISL
  paths  the same from log-probabilities of the target's tokens, which both make in one way, and
         transitions
Systems take turns; medians. Peaks of memory are above the inputs, each system in a process of its
own (on Linux). The last columns are ratios to the likelihood.
"""

import argparse
import json
import statistics
import subprocess
import sys

import torch
from common import (
    known,
    orders_of,
    parser_of,
    peak_memory,
    q20,
    q80,
    report,
    seconds_of,
    taking_turns,
)

from fairseq_eisl.losses import EISLOptions, token_log_probs
from fairseq_eisl.losses.latent import (
    ctc_log_likelihood,
    dag_log_likelihood,
    eisl_ctc_terms,
    eisl_dag_log_prob_terms,
    eisl_dag_terms,
)

# Two slots a token, and more vertices, as such models have.
SIZES = {
    "ctc": "64x48x16x4000,32x96x32x4000",
    "dag": "64x120x16x4000,32x240x32x4000",
    "paths": "64x120x16x4000,32x240x32x4000",
}


class Work:
    """Inputs of one size, and one step of each system on them."""

    def __init__(self, kind, size, ngrams, dtype, device):
        batch, slots, length, vocabulary = size
        seed = torch.Generator().manual_seed(1)
        self.kind, self.ngrams, self.blank = kind, ngrams, vocabulary - 1
        self.targets = torch.randint(vocabulary - 1, (batch, length), generator=seed).to(device)
        logits = torch.randn(batch, slots, vocabulary, generator=seed)
        if kind == "paths":
            found = token_log_probs(logits.to(device), self.targets)
            self.leaves = [found.requires_grad_()]
        else:
            self.leaves = [logits.to(device, dtype).requires_grad_()]
        if kind != "ctc":
            before = torch.ones(slots, slots, dtype=torch.bool).tril()
            scores = torch.randn(batch, slots, slots, generator=seed).masked_fill(before, -1e4)
            self.leaves.append(scores.log_softmax(2).to(device).requires_grad_())
        self.masks = {
            "output_mask": torch.ones(batch, slots, dtype=torch.bool, device=device),
            "target_mask": torch.ones(batch, length, dtype=torch.bool, device=device),
        }

    def likelihood(self):
        """The sum over sentences of the NLL."""
        logits, *links = self.leaves
        if self.kind == "ctc":
            return -ctc_log_likelihood(logits, self.targets, self.blank, **self.masks).sum()
        found = logits
        if self.kind == "dag":
            found = token_log_probs(logits, self.targets, self.masks["output_mask"])
        return -dag_log_likelihood(found, *links, **self.masks).sum()

    def eisl(self):
        """The sum over sentences of EISL."""
        logits, *links = self.leaves
        seeds = torch.arange(len(self.targets), device=logits.device)
        options = EISLOptions(self.ngrams)
        rest = {**self.masks, "options": options, "generator": seeds}
        if self.kind == "paths":
            terms = eisl_dag_log_prob_terms(logits, *links, self.targets, **rest)
            return terms.total().sum()
        if self.kind == "ctc":
            terms = eisl_ctc_terms(logits, self.targets, self.blank, **rest)
        else:
            terms = eisl_dag_terms(logits, *links, self.targets, **rest)
        return terms.total().sum()

    def step(self, system):
        """Forward and backward."""
        grads = torch.autograd.grad(getattr(self, system)(), self.leaves)
        assert all(grad is not None for grad in grads)


SYSTEMS = ("likelihood", "eisl")


def memory_of(kind, system, size, ngrams, dtype, device):
    """Bytes above the inputs at the peak of one step, in this process."""
    work = Work(kind, size, ngrams, dtype, device)
    # Memory of the first call of anything (thread pools, caches) is nobody's price.
    Work(kind, (2, 8, 4, 100), ngrams, dtype, device).step(system)
    return peak_memory(lambda: work.step(system), device)


def measured_memory(kind, system, size, args):
    """The same, on a CPU in a process of its own; on CUDA the allocator knows."""
    if args.device == "cuda":
        given = orders_of(args.ngrams), getattr(torch, args.dtype), torch.device(args.device)
        return memory_of(kind, system, size, *given)
    command = [sys.executable, __file__, "--memory-of", system, "--kinds", kind]
    command += ["--sizes", "x".join(map(str, size)), "--ngrams", args.ngrams]
    command += ["--dtype", args.dtype, "--device", args.device]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{kind} {system}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def rows_of(kind, size, args):
    """Rows of one kind and size; both systems take turns."""
    dtype, device = getattr(torch, args.dtype), torch.device(args.device)
    shown, work = "x".join(map(str, size)), Work(kind, size, orders_of(args.ngrams), dtype, device)
    steps = {
        system: lambda system=system: seconds_of(lambda: work.step(system), device)
        for system in SYSTEMS
    }
    times = taking_turns(steps, args.repeats, f"{kind} {shown}")
    rows = []
    for system in SYSTEMS:
        milliseconds = [1e3 * seconds for seconds in times[system]]
        row = {"kind": kind, "system": system, "size": shown, "ngrams": args.ngrams}
        row.update(dtype=args.dtype, beside="none", total_ms=statistics.median(milliseconds))
        row.update(total_ms_q20=q20(milliseconds), total_ms_q80=q80(milliseconds))
        row["peak_bytes"] = measured_memory(kind, system, size, args)
        rows.append(row)
    for row in rows:
        row["time_to_likelihood"] = row["total_ms"] / rows[0]["total_ms"]
        row["memory_to_likelihood"] = row["peak_bytes"] / max(1, rows[0]["peak_bytes"])
    return rows


def sizes_of(text):
    try:
        sizes = [tuple(int(n) for n in size.split("x")) for size in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or any(len(size) != 4 or min(size) < 2 for size in sizes):
        raise SystemExit(
            f"--sizes: BxLxSxV[,BxLxSxV] is needed, such as {SIZES['ctc']}, not {text!r}"
        )
    return sizes


def main():
    parser = parser_of(__doc__.splitlines()[0], repeats=5)
    parser.add_argument(
        "--kinds", default=",".join(SIZES), help="ctc, dag, paths, joined by commas"
    )
    parser.add_argument("--sizes", help="BxLxSxV, several by , (default: two that fit the kind)")
    parser.add_argument("--ngrams", default="2,3,4")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    kinds, ngrams = args.kinds.split(","), orders_of(args.ngrams)
    if not set(kinds) <= set(SIZES):
        parser.error(f"--kinds: {args.kinds} is unknown; choose from {', '.join(SIZES)}")
    sizes = {kind: sizes_of(args.sizes or SIZES[kind]) for kind in kinds}
    if args.repeats < 1:
        parser.error(f"--repeats must be 1 or more, not {args.repeats}")
    if args.memory_of:
        dtype, device = getattr(torch, args.dtype), torch.device(args.device)
        print(memory_of(kinds[0], args.memory_of, sizes[kinds[0]][0], ngrams, dtype, device))
        return
    torch.manual_seed(1)
    settings, rows = known(), []
    for kind in kinds:
        for size in sizes[kind]:
            for row in rows_of(kind, size, args):
                rounded = {k: f"{v:.3f}" if isinstance(v, float) else v for k, v in row.items()}
                rows.append({**rounded, **settings})
    shown = ["kind", "system", "size", "total_ms", "time_to_likelihood", "memory_to_likelihood"]
    report(rows, shown, args.out)


if __name__ == "__main__":
    main()
