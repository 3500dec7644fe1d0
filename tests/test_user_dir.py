"""``--user-dir``: found from anywhere, and registered whatever was imported first."""

import os
import re
import shutil
import sys

import pytest

from tests.toy import ROOT, USER_DIR, run_process

HELP = ["--criterion", "eisl", "--task", "noisy_translation", "--help"]


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    """A folder of symbolic links to the plugin."""
    folder = tmp_path_factory.mktemp("links")
    os.symlink(USER_DIR, folder / "fairseq_eisl")
    os.symlink(USER_DIR, folder / "my_eisl")
    return folder


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Another checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(USER_DIR, folder / "fairseq_eisl", ignore=ignore)
    return folder


def lists_the_options(code, output):
    assert code == 0, output[-2000:]
    choices = re.search(r"--criterion \{(.*?)\}", output)[1].split(",")
    assert "eisl" in choices and "cross_entropy" in choices
    assert "  --ngram NGRAM" in output and "  --target-noise TARGET_NOISE" in output


def test_the_installed_command_finds_it():
    """A real process: the console script, a folder relative to the repository's root."""
    lists_the_options(*run_process("fairseq-train", "--user-dir", "fairseq_eisl", *HELP, cwd=ROOT))


@pytest.mark.parametrize(
    "folder, user_dir",
    [
        (ROOT, "./fairseq_eisl/"),
        ("/", USER_DIR),
        ("/", USER_DIR + "/"),
        ("/tmp", os.path.relpath(USER_DIR, "/tmp")),
        ("links", "fairseq_eisl"),
        ("links", "my_eisl/"),  # then the package has another name
    ],
)
def test_it_is_found_from_any_folder(fresh, links, folder, user_dir):
    cwd = links if folder == "links" else folder
    lists_the_options(*fresh.cli("fairseq-train", "--user-dir", user_dir, *HELP, cwd=cwd))


@pytest.mark.parametrize(
    "command, words, shown",
    [
        ("fairseq-train", "--criterion eisl -h", ["--ngram NGRAM"]),
        ("fairseq-train", "--help", ["--criterion {"]),
        (
            "fairseq-train",
            "--task noisy_translation_lev --arch cmlm_transformer --optimizer adam --help",
            ["--full-mask-prob", "--length-loss-factor", "--adam-betas"],
        ),
        ("fairseq-generate", "--help --task noisy_translation_lev", ["--length-candidates {"]),
        ("fairseq-interactive", "--task noisy_translation --help", ["--target-noise-bpe {"]),
    ],
)
def test_help_shows_the_flags_of_what_was_chosen(fresh, command, words, shown):
    """fairseq's own ends before it knows them."""
    code, output = fresh.cli(command, "--user-dir", USER_DIR, *words.split())
    assert code == 0 and "usage: " in output and all(f"  {flag}" in output for flag in shown)


def test_without_help_a_command_line_means_what_it_did(fresh):
    flags = ["--criterion", "eisl", "--arch", "transformer", "--nonsense"]
    code, output = fresh.cli("fairseq-train", "nowhere", "--user-dir", USER_DIR, *flags)
    assert code == 2 and "unrecognized arguments: --nonsense" in output


def test_python_m_prints_the_folder_from_anywhere(tmp_path):
    code, output = run_process(
        "python", "-m", "fairseq_eisl", cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}
    )
    assert (code, output) == (0, USER_DIR + "\n")


REGISTERED = """
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.tasks import TASK_REGISTRY
import torch
assert CRITERION_REGISTRY["eisl"].__module__ == "fairseq_eisl.criterions.eisl"
assert TASK_REGISTRY["noisy_translation"].__module__ == "fairseq_eisl.tasks.noisy_translation"
assert any("Namespace" in str(entry) for entry in torch.serialization.get_safe_globals())
import sys
assert not [f for f in sys.meta_path if "fairseq_eisl" in type(f).__module__]
print("registered")
"""
USER_MODULE = f"""
import argparse
from fairseq import utils
utils.import_user_module(argparse.Namespace(user_dir={USER_DIR!r}))
"""


@pytest.mark.parametrize(
    "first",
    [
        "import fairseq_eisl.losses",
        "import fairseq",
        "import fairseq.data, fairseq_eisl",
        "import fairseq_eisl; from fairseq.data import Dictionary",
        # Somebody looks whether fairseq is there, and imports it later.
        "import fairseq_eisl, importlib.util as u; assert u.find_spec('fairseq')",
        # Modules that import fairseq themselves, and so register in the midst of their import.
        "from fairseq_eisl.data.noisy_targets import NoisyTargetDataset",
        "from fairseq_eisl.decoding.fairseq.candidates import decode",
        "from fairseq_eisl.tasks.noisy_translation import NoisyTranslationTask",
    ],
)
def test_everything_is_registered_in_any_order(fresh, first):
    code, output = fresh(f"{first}\n{USER_MODULE}{REGISTERED}", path=[ROOT])
    assert code == 0 and output.strip().endswith("registered"), output


def test_register_may_be_called_again(fresh):
    again = "import fairseq, fairseq_eisl\nfairseq_eisl.register()\nfairseq_eisl.register()\n"
    code, output = fresh(f"{again}{USER_MODULE}{REGISTERED}", path=[ROOT])
    assert code == 0 and output.strip().endswith("registered"), output


def test_no_fairseq_is_imported_for_the_losses(fresh):
    code, output = fresh(
        "import fairseq_eisl.losses, fairseq_eisl.noise, sys; print('fairseq' in sys.modules)",
        path=[ROOT],
    )
    assert (code, output) == (0, "False\n")


# -- two copies ----------------------------------------------------------------------------


def one_clear_line(code, output, *words):
    last = output.strip().splitlines()[-1]
    assert code != 0 and "Cannot register duplicate" not in output
    assert last.startswith("ImportError: ") and all(word in last for word in words), output


def test_a_checkout_is_used_although_another_one_is_installed(fresh, copy):
    lists_the_options(
        *fresh.cli("fairseq-train", "--user-dir", copy / "fairseq_eisl", *HELP, path=[ROOT])
    )
    code, output = fresh(
        USER_MODULE.replace(USER_DIR, str(copy / "fairseq_eisl"))
        + "from fairseq.criterions import CRITERION_REGISTRY as c; import sys\n"
        + "print(sys.modules[c['eisl'].__module__].__file__)",
        path=[ROOT],
    )
    assert code == 0 and output.strip().endswith(str(copy / "fairseq_eisl/criterions/eisl.py"))


def test_another_checkout_than_the_imported_one_is_refused_in_a_line(fresh, copy):
    code, output = fresh.cli(
        *("fairseq-train", "--user-dir", copy / "fairseq_eisl", *HELP),
        code="import fairseq_eisl.losses",
        path=[ROOT],
    )
    one_clear_line(code, output, "--user-dir", str(copy / "fairseq_eisl"))


def test_a_second_name_for_the_imported_one_is_refused_in_a_line(fresh, links):
    code, output = fresh.cli(
        *("fairseq-train", "--user-dir", links / "my_eisl", *HELP),
        code="import fairseq_eisl.losses",
        path=[ROOT],
    )
    one_clear_line(code, output, "--user-dir", "my_eisl", USER_DIR)


def test_it_is_the_checkout_that_is_tested():
    import fairseq_eisl

    assert os.path.dirname(os.path.abspath(fairseq_eisl.__file__)) == USER_DIR, sys.path
