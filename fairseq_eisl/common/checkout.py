"""Where the files beside the package are, and which commit the code is of, where that is known: git
may be missing, or the checkout."""

import os
import subprocess
from typing import Optional

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SHARE = os.path.join(PACKAGE, "share")
INSTALLED = os.path.isdir(_SHARE)
"""Whether this is no checkout: only a wheel has the folder ``share``."""
ROOT = _SHARE if INSTALLED else os.path.dirname(PACKAGE)
"""What recipes need besides the package (configs, scripts/prepare, scripts/lib, the toy corpus) is
below it, at the paths of the checkout."""


def beside(path: str) -> str:
    """The place of a file of the checkout, of the package or beside it.

    >>> os.path.isfile(beside("fairseq_eisl/common/checkout.py"))
    True
    >>> os.path.isfile(beside("configs/base/toy.yaml"))
    True
    """
    first, _, rest = path.partition("/")
    if first == os.path.basename(PACKAGE):
        return os.path.join(PACKAGE, *rest.split("/"))
    return os.path.join(ROOT, *path.split("/"))


def git_commit(folder: str) -> str:
    """The commit of the checkout that tracks ``folder/__init__.py``; empty if there is none.

    ``+dirty`` marks changed files anywhere in the checkout, or new ones in ``folder``.
    A package inside someone else's checkout (a virtual environment) has no commit.
    """
    if not _git(folder, "ls-files", "__init__.py"):
        return ""
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return ""
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    new = _git(folder, "ls-files", "--others", "--exclude-standard", ".")
    unsure = changed is None or new is None
    return commit + ("+dirty" if changed or new or unsure else "")


def _git(folder: str, *arguments: str) -> Optional[str]:
    try:
        done = subprocess.run(
            ("git", "-C", folder) + arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None
