"""Processes that have imported neither fairseq nor this package, many for the price of one.

Importing fairseq takes seconds, nearly all of it for torch, scikit-learn and the like. A
server (this file as a program) imports those once and forks for each job.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from typing import Sequence, Tuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

THIRD_PARTY = (
    *("bitarray", "hydra", "hydra.core.global_hydra", "hydra.experimental", "numpy", "omegaconf"),
    *("regex", "sacrebleu", "scipy.stats", "sklearn.metrics", "torch", "torch.distributed"),
    *("torch._dynamo", "torch.nn.parallel", "torch.utils.data", "torchaudio", "tqdm"),
)


class Fresh:
    """``fresh(code)`` and ``fresh.cli(name, *args)``: ``(return code, stdout and stderr)``.

    ``path`` is put before ``sys.path``; this checkout is on it only if it is named, or if the
    package is installed from here.
    """

    def __init__(self):
        from tests.toy import environment

        self.server = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={k: v for k, v in environment().items() if k != "PYTHONPATH"},
            cwd=os.path.sep,
        )

    def __call__(self, code: str, *, path: Sequence[str] = (), cwd=None) -> Tuple[int, str]:
        return self._ask(code=code, path=path, cwd=cwd)

    def cli(self, name: str, *args: str, code: str = "", path: Sequence[str] = (), cwd=None):
        """A console script, after ``code``."""
        return self._ask(code=code, script=[name, *map(str, args)], path=path, cwd=cwd)

    def _ask(self, path, cwd, **job) -> Tuple[int, str]:
        job.update(path=[str(p) for p in path], cwd=None if cwd is None else str(cwd))
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        return tuple(json.loads(self.server.stdout.readline()))

    def close(self):
        self.server.stdin.close()
        self.server.wait(30)


def _serve():
    sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != os.path.join(ROOT, "tests")]
    sys.path.insert(0, ROOT)
    from tests.toy import Child, call_script

    sys.path.remove(ROOT)
    for name in THIRD_PARTY:
        with contextlib.suppress(ImportError, OSError):  # torchaudio may not fit to torch
            importlib.import_module(name)
    assert not {"fairseq", "fairseq_eisl"} & set(sys.modules)
    jobs, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for line in jobs:
        job = json.loads(line)

        def main(job=job):
            sys.path[:0] = job["path"]
            exec(compile(job["code"], "job", "exec"), {"__name__": "__main__"})
            if "script" in job:
                call_script(*job["script"])

        answers.write(json.dumps(Child(main, cwd=job["cwd"]).wait()) + "\n")
        answers.flush()


if __name__ == "__main__":
    _serve()
