"""Which part of the package may import what: the table of CONTRIBUTING, read off the sources."""

import ast
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest

from tests.toy import ROOT

PACKAGE = ROOT / "fairseq_eisl"


class Rule(NamedTuple):
    """``anywhere``: at the top of any module of the part; ``inside``: in functions only."""

    anywhere: set
    inside: set = set()


# The standard library and a part's own folder are always allowed.
RULES = {
    "": Rule(set(), {"fairseq", "torch", "numpy"}),  # the modules at the top of the package
    "losses": Rule({"torch"}),
    "noise": Rule(set()),
    "decoding": Rule({"torch", ".losses.random_numbers"}),
    "decoding/fairseq": Rule({"torch", "fairseq", ".decoding"}),
    "integrations": Rule({"torch", ".losses", ".decoding"}, {"transformers"}),
    "criterions": Rule({"torch", "fairseq", ".losses", ".decoding", ".evaluation.metrics"}),
    "data": Rule({"torch", "numpy", "fairseq", ".noise", ".losses", ".decoding"}),
    "tasks": Rule(
        {"torch", "numpy", "fairseq", ".noise", ".losses", ".decoding", ".data"}, {"sacrebleu"}
    ),
    "models": Rule({"torch", "fairseq", ".noise", ".losses", ".decoding"}),
    "analyses": Rule(
        {"torch", "fairseq", ".losses", ".decoding", ".criterions", ".noise", ".data", ".tasks"}
        | {".evaluation.figures"}
    ),
    "evaluation": Rule({"sacrebleu", "numpy"}, {"bleurt", "sacremoses"}),
    "checkpoints": Rule({"torch", ".fairseq_fixes"}),
    "common": Rule(set()),
    # the flags that score has for what a run knows; the validation scores of trials
    "recipes": Rule(
        {"omegaconf", "yaml", ".evaluation.metrics", ".evaluation.readers"}, {"submitit", "tqdm"}
    ),
}
# Single modules that may do more than their part, and why.
EXTRA = {
    "fairseq_fixes.py": Rule({"numpy", "torch"}),  # mends them
    # whose classes extend theirs: imported with the first use of one
    "integrations/huggingface/seq2seq.py": Rule({"transformers"}),
    "integrations/huggingface/causal.py": Rule({"trl"}),
    "losses/oaxe.py": Rule(set(), {"scipy"}),  # its assignment, and nothing else
    "common/part_of_speech.py": Rule(set(), {"textblob"}),  # the tagger
    # what a trained model says of texts
    "evaluation/readers/trained_model.py": Rule(set(), {"fairseq"}),
    "evaluation/metrics/accuracy.py": Rule(set(), {"torch"}),
    "evaluation/metrics/perplexity.py": Rule(set(), {"torch", "transformers"}),
    # a process of its own, which asks fairseq about flags
    "recipes/flag_check.py": Rule(set(), {"fairseq", "torch", ".noise"}),
    "evaluation/figures/canvas.py": Rule(set(), {"matplotlib"}),  # no other module opens a canvas
    "evaluation/report/rendering.py": Rule({"jinja2", "markupsafe"}),  # the page's templates
}


class Import(NamedTuple):
    name: str
    line: int
    inside: bool


def imports(path: Path) -> Iterator[Import]:
    """What a module imports: ``numpy.random``, or ``.losses.eisl`` within the package."""

    def visit(node, inside):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, inside)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                # from the folder that many levels up
                folder = path.parent.relative_to(PACKAGE).parts
                kept = folder[: len(folder) - (node.level - 1)]
                base = "." + ".".join([*kept, *filter(None, [node.module])])
            else:
                base = node.module
            if base.endswith("."):
                yield from (Import(base + a.name, node.lineno, inside) for a in node.names)
            else:
                yield Import(base, node.lineno, inside)
        within = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, within)

    for found in visit(ast.parse(path.read_text(encoding="utf-8")), False):
        name = found.name
        if name.split(".")[0] == PACKAGE.name:
            name = "." + name[len(PACKAGE.name) + 1 :]
        yield found._replace(name=name)


