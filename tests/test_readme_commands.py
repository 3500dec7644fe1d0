"""Every command block of README and site runs as it is written, in their order, in one folder.

What would take hours is made short outside of the blocks: commands of these names stand first on
PATH and add flags (a few updates, small sizes). Sweeps and experiments on data that would be
fetched are planned, which checks all their files, keys and flags, and not run.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.recipes.conftest import TINY
from tests.toy import ROOT, environment

PAGES = yaml.safe_load(
    re.search(r"^nav:\n.*", (ROOT / "docs/mkdocs.yml").read_text(), re.DOTALL | re.MULTILINE)[0]
)["nav"]
# That one trains, and has a test of its own: test_docs.py.
PAGES = [page for page in PAGES if "your_own_corpus.md" not in page.values()]
TEXTS = [
    path.read_text(encoding="utf-8")
    for path in [
        ROOT / "README.md",
        *(ROOT / "docs/pages" / name for name in re.findall(r"\w+\.md", repr(PAGES))),
    ]
]
BLOCKS = list(
    dict.fromkeys(  # some stand in the README and on a page
        block
        for text in TEXTS
        for block in re.findall(r"^```bash\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    )
)
# Blocks that CI runs otherwise, and how.
ELSEWHERE = {
    "pip install": "the environment of every CI run is made by these commands, see common.sh",
    "pip wheel": "tests/test_wheel.py builds it, from a copy of the checkout",
}
PYTHON = f"""#!{sys.executable}
import importlib.util, os, sys
words, tiny, here = sys.argv[1:], {TINY!r}, os.environ["README_FOLDER"]
if words[:2] == ["-m", "fairseq_eisl.recipes"]:
    command, config = words[2:4]
    if command == "run" and "configs/smoke" in config:
        words += tiny
    elif command in ("run", "tune"):
        words[2] = "plan"
    elif command == "sweep":
        words += ["--plan"]
    words += ["--runs", os.path.join(here, "runs")]
elif words[:3] == ["-m", "fairseq_eisl.analyses", "ngrams"]:
    words += ["--plan"]
elif words[1:2] == ["fairseq_eisl.analyses"]:
    words += ["--sentences", "4" if words[2] == "exact" else "40"]
elif words and os.path.dirname(words[0]).endswith("scripts/benchmarks"):
    words += {{
        "losses.py": ["--sizes", "2x4x100", "--repeats", "1"],
        "steps.py": "--batch 2 --length 4 --vocabulary 100 --repeats 1".split(),
        "growth.py": ["--scale", "0.05", "--repeats", "1"],
        "rivals.py": "--batch 2 --length 4 --vocabulary 100 --repeats 1 --kinds ar".split(),
        "latent.py": "--kinds paths --sizes 2x8x3x50 --repeats 1".split(),
    }}[os.path.basename(words[0])]
elif words and os.path.dirname(words[0]).endswith("scripts/examples"):
    if importlib.util.find_spec("trl") is None:
        sys.exit(0)  # tests/integrations runs them where they can
    words += "--train 150 --test 10 --ce-updates 3 --eisl-updates 2".split()
os.execv({sys.executable!r}, [{sys.executable!r}, *words])
"""
# The first training of all is the one that an analysis asks whether it tells targets apart. A model
# that has learnt to end its sentences is also the quicker one to decode.
FAIRSEQ = f"""#!{sys.executable}
import os, sys
words, cut = sys.argv[1:], {{cut!r}}
if "label_smoothed_cross_entropy" in words:
    cut = cut.replace("--max-update 6 --save-interval-updates 1", "--max-update 120")
command = {str(Path(sys.executable).parent)!r} + "/{{command}}"
os.execv(command, [command, *words, *cut.split()])
"""
CUTS = {
    "fairseq-train": "--cpu --num-workers 0 --max-update 6 --save-interval-updates 1 "
    "--max-valid-steps 1",
    "fairseq-generate": "--cpu --num-workers 0 --max-len-b 10",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkout that may be written to, with the files that the blocks take for given."""
    here = tmp_path_factory.mktemp("readme")
    for name in ("fairseq_eisl", "scripts", "configs", "data", "constraints.txt", "setup.py"):
        os.symlink(ROOT / name, here / name)
    commands = here / "bin"
    commands.mkdir()
    cut = {name: FAIRSEQ.format(command=name, cut=words) for name, words in CUTS.items()}
    for name, text in {"python": PYTHON, **cut}.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    for name in ("multi30k", "wmt14", "yelp", "bart.base"):  # read by the plans, which hash them
        (here / name).mkdir()
    for name in ("model.pt", "dict.txt", "encoder.json", "vocab.bpe"):
        (here / "bart.base" / name).write_text("{}")
    return here


def run_block(block, folder):
    path = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    extra = {"FAIRSEQ_EISL_VENV": "none", "README_FOLDER": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**environment(), **extra, "PATH": os.pathsep.join(path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )


def test_there_are_blocks_and_no_placeholders():
    assert len(BLOCKS) >= 8
    for block in BLOCKS:
        assert not re.search(r"\[[a-z.-]+=|\bDIR\b|\bDATA\b|\.\.\.", block), block


def test_commands_stand_in_blocks_that_say_what_they_are():
    """Only those of bash run here: a block without a language would not."""
    for text in TEXTS:
        assert all(re.findall(r"^```(.*)$", text, re.MULTILINE)[::2]), text[:40]
        rest = re.sub(r"^```\w+\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
        assert not re.findall(r"^ {4}(?:fairseq-\w+|python|bash) .*", rest, re.MULTILINE)


def test_every_command_block_runs_as_it_is_written(folder):
    """One test: a block reads what those before it wrote."""
    for block in BLOCKS:
        if any(block.startswith(start) for start in ELSEWHERE):
            continue
        block = re.sub(r"^bash scripts/test.sh.*\n", "", block, flags=re.MULTILINE)  # this run
        done = run_block(block, folder)
        assert done.returncode == 0, f"{block}\n{done.stdout[-4000:]}"
    for side in ("eisl", "nat_eisl"):
        assert (folder / "toy" / side / "test.out").read_text().count("\nH-") == 400
    assert len(list(folder.glob("runs/*/report.html"))) == 2


def test_what_is_installed_is_what_the_readme_installs():
    block = next(block for block in BLOCKS if block.startswith("pip install"))
    common = (ROOT / "scripts/lib/common.sh").read_text()
    for line in block.splitlines():
        words = line.split("#")[0].split()[2:]
        for word in words:
            assert re.sub(r'^"\.\[|,?plots\]"$', "", word) in common, word
