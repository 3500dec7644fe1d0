"""What the benchmarks have in common: taking turns, the peak of memory, rows and their table."""

import argparse
import sys
import time

import torch

from fairseq_eisl.common.provenance import provenance
from fairseq_eisl.common.rows import append_row


def parser_of(description, repeats):
    """A parser with the flags of every benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--out", help="a CSV file of rows; appended to")
    return parser


def orders_of(text):
    if not all(n.isdecimal() and int(n) > 0 for n in text.split(",")):
        raise SystemExit(f"--ngrams: numbers of 1 or more joined by commas, not {text!r}")
    return tuple(int(n) for n in text.split(","))


def synchronise(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds_of(call, device):
    """Seconds that a call takes."""
    synchronise(device)
    start = time.perf_counter()
    call()
    synchronise(device)
    return time.perf_counter() - start


def taking_turns(steps, repeats, label):
    """What each step has returned, ``repeats`` times; the steps take turns, so that a slow moment
    hits them alike."""
    found = {name: [] for name in steps}
    for repeat in range(repeats + 1):
        for name, step in steps.items():
            result = step()
            if repeat:  # the first one warms up
                found[name].append(result)
        print(f"\r{label}: {repeat}/{repeats}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def q20(values):
    return sorted(values)[int(0.2 * (len(values) - 1))]


def q80(values):
    return sorted(values)[round(0.8 * (len(values) - 1))]


def peak_memory(call, device):
    """Bytes above what is held now at the peak of a call, in this process."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    else:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")  # the peak starts anew
        before = _status("VmRSS")
    call()
    after = torch.cuda.max_memory_allocated() if device.type == "cuda" else _status("VmHWM")
    return after - before


def _status(key):
    with open("/proc/self/status") as f:
        line = next(line for line in f if line.startswith(key + ":"))
    return int(line.split()[1]) * 1024


def known():
    """Columns of what the numbers depend on: versions, machine."""
    return {**provenance(), "threads": torch.get_num_threads()}


def report(rows, shown, out):
    """Print the columns ``shown`` of rows, and append the rows to the file ``out``, if there is
    one. Every row says what computed beside it."""
    assert all("beside" in row for row in rows)
    lines = [shown, *([str(row[name]) for name in shown] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
    for row in rows if out else []:
        append_row(out, row)
