"""``ngrams``: which n-gram orders train best as the noise grows."""

import argparse
import json
import os
import subprocess
import sys
from typing import Any, Dict, List

from ..common.errors import Refused, naming
from ..common.files import whole_file
from ..common.rows import Row, read_rows
from ..evaluation.figures.noise import noise as draw_noise
from ..evaluation.figures.noise_levels import noise_lines, split_noise
from . import options

NOISES = ("repeat:0.1", "repeat:0.3", "repeat:0.5")
_CODE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SHOWN = ("noise", "seed", "system", "bleu")


def add_parser(commands) -> None:
    part = commands.add_parser(
        "ngrams",
        help="an ablation of the n-gram orders at growing noise, by training",
        description="Trains a recipe for every noise, seed and set of orders (as a sweep: what is "
        "done is not done again, cross entropy is trained once a noise and seed), and draws BLEU "
        "against the noise, a line a set of orders.",
    )
    part.add_argument("recipe", help="a YAML file with the stage train.eisl")
    part.add_argument("overrides", nargs="*", metavar="key=value", help="of the recipe")
    part.add_argument(
        "--ngram",
        metavar="ORDERS",
        help="sets of n-gram orders (default: 1 1,2 2,3,4)",
        **options.MANY,
    )
    options.makes_noise(part, NOISES)
    part.add_argument("--seed", type=int, help="of the trainings (default: 1)", **options.MANY)
    part.add_argument("--runs", required=True, metavar="DIR", help="where the sweep lies")
    part.add_argument("--jobs", type=options.positive, default=1, help="trainings at once")
    part.add_argument("--plan", action="store_true", help="check and list them, train nothing")
    options.writes(part)
    part.set_defaults(do=run, default_ngram=["1", "1,2", "2,3,4"])


def run(args: argparse.Namespace) -> None:
    """Train what is not trained yet, print, append and draw it; with --plan only list it."""
    options.check_files(args)
    if not os.path.isfile(args.recipe):
        raise Refused(f"{args.recipe}: there is no such file")
    noises, orders = options.noises(args), args.ngram or args.default_ngram
    for text in orders:
        options.orders_of(text)
    for noise in noises:
        with naming("--noise"):
            split_noise(noise)
    name = os.path.splitext(os.path.basename(args.recipe))[0] + "_ngrams"
    sweep = sweep_of(name, args.recipe, orders, noises, args.seed or [1], args.overrides)
    with naming(f"--runs {args.runs}", args.runs):
        path = _write(sweep, args.runs)
    command = [sys.executable, "-m", "fairseq_eisl.recipes", "sweep", path]
    command += ["--runs", args.runs, "--jobs", str(args.jobs), *(["--plan"] if args.plan else [])]
    code = subprocess.run(command, env=_environment()).returncode
    if args.plan:
        if code:  # why stands in the line that the recipes have printed
            raise SystemExit(code)
        return
    if code:
        raise Refused(f"{args.recipe}: the sweep has failed; run again, it goes on where it was")
    rows = [{"analysis": args.command, **row} for row in swept(os.path.join(args.runs, name))]
    options.finish(args, rows, _SHOWN, lambda rows, path: draw_noise(noise_lines(rows), path))


def sweep_of(
    name: str,
    recipe: str,
    orders: List[str],
    noises: List[str],
    seeds: List[int],
    overrides: List[str],
) -> Dict[str, Any]:
    """The content of the sweep's file; every set of orders has equal weights."""
    return {
        "name": name,
        "recipe": os.path.abspath(recipe),
        "overrides": [*overrides, "train.eisl.flags.ngram-weight=null"],
        "axes": {
            "noise": noises,
            "seed": seeds,
            "ngram": {
                text.replace(",", "-"): [
                    f"train.eisl.flags.ngram='{text}'",
                    f"columns.ngram='{text.replace(',', ' ')}'",
                ]
                for text in orders
            },
        },
    }


def swept(folder: str) -> List[Row]:
    """The rows of a sweep, EISL by its orders; of cross entropy one a noise and seed."""
    rows: Dict[Any, Row] = {}
    for row in read_rows(os.path.join(folder, "rows.csv")):
        orders = row["ngram"].replace(" ", ",")
        name = f"{row['system']} {orders}" if "EISL" in row["system"] else row["system"]
        rows[row["noise"], row["seed"], name] = {**row, "system": name}
    return list(rows.values())


def _write(sweep: Dict[str, Any], runs: str) -> str:
    """The sweep as a file beside its folder; JSON is YAML, too."""
    os.makedirs(runs, exist_ok=True)
    path = os.path.join(runs, f"{sweep['name']}.yaml")
    with whole_file(path) as part, open(part, "w", encoding="utf-8") as f:
        json.dump(sweep, f, indent=2, ensure_ascii=False)
    return path


def _environment() -> Dict[str, str]:
    path = os.pathsep.join(filter(None, [_CODE, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path}
