"""What evaluation may import: the standard library, sacrebleu, numpy, its own folder."""

import ast
import pathlib

import pytest

import fairseq_eisl.evaluation

FILES = sorted(pathlib.Path(fairseq_eisl.evaluation.__file__).parent.glob("*.py"))
FORBIDDEN = {"torch", "fairseq", "pandas", "omegaconf", "hydra", "transformers"}


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_imports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    everywhere = set(imported(ast.walk(tree)))
    assert not everywhere & FORBIDDEN
    assert "matplotlib" not in set(imported(tree.body))
    if path.name != "drawing.py":
        assert "matplotlib" not in everywhere
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level > 1:  # no other part of the package
            common = (node.module or "").split(".")[0] == "common"
            assert common or [alias.name for alias in node.names] == ["__version__"]


def test_files_are_short():
    assert FILES and all(len(p.read_text(encoding="utf-8").splitlines()) < 300 for p in FILES)
