"""What keeps the house readable: short files, short functions, few parameters."""

import ast
from pathlib import Path

import pytest

from tests.toy import ROOT

LINES, FUNCTION_LINES, PARAMETERS = 400, 60, 8
# Losses with all their options as arguments, for those who call them by hand.
FLAT = {"eisl_loss", "eisl_from_ngram_log_probs"}
FOLDERS = ("fairseq_eisl", "scripts", "data")


def python_files(*folders: str):
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(source: str):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def long_functions(source: str) -> list:
    """Names of functions that are too long without what their docstring and signature take up;
    what makes a parser is a list of flags and may be."""
    found = []
    for node in functions(source):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
        if lines >= FUNCTION_LINES and "parser" not in node.name:
            found.append(f"{node.name} ({lines} lines)")
    return found


def wide_functions(source: str) -> list:
    found = []
    for node in functions(source):
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        names = [name for name in names if name not in ("self", "cls", "ctx")]
        if len(names) > PARAMETERS and node.name not in FLAT:
            found.append(f"{node.name} ({len(names)} parameters)")
    return found


def test_files_are_short():
    long = {
        str(path.relative_to(ROOT)): count
        for path in python_files(*FOLDERS, "tests")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) >= LINES
    }
    assert not long


@pytest.mark.parametrize("rule", [long_functions, wide_functions], ids=lambda rule: rule.__name__)
def test_functions_are_short(rule):
    found = {
        str(path.relative_to(ROOT)): broken
        for path in python_files(*FOLDERS)
        if (broken := rule(Path(path).read_text(encoding="utf-8")))
    }
    assert not found


def test_no_module_is_private():
    """What is private is so to its own file."""
    modules = [path for path in python_files(*FOLDERS) if not path.stem.startswith("__")]
    assert len(modules) > 100
    assert not [str(path.relative_to(ROOT)) for path in modules if path.stem.startswith("_")]


def test_docstrings_have_one_dialect():
    """Google's: sections, no fields."""
    fields = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in python_files(*FOLDERS)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.lstrip(' "').startswith((":raises", ":param", ":return"))
    ]
    assert not fields


def test_the_rules_can_fail():
    body = "\n".join("    x = 1" for _ in range(FUNCTION_LINES))
    assert long_functions(f"def f():\n    '''Says it.'''\n{body}\n") == ["f (60 lines)"]
    assert not long_functions(f"def f():\n    '''{body}'''\n    x = 1\n")
    many = ", ".join(f"a{i}" for i in range(PARAMETERS + 1))
    assert wide_functions(f"def f({many}): pass") == ["f (9 parameters)"]
    assert not wide_functions(f"def eisl_loss({many}): pass")
