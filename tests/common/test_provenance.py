import re
import shutil
import subprocess
from importlib import metadata

import pytest

from fairseq_eisl.common import provenance as module
from fairseq_eisl.common.provenance import git_commit, provenance


@pytest.fixture
def checkout(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def git(*arguments):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(("git", *identity, *arguments), cwd=tmp_path, check=True, stdout=-3)

    git("init", "-q")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / ".gitignore").write_text("__pycache__/\n")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    return package


def test_commit_of_a_clean_checkout(checkout):
    assert re.fullmatch("[0-9a-f]{12}", git_commit(str(checkout)))
    (checkout.parent / "results.csv").write_text("outputs are no change of the code")
    (checkout / "__pycache__").mkdir()
    (checkout / "__pycache__" / "x.pyc").write_text("nor are ignored files")
    assert "dirty" not in git_commit(str(checkout))


def test_changes_and_new_code_are_marked(checkout):
    clean = git_commit(str(checkout))
    (checkout / "new.py").write_text("")
    assert git_commit(str(checkout)) == clean + "+dirty"
    (checkout / "new.py").unlink()
    (checkout.parent / ".gitignore").write_text("")
    assert git_commit(str(checkout)) == clean + "+dirty"


def test_a_package_in_a_foreign_checkout_has_no_commit(checkout):
    """A virtual environment inside a repository."""
    other = checkout.parent / "venv"
    other.mkdir()
    (other / "__init__.py").write_text("")
    assert git_commit(str(other)) == ""


def test_no_checkout(tmp_path):
    assert git_commit(str(tmp_path)) == ""


def test_columns(monkeypatch):
    found = provenance()
    assert list(found) == [
        *("commit", "python", "torch", "numpy", "fairseq", "sacrebleu", "cpu", "cores", "date")
    ]
    assert found["sacrebleu"] == metadata.version("sacrebleu")
    assert int(found["cores"]) >= 1 and found["cpu"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["date"])
    assert all(isinstance(value, str) for value in found.values())


@pytest.mark.parametrize(
    "installed, shown",
    [
        ({"ve-fairseq": "0.12.3"}, "ve-fairseq 0.12.3"),
        ({"fairseq": "0.12.2"}, "0.12.2"),
        ({}, ""),
    ],
)
def test_either_fairseq_or_none(monkeypatch, installed, shown):
    def version(name):
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(module.metadata, "version", version)
    assert provenance()["fairseq"] == shown
