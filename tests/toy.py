"""A tiny corpus, tiny models, and fast runs of the stock fairseq commands on them.

Nothing here is a test. The corpus is preprocessed once a session, by the fixture ``toy``
in ``conftest.py``.
"""

import functools
import importlib.metadata
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, List, NamedTuple, Sequence, Tuple

import torch

ROOT = Path(__file__).resolve().parent.parent
USER_DIR = str(ROOT / "fairseq_eisl")

SIZES = {"train": 200, "valid": 20, "test": 10}
WORDS = [f"w{i}" for i in range(20)] + ["al@@ x", "be@@ ta", "ga@@ m@@ ma"]

CPU = ["--cpu", "--num-workers", "0", "--no-progress-bar", "--log-format", "simple"]
LANGUAGES = ["-s", "en", "-t", "de"]
TRAINING = [*CPU, "--optimizer", "adam", "--lr", "0.005", "--max-tokens", "200"]
TINY = [
    *("--encoder-embed-dim", "32", "--encoder-ffn-embed-dim", "64"),
    *("--encoder-layers", "1", "--encoder-attention-heads", "2"),
    *("--decoder-embed-dim", "32", "--decoder-ffn-embed-dim", "64"),
    *("--decoder-layers", "1", "--decoder-attention-heads", "2"),
]
# The size of each architecture, by the name of --arch.
ARCHS = {
    "transformer": [*TINY, "--share-all-embeddings"],
    "bart_base": [*TINY, "--max-source-positions", "64", "--max-target-positions", "64"],
    "lstm": [
        *("--encoder-embed-dim", "32", "--encoder-hidden-size", "32"),
        *("--decoder-embed-dim", "32", "--decoder-hidden-size", "32"),
        *("--decoder-out-embed-dim", "32", "--share-all-embeddings"),
    ],
}
# The same for models that are not autoregressive, and the --noise that each is trained with.
NAT = [*TINY, "--share-all-embeddings", "--encoder-learned-pos", "--decoder-learned-pos"]
NAT_ARCHS = {
    "nonautoregressive_transformer": [*NAT, "--noise", "full_mask"],
    # A beam wider than the dictionary is an error of fairseq's CRF layer.
    "nacrf_transformer": [*NAT, "--noise", "full_mask", "--crf-beam-approx", "8"],
    "iterative_nonautoregressive_transformer": [*NAT, "--noise", "full_mask", "--train-step", "2"],
    "cmlm_transformer": [*NAT, "--noise", "random_mask"],
    "levenshtein_transformer": [*NAT, "--noise", "random_delete", "--early-exit", "1,1,1"],
}
# And of those whose alignment is latent, which have criterions of their own.
LATENT_ARCHS = {
    "ctc_transformer": [*NAT, "--noise", "full_mask"],
    "dag_transformer": [*NAT, "--noise", "full_mask"],
}
NON_AUTOREGRESSIVE = {**NAT_ARCHS, **LATENT_ARCHS}
NAT_TASK = ["--task", "noisy_translation_lev"]


def write_corpus(folder: Path) -> List[str]:
    """Copy pairs of 2 to 8 words as ``folder/SPLIT.{en,de}``; the sentences of ``test``."""
    rng = Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    for split, size in SIZES.items():
        lines = [" ".join(rng.choices(WORDS, k=rng.randint(2, 8))) for _ in range(size)]
        for side in ("en", "de"):
            (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines))
    return lines


def preprocess(raw: Path, bin_dir: Path, *flags: str):
    """Run ``fairseq-preprocess`` on a corpus of :func:`write_corpus`."""
    splits = [f for split in SIZES for f in (f"--{split}pref", str(raw / split))]
    code, output = run_cli(
        "fairseq-preprocess", *LANGUAGES, *splits, "--destdir", str(bin_dir), *flags
    )
    assert code == 0, output


def train(data, save_dir, *flags: str, arch: str = "transformer", **options) -> Tuple[int, str]:
    """Run ``fairseq-train`` with a tiny model; later flags override earlier ones."""
    return run_cli(
        "fairseq-train",
        *(str(data), "--user-dir", USER_DIR, "--save-dir", str(save_dir)),
        *(*TRAINING, *LANGUAGES),
        *("--arch", arch, *{**ARCHS, **NON_AUTOREGRESSIVE}[arch]),
        *(NAT_TASK if arch in NON_AUTOREGRESSIVE else []),
        *flags,
        **options,
    )


