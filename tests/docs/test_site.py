"""The site is built without a warning, from the code and the rows as they are."""

import re
import statistics
import subprocess
import sys

import pytest

from tests.toy import ROOT

pytest.importorskip("mkdocs", reason="the site is built with mkdocs: pip install -e .[docs]")
sys.path.insert(0, str(ROOT / "docs"))

from macros import results  # noqa: E402
from macros.update_readme import with_results  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "docs/mkdocs.yml"]
    done = subprocess.run(
        [*command, "-d", str(folder)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.html")}


def test_every_flag_of_every_criterion_is_there(site):
    from fairseq.criterions import CRITERION_DATACLASS_REGISTRY, CRITERION_REGISTRY

    own = [n for n, k in CRITERION_REGISTRY.items() if k.__module__.startswith("fairseq_eisl.")]
    assert "eisl" in own and len(own) >= 9
    for name in own:
        assert f"--criterion {name}" in site["criterions.html"]
        flags = getattr(CRITERION_DATACLASS_REGISTRY.get(name), "__dataclass_fields__", {})
        for field, about in flags.items():
            if not field.startswith("_") and not str(about.default).startswith("${"):
                assert f"<code>--{field.replace('_', '-')}</code>" in site["criterions.html"], field


def test_every_key_of_a_recipe_is_there(site):
    from fairseq_eisl.recipes.recipe import Data, Recipe, Training, Trials, Variant
    from fairseq_eisl.recipes.sweep import Sweep

    rows = re.findall(r"<tr>\n<td><code>(\w+)</code></td>(?:\n<td>.*?</td>){2}\n<td>(.*?)</td>",
                      site["recipe_keys.html"])  # fmt: skip
    parts = (Recipe, Data, Training, Trials, Variant, Sweep)
    keys = [key for part in parts for key in part.__dataclass_fields__]
    assert [key for key, _ in rows] == keys
    assert not [key for key, text in rows if not text], "keys that say nothing of themselves"


def test_no_page_asks_the_network_for_what_it_shows(site):
    for name, page in site.items():
        asked = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]+)', page
        )
        assert not asked, name


def test_examples_are_code_and_no_role_is_left(site):
    assert "&gt;&gt;&gt;" in site["api.html"] and ":func:" not in site["api.html"]
    assert "<blockquote>" not in site["api.html"]


def test_the_tables_are_the_rows():
    found = results.pivot("multi30k_bart_small.csv", index="noise", across="system", digits=2)
    rows = results.read("multi30k_bart_small.csv", noise="repeat:0.5")
    for row in rows:
        assert f"{float(row['bleu']):.2f}" in found.split("`repeat:0.5`")[1].split("\n")[0]
    assert "seeds" not in found
    where = {"length_candidates": "1", "search": ""}
    found = results.pivot("nat_rivals.csv", index="arch", across="system", digits=2, **where)
    scores = [float(r["bleu"]) for r in results.read("nat_rivals.csv", system="EISL", **where)]
    assert len(scores) == 3 and "| 1, 2, 3 |" in found
    assert f"{statistics.fmean(scores):.2f} ± {statistics.stdev(scores):.2f}" in found
    with pytest.raises(ValueError, match="no row has"):
        results.read("multi30k_bart_small.csv", noise="shufle:3")


def test_the_readmes_table_is_the_rows_as_they_are():
    """``python docs/macros/update_readme.py`` writes it anew."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_results(text) == text
