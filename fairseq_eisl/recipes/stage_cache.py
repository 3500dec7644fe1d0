"""Where stages keep their results: a folder named after everything that they depend on.

``RUNS/stages/NAME-KEY`` holds the results of a stage, ``NAME-KEY.part`` those of one that has
not ended. KEY is a digest of the commands, the content of the files from outside, how many GPUs a
training has if it has several, and the keys of the stages that are read, so that a changed setting
makes a stage and all that depends on it anew, recipes that agree in a stage share it, and an old
setting finds its old results.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import socket
import time
import zipfile
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence, TextIO

from .errors import RecipeError
from .placeholders import Deferred
from .stage import Stage

STAMP = "stage.json"


class Holder(NamedTuple):
    """A process at a stage: its number, if it is of this machine, and words for people."""

    pid: Optional[int]
    shown: str


class StageCache:
    """The stages of all recipes below one folder."""

    def __init__(self, runs: str):
        self.folder = os.path.join(os.path.abspath(runs), "stages")

    def keys(self, stages: Sequence[Stage]) -> Dict[str, str]:
        """The key of each stage, by its name."""
        keys: Dict[str, str] = {}
        for stage in stages:
            content = {
                "commands": spelt(stage.commands),
                "stdout": stage.stdout,
                "files": spelt(stage.files),
                "needs": {name: keys[name] for name in stage.needs},
                "reads": [[os.path.basename(path), content_digest(path)] for path in stage.reads],
            }
            if stage.workers > 1:
                content["workers"] = stage.workers
            text = json.dumps(content, sort_keys=True, ensure_ascii=False)
            keys[stage.name] = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
        return keys

    def path(self, name: str, key: str) -> str:
        return os.path.join(self.folder, f"{name}-{key}")

    def is_done(self, path: str) -> bool:
        return os.path.exists(os.path.join(path, STAMP))

    @contextlib.contextmanager
    def held(self, path: str) -> Iterator[Optional[TextIO]]:
        """Hold a stage; None if another process has it (see ``holder``).

        The file is inherited by the stage's commands: if this process is killed and one of them
        lives on, the stage stays held until that ends. It says who holds it; one whose holders
        have all ended holds nothing.
        """
        os.makedirs(self.folder, exist_ok=True)
        with open(f"{path}.lock", "a+", encoding="utf-8", errors="replace") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            except OSError as err:  # no other process would ever let go
                raise RecipeError(
                    f"{self.folder}: its file system has no file locks ({err.strerror}), which "
                    "keep two runs from one stage; choose another folder (--runs)"
                ) from err
            lock.truncate(0)
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            lock.write(f"{os.getpid()}\n{socket.gethostname()}\n{now}\n")
            lock.flush()
            os.set_inheritable(lock.fileno(), True)
            yield lock

    def holder(self, path: str) -> "Holder":
        """Who has written its name into the lock of a stage."""
        try:
            with open(f"{path}.lock", encoding="utf-8", errors="replace") as lock:
                lines = lock.read().splitlines()
        except FileNotFoundError:
            lines = []
        if len(lines) < 3 or not lines[0].isdigit():
            return Holder(None, "another process")
        pid, host, since = lines[:3]
        number, ended = None, False
        if host == socket.gethostname():
            number = int(pid)
            try:
                os.kill(number, 0)
            except ProcessLookupError:
                ended = True
            except OSError:
                pass
        what = f"what process {pid} on {host} left behind" if ended else f"process {pid} on {host}"
        return Holder(number, f"{what} (since {since})")

    def begin(self, path: str, resumes: bool) -> bool:
        """Make the folder in which a stage works; True if it goes on with what lies there."""
        part = f"{path}.part"
        if os.path.isdir(path):  # somebody ran the printed command by hand
            if os.path.isdir(part):
                raise RecipeError(
                    f"{path}: a command was run there by hand, and {part} is what a run was at; "
                    "remove one of the two (or move it away) to go on with the other"
                )
            os.rename(path, part)
        if not resumes:
            shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part, exist_ok=True)
        return resumes and mend_last_checkpoint(part)

    def end(self, path: str, stamp: dict):
        """The stage is done: its results appear, whole."""
        part = f"{path}.part"
        temporary = os.path.join(part, STAMP + ".part")
        with open(temporary, "w", encoding="utf-8") as f:
            json.dump(stamp, f, indent=1, ensure_ascii=False)
        os.replace(temporary, os.path.join(part, STAMP))
        os.rename(part, path)


def mend_last_checkpoint(folder: str) -> bool:
    """See to it that checkpoint_last.pt is whole, if there is any; True if there is.

    fairseq writes a checkpoint to one name, whole or not at all, and then copies it to its other
    names. Killed in the midst of that, it leaves a torn checkpoint_last.pt that it cannot read
    any more; the file it was copied from is newer than every other one that is whole.
    """
    last = os.path.join(folder, "checkpoint_last.pt")
    if not os.path.exists(last) or _is_whole(last):
        return os.path.exists(last)
    os.unlink(last)
    names = [n for n in os.listdir(folder) if n.startswith("checkpoint") and n.endswith(".pt")]
    paths = sorted((os.path.join(folder, name) for name in names), key=os.path.getmtime)
    for path in reversed(paths):
        if _is_whole(path):
            shutil.copyfile(path, last + ".part")
            os.replace(last + ".part", last)
            return True
    return False


def _is_whole(path: str) -> bool:
    """Whether a checkpoint, a zip archive with checksums, can be read to its end."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, OSError):
        return False


_SPELLINGS = {"package": "{root}/fairseq_eisl"}  # as it was before there were wheels


def spelt(content: Any) -> Any:
    """Commands and files as they have always been hashed: a folder is ``{name}``, and a brace is
    two of them. Spelt otherwise, stages that are done would be run again."""
    if isinstance(content, Deferred):
        return "".join(
            spelt(p) if isinstance(p, str) else _SPELLINGS.get(p.name, f"{{{p.name}}}")
            for p in content.parts
        )
    if isinstance(content, str):
        return content.replace("{", "{{").replace("}", "}}")
    if isinstance(content, dict):
        return {spelt(key): spelt(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [spelt(each) for each in content]
    return content


def content_digest(path: str) -> str:
    """Of what is in a file. Raises RecipeError where it cannot be read."""
    try:
        found = os.stat(path)
        return _digest(path, found.st_mtime_ns, found.st_size)
    except OSError as err:
        raise RecipeError(f"{path}: {err.strerror or err}") from None


@functools.lru_cache(maxsize=None)  # trials and cells read the same corpus
def _digest(path: str, changed: int, size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