def hypotheses(output: str) -> List[str]:
    """The hypotheses in the output of ``fairseq-generate`` or ``-interactive``."""
    return re.findall(r"^H-\d+\t.*$", output, flags=re.M)


# -- models in this process ----------------------------------------------------------------


class Setup(NamedTuple):
    """What ``fairseq-train`` builds from its flags."""

    cfg: Any
    task: Any
    model: torch.nn.Module
    criterion: torch.nn.Module

    def sample(self, pairs: Sequence, ids=None):
        """A batch as fairseq collates it; see :func:`make_sample`."""
        return make_sample(self.task, pairs, ids)


def setup(
    data,
    *flags: str,
    arch: str = "transformer",
    criterion: str = "eisl",
    seed: int = 2,
    scale: float = 4.0,
    **options,
) -> Setup:
    """Task, model (in training mode) and criterion, built from flags by fairseq.

    The model's weights are far larger than at the start of a training, so that its
    output has structure. ``options`` are fields of the criterion's configuration.
    """
    from fairseq import tasks

    cfg = parse(str(data), "--criterion", criterion, *flags, arch=arch)
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(seed)
    model = task.build_model(cfg.model).train()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                if "crf_layer" in name and not parameter.any():
                    parameter.normal_()  # the transitions of NAT-CRF begin at zero
                parameter.mul_(scale)
            elif "norm" in name and name.endswith("weight"):
                parameter.normal_()  # else a model with tied embeddings repeats its input
    cfg = cfg.copy()
    cfg.criterion.update(options)
    return Setup(cfg, task, model, task.build_criterion(cfg.criterion).train())


@functools.lru_cache(maxsize=None)
def parse(data: str, *flags: str, arch: str = "transformer"):
    """The configuration of ``fairseq-train data --user-dir ... flags``; dropout is off."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    sizes = {**ARCHS, **NON_AUTOREGRESSIVE}
    chosen = [data, "--user-dir", USER_DIR, *TRAINING, "--arch", arch, *sizes.get(arch, [])]
    if "--task" not in flags:
        task = NAT_TASK if arch in NON_AUTOREGRESSIVE else ["--task", "noisy_translation"]
        chosen += [*LANGUAGES, *task]
    if arch in sizes:
        chosen += ["--dropout", "0"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq speaks to hydra in an old way
        parser = options.get_training_parser()
        args = options.parse_args_and_arch(parser, input_args=[*chosen, *flags])
        return convert_namespace_to_omegaconf(args)


def make_sample(task, pairs: Sequence, ids=None):
    """A batch as fairseq collates it: (source, target) strings, or one string for both.

    For tasks of non-autoregressive models with start symbols and the decoder's input.
    """
    from fairseq.data import LanguagePairDataset

    from fairseq_eisl.data.partial_targets import PartialTargetDataset

    pairs = [(pair, pair) if isinstance(pair, str) else pair for pair in pairs]
    dictionary = task.target_dictionary

    nat = not getattr(task, "autoregressive", True)

    def encode(line):
        tokens = dictionary.encode_line(line, add_if_not_exist=False).long()
        return torch.cat([tokens.new_tensor([dictionary.bos()]), tokens]) if nat else tokens

    source, target = ([encode(pair[side]) for pair in pairs] for side in (0, 1))
    dataset = LanguagePairDataset(
        source,
        [len(s) for s in source],
        dictionary,
        target,
        [len(t) for t in target],
        dictionary,
        left_pad_source=not nat,
        left_pad_target=bool(getattr(task.cfg, "left_pad_target", False)),
    )
    if nat:
        kind, share = str(task.cfg.noise), task.cfg.full_mask_prob
        factor = task.cfg.axe_length_factor
        dataset = PartialTargetDataset(dataset, kind, share, task.symbols, length_factor=factor)
    items = [dataset[i] for i in range(len(pairs))]
    for item, index in zip(items, range(len(pairs)) if ids is None else ids):
        item["id"] = index
    return dataset.collater(items)


# -- the stock commands --------------------------------------------------------------------


def environment() -> dict:
    """This process's environment, less what would hide faults of the plugin."""
    env = dict(os.environ, OMP_NUM_THREADS="1")
    env.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    return env