def allowed(name: str, entries: set) -> bool:
    return any(name == entry or name.startswith(entry + ".") for entry in entries)


def part_of(relative: Path) -> str:
    """The folder with a rule of its own that a module stands in."""
    folders = ["/".join(relative.parts[:depth]) for depth in range(len(relative.parts) - 1, 0, -1)]
    return next((folder for folder in folders if folder in RULES), "")


def part_of_name(name: str) -> str:
    """The same of what is imported: ``decoding`` of ``.decoding.candidates.decode``."""
    parts = name[1:].split(".")
    folders = ["/".join(parts[:depth]) for depth in range(len(parts), 0, -1)]
    return next((folder for folder in folders if folder in RULES), "")


def broken(path: Path) -> list:
    """The imports of a module that its part may not have."""
    relative = path.relative_to(PACKAGE)
    part = part_of(relative)
    rules = [RULES[part], EXTRA.get(relative.as_posix(), Rule(set()))]
    wrong = []
    for name, line, inside in imports(path):
        own = name.startswith(".") and (
            part_of_name(name) == part if part else name.count(".") == 1 and name[1:] not in RULES
        )
        standard = name.split(".")[0] in sys.stdlib_module_names
        entries = {".__version__", ".common"}.union(*(rule.anywhere for rule in rules))
        if inside:
            entries = entries.union(*(rule.inside for rule in rules))
        if not (own or standard or allowed(name, entries)):
            wrong.append(f"{relative}:{line} imports {name}")
    return wrong


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_part_has_a_rule():
    parts = {path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE}
    assert parts <= set(RULES)


def test_no_part_imports_what_it_may_not():
    assert [line for path in MODULES for line in broken(path)] == []


def test_scripts_are_not_imported():
    names = [found.name for path in MODULES for found in imports(path)]
    assert not [name for name in names if name.split(".")[0] in ("scripts", "tests", "data")]


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "." + ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, known: set) -> set:
    """The modules of the package that are loaded with a module, but for its own package."""
    found = set()
    for name, _, inside in imports(path):
        while not inside and name.count(".") > 1 and name not in known:
            name = name.rpartition(".")[0]
        if not inside and name in known and not module_name(path).startswith(name + "."):
            found.add(name)
    return found - {module_name(path)}


def test_no_module_waits_for_itself():
    """No circle of imports, even where Python would get away with it."""
    graph = {module_name(path): set() for path in MODULES}
    for path in MODULES:
        graph[module_name(path)] = imported_modules(path, set(graph))
    assert sum(map(len, graph.values())) > 100
    while graph:
        leaves = {name for name, needs in graph.items() if not needs & set(graph)}
        assert leaves, f"a circle among {sorted(graph)}"
        graph = {name: needs for name, needs in graph.items() if name not in leaves}


def test_what_begins_with_an_underscore_stays_in_its_file():
    """Modules in their folder, names in their file; in the package, the scripts and the tests."""
    wrong = []
    for path in [*MODULES, *(ROOT / "scripts").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            ours = node.level or (node.module or "").split(".")[0] in (PACKAGE.name, "tests")
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            private = [n for n in names if n.startswith("_") and not n.endswith("__")]
            if ours and private:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} imports {', '.join(private)}")
    assert wrong == []


