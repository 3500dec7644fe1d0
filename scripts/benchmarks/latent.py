#!/usr/bin/env python3
"""Time and memory of losses over latent alignments, against the plain likelihood, in one run.

    python scripts/benchmarks/latent.py --out rows.csv
    python scripts/benchmarks/latent.py --kinds paths --sizes 32x240x32x4000 --repeats 3

For every size (B x L x S x V: sentences, slots, target tokens, symbols) loss and backward of
"likelihood", that of --criterion ctc_loss or dag_loss, of "eisl", and of "plain", the likelihood as
one writes it with torch alone:
  ctc    from logits: plain is torch's ctc_loss behind a log-softmax
  dag    from logits and transitions: plain is a logsumexp over transitions for each target token
  paths  the same from log-probabilities of the target's tokens, which all make in one way, and
         transitions
"shared" is what all begin and end with where that is the same: those log-probabilities and the
gradient of the logits, which no loss can do without. "..._in_place" writes this gradient into the
logits' own memory, as the criterions do where nobody else needs them (torch's ctc_loss cannot).
Systems take turns; medians. Peaks of memory are above the inputs, each system in a process of its
own (on Linux). The last columns are ratios to plain and to the likelihood; of what is in place to
these in place, where they can be.
"""

import argparse
import json
import os
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
from torch.nn import functional as F

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
IN_PLACE = "_in_place"
SYSTEMS = {
    "ctc": ("plain", "likelihood", "eisl", "likelihood_in_place", "eisl_in_place"),
    "dag": (
        *("plain", "likelihood", "eisl", "shared"),
        *("plain_in_place", "likelihood_in_place", "eisl_in_place", "shared_in_place"),
    ),
    "paths": ("plain", "likelihood", "eisl"),
}


def plain_dag_log_likelihood(log_probs, links):
    """(B,) of (B, L, S) log-probabilities of target tokens and (B, L, L) of transitions, all real:
    token by token in the log domain."""
    links = links.clamp(min=-1e30)
    paths = torch.full_like(log_probs[:, :, 0], -1e30)
    paths = torch.cat([log_probs[:, :1, 0], paths[:, 1:]], 1)
    for s in range(1, log_probs.size(2)):
        paths = (paths.unsqueeze(2) + links).logsumexp(1) + log_probs[:, :, s]
    return paths[:, -1]


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

    def likelihood(self, in_place):
        """The sum over sentences of the NLL."""
        logits, *links = self.leaves
        if self.kind == "ctc":
            rest = {**self.masks, "in_place": in_place}
            return -ctc_log_likelihood(logits, self.targets, self.blank, **rest).sum()
        found = logits if self.kind == "paths" else self.log_probs(in_place)
        return -dag_log_likelihood(found, *links, **self.masks).sum()

    def plain(self, in_place):
        """The same, with torch alone."""
        logits, *links = self.leaves
        if self.kind == "ctc":
            slots, lengths = (mask.sum(1) for mask in self.masks.values())
            log_probs = logits.float().log_softmax(2).transpose(0, 1)
            given = {"blank": self.blank, "reduction": "sum"}
            return F.ctc_loss(log_probs, self.targets, slots, lengths, **given)
        found = logits if self.kind == "paths" else self.log_probs(in_place)
        return -plain_dag_log_likelihood(found, *links).sum()

    def log_probs(self, in_place):
        """(B, L, S) of the target's tokens."""
        return token_log_probs(self.leaves[0], self.targets, self.masks["output_mask"], in_place)

    def shared(self, in_place):
        """A sum whose backward is that of the logits alone."""
        return self.log_probs(in_place).sum()

    def eisl(self, in_place):
        """The sum over sentences of EISL."""
        logits, *links = self.leaves
        seeds = torch.arange(len(self.targets), device=logits.device)
        rest = {**self.masks, "options": EISLOptions(self.ngrams), "generator": seeds}
        if self.kind == "paths":
            terms = eisl_dag_log_prob_terms(logits, *links, self.targets, **rest)
        elif self.kind == "dag":
            terms = eisl_dag_terms(logits, *links, self.targets, **rest, in_place=in_place)
        else:
            terms = eisl_ctc_terms(logits, self.targets, self.blank, **rest, in_place=in_place)
        return terms.total().sum()

    def step(self, system):
        """Forward and backward; what is in place leaves other logits behind."""
        name = system.removesuffix(IN_PLACE)
        loss = getattr(self, name)(system.endswith(IN_PLACE))
        leaves = self.leaves[:1] if name == "shared" else self.leaves
        grads = torch.autograd.grad(loss, leaves)
        assert all(grad is not None for grad in grads)


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
    # Freed memory goes back to the system at once; else a peak has what the allocator keeps of it,
    # which differs by a third from run to run.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**16)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{kind} {system}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def rows_of(kind, size, args):
    """Rows of one kind and size; the systems take turns."""
    dtype, device = getattr(torch, args.dtype), torch.device(args.device)
    shown, work = "x".join(map(str, size)), Work(kind, size, orders_of(args.ngrams), dtype, device)
    original = work.leaves[0].detach().clone()

    def seconds(system):
        with torch.no_grad():
            work.leaves[0].copy_(original)
        return seconds_of(lambda: work.step(system), device)

    steps = {system: lambda system=system: seconds(system) for system in SYSTEMS[kind]}
    times = taking_turns(steps, args.repeats, f"{kind} {shown}")
    rows = []
    for system in SYSTEMS[kind]:
        milliseconds = [1e3 * seconds for seconds in times[system]]
        row = {"kind": kind, "system": system, "size": shown, "ngrams": args.ngrams}
        row.update(dtype=args.dtype, beside="none", total_ms=statistics.median(milliseconds))
        row.update(total_ms_q20=q20(milliseconds), total_ms_q80=q80(milliseconds))
        row["peak_bytes"] = measured_memory(kind, system, size, args)
        rows.append(row)
    by_system = {row["system"]: row for row in rows}
    for row in rows:
        for name in ("plain", "likelihood"):
            beside = by_system[name]
            if row["system"].endswith(IN_PLACE):
                beside = by_system.get(name + IN_PLACE, beside)
            row[f"time_to_{name}"] = row["total_ms"] / beside["total_ms"]
            row[f"memory_to_{name}"] = row["peak_bytes"] / max(1, beside["peak_bytes"])
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
    shown = ["kind", "system", "size", "total_ms", "peak_bytes"]
    shown += ["time_to_plain", "memory_to_plain", "time_to_likelihood", "memory_to_likelihood"]
    report(rows, shown, args.out)


if __name__ == "__main__":
    main()
