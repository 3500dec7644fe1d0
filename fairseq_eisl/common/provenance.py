"""Which code, libraries and machine a row comes from."""

import datetime
import os
import platform
from importlib import metadata
from typing import Dict

from .checkout import git_commit

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
