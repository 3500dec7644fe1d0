"""What a trial is, whatever machine it runs on: a digest of all that its result depends on."""

import hashlib
import json
import os
from typing import Any, Dict, List, Mapping, Sequence

from ..common.checkout import PACKAGE, beside
from .stage import Stage
from .stage_cache import STAMP, content_digest, spelt

_PREPARE = "prepare"


def trial_key(stages: Sequence[Stage], prepared: str, workers: Mapping[str, int]) -> str:
    """A digest of these stages' commands and of what they read.

    ``stages``: as of a machine without a GPU, whose flags say nothing of device and precision; the
    last one is the trial. ``prepared``: the folder of the prepared text, which counts by its
    content, wherever it came from. Other files count by theirs; the package's scripts do not count:
    a row says of which commit it is. ``workers``: by stage, the GPUs that a training spreads over,
    which make its batches larger; one GPU is as none.
    """
    found: List[Any] = [_text(prepared)]
    for stage in stages:
        if stage.name == _PREPARE:
            continue
        outside = [path for path in stage.reads if not _is_ours(path)]
        commands = [[_without_place(word, outside) for word in line] for line in stage.commands]
        digests = [content_digest(path) for path in outside]
        found.append([stage.name, spelt(commands), stage.stdout, spelt(stage.files), digests])
        found[-1] += [workers[stage.name]] if workers.get(stage.name, 1) > 1 else []
    text = json.dumps(found, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def _text(folder: str) -> Dict[str, str]:
    """The digests of the prepared files, SPLIT.LANGUAGE (mono.SPLIT.LANGUAGE), by name."""
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    texts = [p for p in paths if os.path.isfile(p) and os.path.basename(p) not in (STAMP, "log")]
    return {os.path.basename(path): content_digest(path) for path in texts}


def _is_ours(path: str) -> bool:
    ours = (PACKAGE, beside("scripts"))
    return os.path.abspath(path).startswith(tuple(place + os.sep for place in ours))


def _without_place(word: Any, files: Sequence[str]) -> Any:
    """A word of a command; where it is the place of one of these files, of its folder, or of
    several that differ in their ending, a mark: their content is told by itself."""
    if not isinstance(word, str):
        return word
    place = os.path.abspath(word)
    inside = (place + ".", place + os.sep)
    whole = map(os.path.abspath, files)
    return "{file}" if any(p == place or p.startswith(inside) for p in whole) else word
