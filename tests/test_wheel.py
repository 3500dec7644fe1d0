"""What a user gets who installs the package: the sdist, the wheel that is built from it, and the
wheel in an environment where little else is."""

import functools
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import fairseq_eisl
from tests.toy import ROOT, run_process

BUILD = "import sys, setuptools.build_meta as b; print(getattr(b, sys.argv[1])(sys.argv[2]))"


def build(what: str, checkout: Path, out: Path) -> Path:
    code, output = run_process("python", "-c", BUILD, what, out, cwd=checkout)
    assert code == 0, output[-3000:]
    return out / output.split()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """Of a copy of what git has of this checkout: a build writes into it."""
    copy = tmp_path_factory.mktemp("checkout") / "copy"
    skipped = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info", "build", "dist", "runs")
    shutil.copytree(ROOT, copy, ignore=skipped)
    return build("build_sdist", copy, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("from_sdist")
    with tarfile.open(sdist) as archive:
        # The filter came with Python 3.11.4; the archive is one of ours.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)
    (source,) = folder.iterdir()
    return build("build_wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory) -> Path:
    """The wheel, unpacked as pip does it."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def tracked(*patterns: str) -> set:
    """Files of the checkout, but for what runs leave behind."""
    found = (path for pattern in patterns for path in ROOT.glob(pattern))
    return {
        path.relative_to(ROOT).as_posix()
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_sdist_is_the_checkout(sdist):
    with tarfile.open(sdist) as archive:
        there = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("fairseq_eisl", "configs", "scripts", "tests", "data", "docs")
    expected = tracked(*(f"{folder}/**/*" for folder in folders)) | {
        *("README.md", "LICENSE", "CONTRIBUTING.md", "Makefile", "constraints.txt", "setup.py"),
        *("pyproject.toml", "MANIFEST.in"),
    }
    assert expected <= there, sorted(expected - there)


def test_the_wheel_has_the_package_and_what_recipes_need(site):
    assert tracked("fairseq_eisl/**/*") <= {
        path.relative_to(site).as_posix() for path in site.rglob("*")
    }
    share = site / "fairseq_eisl" / "share"
    for path in tracked("configs/**/*", "scripts/prepare/*", "scripts/lib/*"):
        assert (share / path).read_bytes() == (ROOT / path).read_bytes()
    assert (share / "data/toy_corpus.py").exists()
    assert not (share / "tests").exists() and not (share / "data/results").exists()


def test_the_metadata_say_what_it_is(site):
    (info,) = site.glob("*.dist-info")
    about = importlib.metadata.Distribution.at(info)
    assert about.metadata["License-Expression"] == "MIT" and (info / "licenses/LICENSE").exists()
    assert about.metadata["Description-Content-Type"] == "text/markdown"
    assert any("arxiv.org" in url for url in about.metadata.get_all("Project-URL"))
    assert "Typing :: Typed" in about.metadata.get_all("Classifier")
    assert {"fairseq-deps", "huggingface", "plots", "sweep"} <= set(
        about.metadata.get_all("Provides-Extra")
    )


# -- beside torch alone --------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def needed_by(name: str) -> frozenset:
    """The distributions that one needs, itself among them, as they are installed here."""
    found, waiting = set(), [name]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform
        if name not in found:
            found.add(name)
            waiting += [
                re.match(r"[\w.-]+", need)[0] for need in requires if "extra ==" not in need
            ]
    return frozenset(found)


def link(name: str, folder: Path):
    """Give a distribution of this environment to another one."""
    about = importlib.metadata.distribution(name)
    for top in {file.parts[0] for file in about.files if file.parts[0] != ".."}:
        source = Path(str(about.locate_file(top)))
        if top != "__pycache__" and source.exists() and not (folder / top).exists():
            (folder / top).symlink_to(source)


def new_environment(place: Path, wheel: Path, *names: str) -> Path:
    """The folder of commands of a new environment that has some distributions, what those need,
    and the wheel, installed with --no-deps."""
    venv.create(place, symlinks=True, with_pip=False)
    (packages,) = place.glob("lib/python*/site-packages")
    for name in set().union(*map(needed_by, names)):
        link(name, packages)
    install = ["-m", "pip", "--python", place, "install", "-q", "--no-deps", "--no-index", wheel]
    code, output = run_process("python", *install)
    assert code == 0, output
    return place / "bin"


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """Such an environment with torch alone."""
    return new_environment(tmp_path_factory.mktemp("bare"), wheel, "torch")


def run(command, *words, cwd) -> subprocess.CompletedProcess:
    """A command that sees nothing of this environment."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [command, *map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )


BESIDE_TORCH = """
import importlib.util, sys, warnings
warnings.simplefilter("ignore")  # torch misses numpy
absent = ("fairseq", "hydra", "omegaconf", "numpy", "sacrebleu", "transformers", "trl")
assert not [name for name in absent if importlib.util.find_spec(name)]
import torch
import fairseq_eisl
from fairseq_eisl import decoding, integrations, noise
from fairseq_eisl.losses import EISLLoss, eisl_loss
assert fairseq_eisl.__file__.startswith(sys.prefix)
logits = torch.randn(2, 7, 10, requires_grad=True)
eisl_loss(logits, torch.randint(10, (2, 5))).backward()
assert logits.grad.isfinite().all() and logits.grad.any()
table = torch.eye(5)[torch.tensor([3, 4, 2])]
first, limit = torch.tensor([2]), torch.tensor([4])
start = lambda prefix: lambda step: table[step : step + 1]
assert decoding.decode(start, first, limit, 4, pad=1, eos=2).tokens.tolist() == [[3, 4, 2, 1]]
print(fairseq_eisl.__version__)
"""


def test_the_losses_work_beside_torch_alone(bare, tmp_path):
    done = run(bare / "python", "-c", BESIDE_TORCH, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [fairseq_eisl.__version__]


def test_the_console_command(bare, tmp_path):
    """What needs no more than there is: help, version, the folder, noise."""
    command = bare / "fairseq-eisl"
    done = run(command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    for word in ("noise", "recipes", "evaluate", "checkpoints", "user-dir"):
        assert f"\n  {word}" in done.stdout
    version = fairseq_eisl.__version__
    assert run(command, "--version", cwd=tmp_path).stdout.split() == ["fairseq_eisl", version]
    done = run(command, "user-dir", cwd=tmp_path)
    assert done.returncode == 0 and Path(done.stdout.strip(), "tasks").is_dir()
    assert "pip install --no-deps ve-fairseq" in done.stderr
    assert run(command, "noise", "--help", cwd=tmp_path).stdout.startswith(
        "usage: fairseq-eisl noise"
    )
    done = run(command, "nois", cwd=tmp_path)
    assert done.returncode == 2 and "choose from" in done.stderr.splitlines()[-1]


BESIDE_TRANSFORMERS = """
import importlib.util, sys
assert not [name for name in ("fairseq", "torchaudio") if importlib.util.find_spec(name)]
import torch
from transformers import BartConfig, BartForConditionalGeneration
import fairseq_eisl
from fairseq_eisl.integrations.huggingface import EISLConfig, EISLTrainer
assert fairseq_eisl.__file__.startswith(sys.prefix)
size = dict(vocab_size=20, d_model=8, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=8,
            decoder_ffn_dim=8, encoder_attention_heads=1, decoder_attention_heads=1)
row = {"input_ids": torch.tensor([4, 5, 2]), "labels": torch.tensor([6, 7, 2])}
args = EISLConfig(output_dir=sys.argv[1], max_steps=1, report_to=[], use_cpu=True,
                  logging_steps=1, save_strategy="no", disable_tqdm=True)
model = BartForConditionalGeneration(BartConfig(**size))
trainer = EISLTrainer(model=model, args=args, train_dataset=[row] * 4)
trainer.train()
assert trainer.state.log_history[0]["eisl"] > 0
"""


def test_a_trainer_takes_a_step_beside_transformers_without_fairseq(wheel, tmp_path):
    absent = [n for n in ("transformers", "accelerate") if not importlib.util.find_spec(n)]
    if absent:
        pytest.skip(f"needs {' and '.join(absent)}: pip install '.[huggingface]'")
    commands = new_environment(tmp_path / "env", wheel, "torch", "transformers", "accelerate")
    done = run(commands / "python", "-c", BESIDE_TRANSFORMERS, tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]


# -- beside everything else ----------------------------------------------------------------


def plan(place: Path, folder: Path) -> str:
    """What the package at a place prints in a folder of a user's, where no checkout is."""
    words = ["python", "-m", "fairseq_eisl.recipes", "plan", "configs/smoke/quickstart.yaml"]
    code, output = run_process(*words, cwd=folder, env={"PYTHONPATH": str(place)})
    assert code == 0, output
    return output


def stages(output: str) -> set:
    return set(re.findall(r"stages/(\w+-[0-9a-f]{12})", output))


def test_recipes_run_from_the_wheel(site, tmp_path):
    """Every command is found, and the scripts of the wheel write the corpus. A checkout of the
    same code has the same keys: the two share finished stages."""
    output = plan(site, tmp_path)
    assert len(stages(output)) > 5 and stages(output) == stages(plan(ROOT, tmp_path))
    assert f"--user-dir {site}/fairseq_eisl " in output and f"{tmp_path}/runs/stages" in output
    lines = output.splitlines()
    prepare = [line for line in lines if "scripts/prepare/" in line]
    assert prepare and all(f"{site}/fairseq_eisl/share/scripts/prepare" in line for line in prepare)
    begin = lines[lines.index("# prepare") + 1 :]
    commands = "\n".join(begin[: next(i for i, line in enumerate(begin) if not line)])
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    env = {"PYTHONPATH": str(site), "PATH": path}
    code, output = run_process("bash", "-euc", commands, cwd=tmp_path, env=env)
    assert code == 0, output
    assert len(list(tmp_path.glob("runs/stages/prepare-*/train.de"))) == 1


# -- other versions of Python --------------------------------------------------------------


def another_python(version: str, cwd) -> str:
    """A working one on PATH or of pyenv, which may have it without showing it; else empty."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]
    works = (str(p) for p in found if p and not run(p, "-c", "", cwd=cwd).returncode)
    return next(works, "")


def test_python_3_12_reads_the_package(site, tmp_path):
    """Every module, and those that need no more than Python run; with a torch, the losses."""
    other = another_python("3.12", tmp_path)
    if sys.version_info[:2] == (3, 12) or not other:
        pytest.skip("the tests run on Python 3.12" if other else "there is no Python 3.12 here")
    done = run(other, "-m", "compileall", "-q", site / "fairseq_eisl", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    words = "import fairseq_eisl.noise, fairseq_eisl.common.rows, fairseq_eisl.console"
    losses = "import importlib.util as u\nif u.find_spec('torch'): import fairseq_eisl.losses"
    done = run(other, "-c", f"{words}\n{losses}", cwd=site)
    assert done.returncode == 0, done.stderr
