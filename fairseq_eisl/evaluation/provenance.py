"""Which code, libraries and machine a row comes from."""

import datetime
import os
import platform
import subprocess
from importlib import metadata
from typing import Dict, Optional

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = {  # column: the names under which the library may be installed
    "torch": ("torch",),
    "numpy": ("numpy",),
    "fairseq": ("ve-fairseq", "fairseq"),
    "sacrebleu": ("sacrebleu",),
}


def provenance() -> Dict[str, str]:
    """Columns of the process that scores; empty where something is not known.

    commit (``+dirty`` when the checkout differs from it), python, torch, numpy,
    fairseq, sacrebleu, cpu (model), cores (number this process may use), date (UTC).
    Libraries are looked up, not imported.
    """
    versions = {name: _version(names) for name, names in _LIBRARIES.items()}
    return {
        "commit": git_commit(_FOLDER),
        "python": platform.python_version(),
        **versions,
        "cpu": _cpu_model(),
        "cores": str(_cores()),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


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


def _version(names) -> str:
    for name in names:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        return version if name == names[-1] else f"{name} {version}"
    return ""


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
