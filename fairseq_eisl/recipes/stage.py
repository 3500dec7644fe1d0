"""One step of a recipe, and its command lines."""

import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .placeholders import Word, filled


class Stage(NamedTuple):
    """One step of a recipe.

    commands: words of command lines, with folders of stages in them (see ``placeholders``).
    needs: the stages that it reads, whose settings are therefore its own, too.
    reads: files from outside; their content counts.
    stdout: file in the stage's folder for the last command's standard output.
    resumes: run again, the command goes on where it was killed.
    max_update: a training that resumes at this update or later has ended.
    gpus: CUDA_VISIBLE_DEVICES for it, by job (see ``gpus``).
    one_gpu: it uses one of them.
    workers: the GPUs that a training spreads over, which change its batches.
    files: names and contents (text, or what becomes JSON) that its folder holds before it
        begins, with folders of stages, too.
    """

    name: str
    commands: Tuple[Tuple[Word, ...], ...]
    needs: Tuple[str, ...] = ()
    reads: Tuple[str, ...] = ()
    stdout: Optional[str] = None
    resumes: bool = False
    max_update: Optional[int] = None
    gpus: Optional[str] = None
    one_gpu: bool = False
    workers: int = 1
    files: Tuple[Tuple[str, Any], ...] = ()

    def lines(self, folders: Dict[str, str]) -> List[List[str]]:
        """The command lines with the folders of the stages put in."""
        return [filled(command, folders) for command in self.commands]


def shell(line: List[str]) -> str:
    """A command line to copy and paste."""
    return " ".join(shlex.quote(word) for word in line)
