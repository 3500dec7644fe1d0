"""What an installation says of itself."""

import importlib.metadata
import re
import runpy
import sys

import pytest
import setuptools

from fairseq_eisl.common.output import program
from fairseq_eisl.console import COMMANDS
from tests.toy import ROOT, run_process

METADATA = importlib.metadata.metadata("fairseq-eisl")


def test_installing_brings_nothing_that_breaks_transformers():
    """fairseq asks for torchaudio, which does not load beside a torch for CPUs, and transformers
    imports torchaudio wherever it is installed."""
    names = {re.match(r"[\w-]+", need)[0] for need in METADATA.get_all("Requires-Dist")}
    assert "torch" in names and "hydra-core" in names
    assert not names & {"fairseq", "ve-fairseq", "torchaudio"}
    assert "torchaudio" not in (ROOT / "constraints.txt").read_text()


def test_everything_that_fairseq_asks_for_is_asked_for_here():
    """But torchaudio: the two steps of the installation leave nothing out."""
    asked = importlib.metadata.requires("ve-fairseq")
    asked = {re.match(r"[\w-]+", need)[0].lower() for need in asked if "extra" not in need}
    ours = {re.match(r"[\w-]+", need)[0].lower() for need in METADATA.get_all("Requires-Dist")}
    assert asked - ours == {"torchaudio"}


def test_the_python_versions_are_those_of_the_pins():
    assert METADATA["Requires-Python"] in ("<3.13,>=3.11", ">=3.11,<3.13")
    versions = [text.rpartition(" ")[2] for text in METADATA.get_all("Classifier")]
    assert {"3.11", "3.12"} <= set(versions)


def test_python_m_has_help_and_a_version():
    code, output = run_process("python", "-m", "fairseq_eisl", "--help", cwd=ROOT)
    assert code == 0 and "--user-dir" in output and "fairseq_eisl.recipes" in output
    code, output = run_process("python", "-m", "fairseq_eisl", "--version", cwd=ROOT)
    assert (code, output.split()) == (0, ["fairseq_eisl", METADATA["Version"]])
    code, output = run_process("python", "-m", "fairseq_eisl", "user-dir", cwd=ROOT)
    assert code == 2 and "unrecognized arguments: user-dir" in output


def test_the_console_has_every_command():
    """A part that ``python -m`` runs is a word of ``fairseq-eisl``, too."""
    parts = {path.parent.name for path in (ROOT / "fairseq_eisl").glob("*/__main__.py")}
    assert {"noise", "recipes", "evaluation", "checkpoints"} <= parts
    assert parts == {command.module.split(".")[0] for command in COMMANDS.values()} - {"__main__"}


def test_what_a_command_calls_itself_is_how_it_was_started(monkeypatch):
    for started, expected in (
        ("/usr/bin/fairseq-eisl", "fairseq-eisl noise"),
        ("/x/fairseq_eisl/noise/__main__.py", "python -m fairseq_eisl.noise"),
    ):
        monkeypatch.setattr(sys, "argv", [started, "noise"])
        assert program("fairseq_eisl.noise", "noise") == expected


def test_without_fairseq_python_m_says_how_to_get_it(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'fairseq' else find(name, *a)\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    code, output = run_process("python", "-m", "fairseq_eisl", cwd=tmp_path, env=env)
    path, *hint = output.splitlines()
    assert code == 0 and path.endswith("fairseq_eisl")
    assert "pip install --no-deps ve-fairseq" in "\n".join(hint)


@pytest.fixture
def set_up(monkeypatch):
    """What setup.py hands to setuptools, beside its own names."""
    given: dict = {}
    monkeypatch.setattr(setuptools, "setup", lambda **words: given.update(words))
    return {**runpy.run_path(str(ROOT / "setup.py")), "given": given}


def links(text):
    """(is it a picture, where it leads) of each link of a Markdown text."""
    return re.findall(r"(!?)\[[^\]]*\]\(([^)]*)\)", text)


def test_on_an_index_no_link_needs_the_checkout(set_up):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = [(kind, to) for kind, to in links(readme) if "://" not in to]
    assert {kind for kind, _ in relative} == {"", "!"}  # or there is nothing to test here
    text = set_up["given"]["long_description"]
    assert links(text) and all(to.startswith("https://") for _, to in links(text))
    if not set_up["REPOSITORY"]:
        assert not any(kind for kind, _ in links(text))


def test_a_known_repository_has_the_pictures(set_up):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = set_up["for_an_index"](readme, "https://forge.example/o/n/")
    pictures = [to for kind, to in links(text) if kind]
    assert "https://forge.example/o/n/raw/HEAD/data/results/" in pictures[0]
    assert "](https://forge.example/o/n/blob/HEAD/docs/pages/install.md)" in text
    assert len(links(text)) == len(links(readme)), "a link is lost"
    for _, to in links(text):
        where = to.partition("/HEAD/")[2].partition("#")[0]
        assert not where or (ROOT / where).exists(), to


def test_links_of_an_index_by_hand(set_up):
    text = "[a](docs/a.md), [b](https://x.y/b), [c](#c)\n\n![d](d.png)\n\ne\n"
    assert set_up["for_an_index"](text, "") == ("a, [b](https://x.y/b), [c](#c)\n\ne\n")
