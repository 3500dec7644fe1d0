#!/usr/bin/env python3
"""Time of whole training steps of the comparison methods, against cross entropy, in one run.

    python scripts/benchmarks/rivals.py --out rows.csv
    python scripts/benchmarks/rivals.py --kinds ar --batch 16 --repeats 3

A step is forward and backward of a small model (3+3 layers, 128 wide) on random sentences:
  ar     a Transformer: the methods that decode, sample or weigh, and EISL
  nat    CMLM: bags of n-grams, alignments, orders, and EISL
The models, the batch, the columns of the rows and their medians are those of steps.py.
"""

from types import SimpleNamespace

import torch
from common import known, parser_of, report
from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY
from steps import check_sizes, make_model, make_sample, make_task, measured_steps, stock, with_sizes

import fairseq_eisl

SYSTEMS = {
    "ar": {
        "eisl 12": ("eisl", {"ngram": "1,2"}),
        "policy gradient, self-critical": ("policy_gradient", {}),
        "policy gradient, 4 samples": ("policy_gradient", {"pg_samples": 4, "pg_baseline": "rloo"}),
        "best of 4": ("best_of_n", {}),
        "contrastive margin": ("contrastive_margin", {}),
        "loss truncation": ("loss_truncation", {}),
        "tailr": ("token_weighted", {}),
        "error norm": ("token_weighted", {"token_weighting": "error_norm"}),
    },
    "nat": {
        "eisl 234": ("eisl", {"ngram": "2,3,4"}),
        "bag of 2-grams": ("bag_of_ngrams", {}),
        "axe": ("axe", {"axe_blank": "w0"}),
        "oaxe": ("oaxe", {}),
        "convex": ("token_weighted", {"token_weighting": "convex"}),
    },
}


def criterion(name, task, options):
    """A registered criterion with its default flags, but for the options."""
    config = CRITERION_DATACLASS_REGISTRY[name](**options)
    return CRITERION_REGISTRY[name](config, task).train()


def systems(kind, task):
    """Name to a function of model and sample that gives the loss; cross entropy first."""

    def of(made):
        return lambda model, sample: made(model, sample)[0]

    name, base = stock(kind, task)
    made = {
        label: of(criterion(registered, task, options))
        for label, (registered, options) in SYSTEMS[kind].items()
    }
    return {name: of(base), **made}


def measured(kind, args):
    """Rows of one kind of model."""
    device, dtype = torch.device(args.device), getattr(torch, args.dtype)
    task = make_task(args.vocabulary)
    # Outputs of policy gradient and beams are as long as sources say, not as positions do.
    task.cfg = SimpleNamespace(max_target_positions=1024)
    model = make_model(kind, task, device, dtype)
    sample = make_sample(kind, task, args.batch, args.length, device)
    return measured_steps(f"{kind} rivals", systems(kind, task), model, sample, args)


def main():
    parser = with_sizes(parser_of(__doc__.splitlines()[0], repeats=5))
    parser.add_argument("--kinds", default="ar,nat", help="ar, nat, joined by commas")
    args = parser.parse_args()
    check_sizes(parser, args, SYSTEMS)
    fairseq_eisl.register()
    settings = known()
    rows = [{**row, **settings} for kind in args.kinds.split(",") for row in measured(kind, args)]
    shown = ["kind", "system", "step_ms", "step_ms_q20", "step_ms_q80", "ratio_to_first"]
    report(rows, shown, args.out)


if __name__ == "__main__":
    main()
