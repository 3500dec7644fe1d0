"""The page on a corpus of one's own runs as it is written; trainings are cut to a few updates."""

import os
import re
import subprocess
import sys

import pytest

from tests.toy import ROOT, environment

PAGE = (ROOT / "docs/pages/your_own_corpus.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SHORT = [
    "device=cpu",
    *(f"flags.{side}-layers=1" for side in ("encoder", "decoder")),
    *(f"train.{stage}.flags.max-update=6" for stage in ("ce", "eisl")),
    *(f"train.{stage}.flags.save-interval-updates=2" for stage in ("ce", "eisl")),
    *(f"train.{stage}.flags.validate-interval-updates=2" for stage in ("ce", "eisl")),
]
PYTHON = f"""#!{sys.executable}
import os, sys
words = sys.argv[1:]
if words[:2] == ["-m", "fairseq_eisl.recipes"]:
    words += [*({SHORT!r} if words[2] == "run" else []), "--runs", "runs"]
os.execv({sys.executable!r}, [{sys.executable!r}, *words])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("docs")
    for name in ("fairseq_eisl", "scripts", "configs", "data"):
        os.symlink(ROOT / name, here / name)
    (here / "bin").mkdir()
    (here / "bin/python").write_text(PYTHON)
    (here / "bin/python").chmod(0o755)
    return here


def run_block(block, folder):
    path = [str(folder / "bin"), os.path.dirname(sys.executable), os.environ["PATH"]]
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(ROOT), "PATH": os.pathsep.join(path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )


def test_a_corpus_of_200_pairs_goes_from_text_to_scores(folder):
    """All blocks in their order."""
    said = []
    for block in BLOCKS:
        done = run_block(block, folder)
        assert done.returncode == 0, f"{block}\n{done.stdout[-4000:]}"
        said.append(done.stdout)
    assert sum(line.startswith("# noise=") for line in said[-1].splitlines()) == 9  # the sweep
    for name in ("report.html", "rows.csv"):
        assert (folder / "results" / name).stat().st_size
    log = next(folder.glob("runs/stages/encode-*/log")).read_text()
    pieces, words = re.search(r"(\d+) pieces for (\d+) words", log).groups()
    assert 200 < int(pieces) < 500 and 3000 < int(words) < 6000
    rows = (folder / "results/rows.csv").read_text()
    assert "my test set, tokenised" in rows and "repeat:0.5" in rows


def test_the_page_says_what_the_recipe_has():
    """Numbers of the table are those of configs/text/small.yaml."""
    from fairseq_eisl.recipes.schema import load

    recipe = load(
        str(ROOT / "configs/text/small.yaml"),
        ["data.prepare=toy", "data.source=de", "data.target=en"],
    )
    ce, eisl = recipe.train.ce.flags, recipe.train.eisl.flags
    assert (ce["patience"], ce["validate-interval-updates"]) == (4, 250)
    assert eisl["max-update"] == 600 and "| 600 updates |" in PAGE
    assert (ce["max-tokens"], eisl["max-tokens"]) == (1000, 2000)
    assert recipe.flags["dropout"] == 0.1 and recipe.data.vocabulary is None