def run_cli(name: str, *args: str, stdin: str = "", cwd=None, timeout: float = 300, before=None):
    """Run a console script in a forked child: ``(return code, stdout and stderr)``.

    As the installed script does, but without the seconds that importing torch and
    fairseq takes. ``before()`` is called in the child first.
    """
    return start_cli(name, *args, stdin=stdin, cwd=cwd, before=before).wait(timeout)


def start_cli(name: str, *args: str, stdin: str = "", cwd=None, before=None) -> "Child":
    """As :func:`run_cli`, without waiting for the end.

    A training names its folder: without one, all that run at a time would share ./checkpoints,
    also with --no-save, and fairseq tries there whether it can write.
    """
    assert name != "fairseq-train" or cwd or "--save-dir" in args or {"-h", "--help"} & set(args), (
        args
    )
    _warm_up()
    return Child(lambda: call_script(name, *args), stdin, cwd, before)


def start_two_ranks(*flags: str, before=None) -> List["Child"]:
    """``fairseq-train`` on two workers that meet at a free port, each in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        start_cli(
            *("fairseq-train", *flags, "--distributed-world-size", "2"),
            *("--distributed-rank", str(rank), "--distributed-no-spawn"),
            *("--distributed-init-method", f"tcp://127.0.0.1:{port}"),
            *("--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"),
            before=before,
        )
        for rank in (0, 1)
    ]


@functools.lru_cache(maxsize=None)
def _warm_up():
    """Do here, once, what every child would spend seconds on: imports, and hydra's parser."""
    import torch._dynamo  # noqa: F401 (each optimiser imports it)

    parse("nowhere", "--criterion", "cross_entropy")


def call_script(name: str, *args: str):
    """What the installed console script does."""
    (script,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    for module in [m for m in sys.modules if m.split(".")[0] == "fairseq_cli"]:
        del sys.modules[module]  # its import sets the logging up
    sys.argv = [name, *map(str, args)]
    sys.exit(script.load()())


class Child:
    """A forked child of this process that runs ``main`` with its output in a file."""

    def __init__(self, main, stdin: str = "", cwd=None, before=None):
        self.output = tempfile.TemporaryFile()
        with tempfile.TemporaryFile() as source:
            source.write(stdin.encode())
            source.flush()
            source.seek(0)
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                self._run(main, source, cwd, before)

    def _run(self, main, source, cwd, before):
        code = 1
        try:
            os.dup2(source.fileno(), 0)
            for stream in (1, 2):
                os.dup2(self.output.fileno(), stream)
            sys.stdin, sys.stdout, sys.stderr = (
                open(i, "w" if i else "r", buffering=1, encoding="utf-8", closefd=False)
                for i in range(3)
            )
            _as_in_a_fresh_process()
            if cwd is not None:
                os.chdir(cwd)
            if before is not None:
                before()
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def wait(self, timeout: float = 300) -> Tuple[int, str]:
        end = time.monotonic() + timeout
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise TimeoutError(f"no end after {timeout} s:\n{self._read()}")
            time.sleep(0.01)
        return os.waitstatus_to_exitcode(status), self._read()

    def _read(self) -> str:
        self.output.seek(0)
        with self.output as f:
            return f.read().decode(errors="replace")


def _as_in_a_fresh_process():
    """Undo what pytest and earlier tests left in the process."""
    import logging

    for key in set(os.environ) - set(environment()):
        del os.environ[key]
    for handler in list(logging.root.handlers):
        logging.root.removeHandler(handler)
    logging.root.setLevel(logging.WARNING)
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    if "fairseq" in sys.modules:
        from fairseq.logging import metrics

        metrics.reset()
    torch.manual_seed(0)


def run_process(*command: str, cwd=None, env=None, timeout: float = 300) -> Tuple[int, str]:
    """Run a command in a real fresh process: ``(return code, stdout and stderr)``.

    A first word ``python`` or ``fairseq-...`` means the one beside ``sys.executable``.
    """
    first, *rest = map(str, command)
    if first == "python":
        first = sys.executable
    elif first.startswith("fairseq-"):
        first = str(Path(sys.executable).parent / first)
    done = subprocess.run(
        [first, *rest],
        cwd=cwd,
        env={**environment(), **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return done.returncode, done.stdout
