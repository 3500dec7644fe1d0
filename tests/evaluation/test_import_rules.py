"""What evaluation may import: the standard library, sacrebleu, numpy, its own folder."""

import ast
import pathlib

import pytest

import fairseq_eisl.evaluation

FOLDER = pathlib.Path(fairseq_eisl.evaluation.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
FORBIDDEN = {"torch", "fairseq", "pandas", "omegaconf", "hydra", "transformers"}


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_imports(path):
    name = path.relative_to(FOLDER)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    everywhere = set(imported(ast.walk(tree)))
    assert not everywhere & FORBIDDEN
    assert "matplotlib" not in set(imported(tree.body))
    if name.as_posix() != "figures/canvas.py":
        assert "matplotlib" not in everywhere
    if name.parts[0] != "report":
        assert "jinja2" not in everywhere
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level > len(name.parts):
            common = (node.module or "").split(".")[0] == "common"  # no other part of the package
            assert common or [alias.name for alias in node.names] == ["__version__"]


def parameters(function):
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_functions_are_short_and_names_public(path):
    assert path.stem.startswith("__") or not path.stem.startswith("_")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name != "add_parser":
            assert node.end_lineno - node.lineno < 60, node.name
            assert len(parameters(node)) <= 8, node.name


def test_files_are_short():
    assert FILES and all(len(p.read_text(encoding="utf-8").splitlines()) < 300 for p in FILES)
