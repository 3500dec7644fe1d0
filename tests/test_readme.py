"""What the README says is what the code does."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs():
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert examples
    for example in examples:
        space = {}
        exec(example, space)
        assert space["logits"].grad is not None and space["loss"].item() > 0


def test_blocks_that_pages_share_with_the_readme_are_the_same():
    """A page is read without the README, also where it lies in the checkout."""
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs/pages").glob("*.md")]
    ours, theirs = (
        [block for text in texts for block in re.findall(r"^```\w+\n.*?^```", text, re.S | re.M)]
        for texts in ([README], pages)
    )
    for start in ("pip install", "bash scripts/quickstart", "import torch", "fairseq-preprocess"):
        (block,) = (block for block in ours if block.split("\n", 1)[1].startswith(start))
        assert block in theirs, start


def test_files_named_in_the_readme_exist():
    for path in re.findall(r"(?:bash |\]\()([\w]+[\w./-]*\.\w+)", README):
        assert (ROOT / path).exists(), path


def test_the_noises_named_in_the_readme_parse():
    from fairseq_eisl.noise import parse_noise

    specs = set(re.findall(r"(?:--(?:target-)?noise |`|noise=)([a-z_]+:[\w.:,]+)[`\s]", README))
    assert len(specs) >= 8
    for spec in specs:
        parse_noise(spec)


@pytest.mark.parametrize(
    "name",
    ["Makefile", "LICENSE", "CONTRIBUTING.md", "constraints.txt", "CHANGELOG.md", "CITATION.cff"],
)
def test_top_level(name):
    assert (ROOT / name).exists()
