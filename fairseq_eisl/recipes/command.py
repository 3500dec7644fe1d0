"""The command line: ``python -m fairseq_eisl.recipes plan|run|tune|sweep CONFIG``."""

import argparse
import csv
import os
import sys
from typing import List, Optional

from omegaconf import DictConfig

from ..common.checkout import INSTALLED, ROOT, beside
from ..common.matplotlib_check import why_no_pictures
from ..common.output import drop_output, program
from ..common.run_files import ROWS, UNTUNED
from ..evaluation.metrics.registry import registered
from . import sweep as sweeps
from . import sweep_jobs, sweep_results, tune
from .gpus import check_gpus
from .opening import Opened, open_recipe, open_recipes
from .processes import Stopped, stopping
from .progress import be_quiet, say
from .run_folder import check_folder, write_whole
from .runner import Runner, as_text
from .schema import RecipeError, run_name
from .stage import shell
from .trial_rows import TrialRows

DESCRIPTION = """\
Runs an experiment that a YAML file describes, with the stock commands of fairseq:
prepare, preprocess, train, (average), generate, score. Finished stages are skipped, a
killed run goes on where it was, a changed setting runs what depends on it again.

A CONFIG that is not in the current folder is looked for among those of this package, which lie in
  {configs}
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("fairseq_eisl.recipes", "recipes"),
        description=DESCRIPTION.format(configs=beside("configs")),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, help: str, config: str):
        part = commands.add_parser(name, help=help)
        part.add_argument("config", help=config)
        part.add_argument(
            "overrides",
            nargs="*",
            metavar="key=value",
            help="e.g. seed=2 noise=blank:0.3 train.eisl.flags.lr=1e-4 data.folder=DIR",
        )
        part.add_argument(
            "--runs",
            default="runs" if INSTALLED else os.path.join(ROOT, "runs"),
            metavar="DIR",
            help="where results go; recipes with one folder share the stages in which they agree "
            "(default: %(default)s)",
        )
        return part

    def add_quiet(part):
        part.add_argument("--quiet", action="store_true", help="show failures and results only")

    def add_jobs(part, help: str):
        part.add_argument("--jobs", type=int, default=1, metavar="N", help=help)

    def add_trials(part):
        part.add_argument(
            "--trials",
            metavar="FILE",
            help="rows of trials that were run before (trials.csv); they are not run again",
        )

    for name, help in (
        ("plan", "print the commands, ready to be copied into a shell"),
        ("run", "run what is not done yet"),
        ("tune", "choose among the settings that the recipe lists, on validation, then run it"),
    ):
        part = add(name, help, "a YAML file, e.g. configs/smoke/multi30k_repeat50.yaml")
        part.add_argument(
            "--out", metavar="DIR", help="the run's own folder (default: RUNS/NAME-seedN)"
        )
        part.set_defaults(action={"plan": _plan, "run": _run, "tune": _tune}[name])
        if name != "plan":
            add_quiet(part)
        if name == "run":
            add_jobs(part, "stages at once, each with its own threads (default: %(default)s)")
        if name == "tune":
            add_jobs(
                part,
                "trials of one training at once, and then stages, each with its own threads "
                "(default: %(default)s)",
            )
            add_trials(part)
            part.add_argument(
                "--trial-seed",
                type=int,
                metavar="SEED",
                help="of the trials, where it is another one than the recipe's: runs of several "
                "seeds then have the same settings",
            )
    part = add(
        "sweep", "run a grid of recipes as jobs", "e.g. configs/sweeps/smoke.yaml, or a recipe"
    )
    add_quiet(part)
    add_trials(part)
    part.add_argument("--plan", action="store_true", help="print the cells and their commands")
    part.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="a key and its values, instead of or beside the file's axes; may be given again, "
        "e.g. --axis noise=repeat:0.3,repeat:0.5 --axis seed=1,2",
    )
    part.add_argument(
        "--cluster",
        choices=("local", "slurm"),
        default="local",
        help="processes of this machine, or SLURM (default: %(default)s)",
    )
    add_jobs(part, "at once (default: %(default)s)")
    part.add_argument(
        "--retries", type=int, default=0, help="of a failed cell (default: %(default)s)"
    )
    part.add_argument(
        "--parameters",
        nargs="+",
        default=[],
        metavar="key=value",
        help="of submitit's executor, e.g. slurm_partition=gpu gpus_per_node=1 timeout_min=600",
    )
    part.set_defaults(action=_sweep)
    return parser


def _found(config: str) -> str:
    """A CONFIG; one that is not here, such as configs/text/small.yaml, is looked for among those
    of this package."""
    ours = beside(os.path.normpath(config))
    return ours if not os.path.exists(config) and os.path.isfile(ours) else config


def _plan(args) -> int:
    _check_place("--runs", args.runs, stages=True)
    recipe, stages = open_recipe(args.config, args.overrides)
    print("\n".join(Runner(stages, args.runs).plan()).rstrip())
    return 0


def _run(args) -> int:
    _check_number("jobs", args.jobs, 1)
    _check_place("--runs", args.runs, stages=True)
    if args.out:
        _check_place("--out", args.out)
    opened = open_recipe(args.config, args.overrides)
    check_gpus([opened[0]], args.jobs)
    folder = args.out or os.path.join(args.runs, run_name(opened[0], args.overrides))
    check_folder(folder, [stage.name for stage in opened[1]])
    return _run_opened(opened, folder, args.runs, args.jobs)


def _run_opened(opened: Opened, folder: str, runs: str, jobs: int = 1) -> int:
    recipe, stages = opened
    runner = Runner(stages, runs)
    if not runner.cache.is_done(runner.path(stages[-1].name)):
        _check_pictures()
    try:
        runner.run(folder, recipe, jobs)
    except RecipeError as err:
        print(f"recipes: {err}", file=sys.stderr)
        return 1
    print(_summary(recipe, os.path.join(folder, ROWS)))
    say(f"rows and pictures are beside the page: {os.path.join(folder, 'report.html')}")
    return 0


def _tune(args) -> int:
    _check_number("jobs", args.jobs, 1)
    _check_place("--runs", args.runs, stages=True)
    if args.out:
        _check_place("--out", args.out)
    seed = [] if args.trial_seed is None else [f"seed={args.trial_seed}"]
    before = TrialRows.read(args.trials)
    tune.check_trials(args.config, [*args.overrides, *seed])
    untuned, stages = open_recipe(args.config, args.overrides)
    check_gpus([untuned], args.jobs)
    _check_pictures()
    name = f"{run_name(untuned, args.overrides)}-tuned"
    folder = args.out or os.path.join(args.runs, name)
    check_folder(folder, [stage.name for stage in stages])
    try:
        given = [*args.overrides, *seed]
        chosen = tune.choose(args.config, given, args.runs, folder, before, args.jobs)
    except RecipeError as err:
        print(f"recipes: {err}", file=sys.stderr)
        return 1
    tried = open_recipe(args.config, [*args.overrides, *chosen.overrides], chosen.rows)
    code = _run_opened(tried, folder, args.runs, args.jobs)
    if not code:  # of which settings the rows are, before some were chosen
        write_whole(os.path.join(folder, UNTUNED), as_text(untuned, args.trial_seed))
        shown = ("training", "setting", "score", "at_update", "chosen", "flags")
        print(sweep_results.as_table([{key: row[key] for key in shown} for row in chosen.rows]))
    return code


def _check_pictures():
    """The last stage draws: say what is missing before the first one runs."""
    reason = why_no_pictures()
    if reason:
        raise RecipeError(reason)


def _check_number(flag: str, number: int, least: int):
    if number < least:
        raise RecipeError(f"--{flag}: {least} or more is needed, not {number}")


def _check_place(flag: str, path: str, stages: bool = False):
    """Whether results can be written below a folder, before anything runs."""
    whole = os.path.abspath(path)
    if stages:
        # fairseq takes a folder with a colon for two, and ${ for a variable; logs and tables have
        # paths in their lines.
        wrong = [sign for sign in whole if not sign.isprintable()]
        wrong += [sign for sign in (":", "${") if sign in whole]
        if wrong:
            raise RecipeError(f"{flag}: {whole!r}: fairseq cannot use a path with {wrong[0]!r}; "
                              "choose another folder")  # fmt: skip
    there = whole
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise RecipeError(f"{flag}: {path}: {there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RecipeError(f"{flag}: {path}: {there} cannot be written to")


def _summary(recipe: DictConfig, path: str) -> str:
    """The scores of a run, for people; rows.csv has more."""
    names = ["system", *(key for variant in recipe.variants for key in variant.columns)]
    own = [m for m in registered() if m.flags and recipe.score.get(m.flags[0].name[2:])]
    names += ["bleu", *(column.name for metric in own for column in metric.columns)]
    names += ["chrf", "ter", "repetition", "length_ratio", "sentences"]
    with open(path, encoding="utf-8", newline="") as f:
        rows = [{name: row.get(name, "") for name in names} for row in csv.DictReader(f)]
    return sweep_results.as_table(rows)


def _sweep(args) -> int:
    _check_number("jobs", args.jobs, 1)
    _check_number("retries", args.retries, 0)
    _check_place("--runs", args.runs, stages=True)
    sweep = sweeps.load_sweep(args.config, args.axis, args.overrides, args.trials)
    TrialRows.read(sweep.trials)
    cells = sweeps.cells(sweep)
    every = [cell.overrides for cell in cells]
    for overrides in sweeps.of_trials(sweep, cells):
        every += tune.variations(sweep.recipe, overrides)
    opened = open_recipes(sweep.recipe, every, here=args.cluster != "slurm")
    check_gpus([recipe for recipe, _ in opened], args.jobs, args.cluster == "slurm")
    if args.plan:
        for cell in cells:
            done = " (done)" if sweeps.is_done(sweep, cell, args.runs) else ""
            print(f"# {cell.name}{done}\n{shell(sweeps.command_of(sweep, cell, args.runs))}")
        return 0
    todo = [cell for cell in cells if not sweeps.is_done(sweep, cell, args.runs)]
    if todo:
        _check_pictures()
    say(f"{len(cells)} cells, {len(cells) - len(todo)} done before")
    parameters = sweep_jobs.executor_parameters(args.parameters)
    options = sweep_jobs.Options(args.cluster, args.jobs, args.retries, parameters)
    failed = sweep_jobs.run_cells(sweep, todo, args.runs, options) if todo else {}
    table = sweep_results.gather(sweep, args.runs)
    if table:
        print(sweep_results.as_table(sweep_results.by_way(table)))
        for path in sweep_results.draw(sweep, args.runs):
            say(path)
    say(f"{len(table)} of {len(cells)} cells: {sweeps.folder_of(sweep, args.runs)}/{ROWS}")
    for name, reason in failed.items():
        print(f"recipes: {name} failed: {reason}", file=sys.stderr)
    return 1 if failed or len(table) < len(cells) else 0


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command; 0 if it went well, 2 after one line on a wrong recipe, 1 on a failure."""
    parser = _parser()
    # key=value may also come after an option, where argparse does not look for it.
    args, rest = parser.parse_known_args(argv)
    args.overrides += [text for text in rest if not text.startswith("-")]
    rest = [text for text in rest if text.startswith("-")]
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    be_quiet(getattr(args, "quiet", False))
    args.config = _found(args.config)
    try:
        with stopping():
            code = args.action(args)
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
    except RecipeError as err:
        print(f"recipes: {err}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` closed the pipe: no more output is wanted
        drop_output()
        return 141
    except OSError as err:
        drop_output()
        place = f"{err.filename}: " if err.filename else ""
        print(f"recipes: {place}{err.strerror or err}", file=sys.stderr)
        return 1
    except (Stopped, KeyboardInterrupt) as err:
        number = getattr(err, "number", 2)
        name = getattr(err, "name", "SIGINT")
        print(f"recipes: stopped by {name}; run it again to go on", file=sys.stderr)
        return 128 + number