@pytest.mark.parametrize(
    "module, source, wrong",
    [
        ("losses/x.py", "import fairseq", True),
        ("losses/x.py", "def f():\n    from fairseq.data import Dictionary", True),
        ("losses/x.py", "from ..noise import Noise", True),
        ("losses/x.py", "from . import eisl\nimport torch.nn, math", False),
        ("noise/x.py", "import torch", True),
        ("decoding/x.py", "from ..losses.random_numbers import fold", False),
        ("decoding/x.py", "from .fairseq import candidates", True),
        ("decoding/x.py", "import fairseq", True),
        ("decoding/fairseq/x.py", "import fairseq\nfrom ..candidates import decode", False),
        ("decoding/fairseq/x.py", "from ...losses import eisl_loss", True),
        ("tasks/x.py", "from ..decoding.fairseq.refinement import RefinementGenerator", False),
        ("tasks/x.py", "from ..criterions.base import SequenceCriterion", True),
        ("criterions/x.py", "from ..tasks.noisy_translation import Task", True),
        ("criterions/x.py", "from .. import models", True),
        ("criterions/x.py", "import fairseq_eisl.tasks", True),
        ("criterions/x.py", "from ..evaluation.metrics import bleu", False),
        ("criterions/x.py", "from ..evaluation.table import format_table", True),
        ("integrations/x.py", "import transformers", True),
        ("integrations/x.py", "def f():\n    import transformers", False),
        ("integrations/huggingface/x.py", "import transformers", True),
        ("integrations/huggingface/seq2seq.py", "import transformers", False),
        ("integrations/huggingface/seq2seq.py", "from ...noise import Noise", True),
        ("evaluation/table.py", "import matplotlib", True),
        ("evaluation/table.py", "def f():\n    import matplotlib", True),
        ("evaluation/table.py", "def f():\n    import torch", True),
        ("evaluation/table.py", "import jinja2", True),
        ("evaluation/report/rendering.py", "import jinja2", False),
        ("evaluation/figures/canvas.py", "import matplotlib.pyplot", True),
        ("evaluation/figures/canvas.py", "def f():\n    import matplotlib.pyplot", False),
        ("checkpoints/x.py", "import torch\nfrom ..fairseq_fixes import apply", False),
        ("checkpoints/x.py", "def f():\n    import fairseq", True),
        ("checkpoints/x.py", "from ..evaluation.table import format_table", True),
        ("noise/x.py", "from ..common.text_lines import one_line", False),
        ("common/x.py", "from ..noise import Noise", True),
        ("analyses/x.py", "import fairseq\nfrom ..evaluation.figures.canvas import canvas", False),
        ("analyses/x.py", "from ..evaluation.cli.main import main", True),
        ("evaluation/figures/x.py", "from ...analyses.exact import compare", True),
        ("__init__.py", "def f():\n    from . import fairseq_fixes", False),
        ("__init__.py", "from . import fairseq_fixes, losses", True),
    ],
)
def test_the_check_can_fail(tmp_path, monkeypatch, module, source, wrong):
    path = tmp_path / PACKAGE.name / module
    path.parent.mkdir(parents=True)
    path.write_text(source)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path / PACKAGE.name)
    assert bool(broken(path)) == wrong


def test_losses_noise_decoding_and_integrations_work_without_fairseq(fresh):
    """Every module of theirs, in a process where nothing of fairseq can be imported."""
    code, output = fresh(
        """
import importlib, pathlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("fairseq", "fairseq_cli", "transformers", "trl"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import fairseq_eisl
folder = pathlib.Path(fairseq_eisl.__file__).parent
seen = []
for part in ("losses", "losses/reference", "noise", "decoding", "integrations",
             "integrations/huggingface"):
    for module in sorted((folder / part).glob("*.py")):
        name = "" if module.stem == "__init__" else "." + module.stem
        if module.stem not in ("__main__", "seq2seq", "causal"):
            importlib.import_module(f"fairseq_eisl.{part.replace('/', '.')}{name}")
            seen.append(part)
assert not [m for m in sys.modules if m.split(".")[0] == "fairseq"]
try:
    import fairseq
except ModuleNotFoundError:
    print(len(seen), "modules")
""",
        path=[ROOT],
    )
    assert code == 0 and int(output.split()[0]) >= 10, output
