"""Names of a sweep's cells, which are their folders: one a cell, on every file system."""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from typing import List, Sequence

_LONGEST = 200  # bytes of UTF-8; file systems take 255, and beside it lie files of longer names


def cell_names(cells: Sequence[Sequence[str]]) -> List[str]:
    """A name for each cell, given the parts (``axis=value``) that tell it apart.

    Signs that have no place in a file name become ``_``. Where that makes two cells alike, also
    to a file system that knows no upper case, a digest of the parts tells them apart; a cell
    whose parts were fit as they are keeps its plain name.

    >>> cell_names([["noise=repeat:0.3", "seed=1"]])
    ['noise=repeat_0.3_seed=1']
    """
    plain = [re.sub(r"[^\w.=+-]+", "_", ",".join(parts)) for parts in cells]
    fit = [name == "_".join(parts) for name, parts in zip(plain, cells)]
    number = Counter(map(_folded, plain))
    taken = set()
    names = []
    for name, parts, as_is in zip(plain, cells, fit):
        alone = number[_folded(name)] == 1
        first = as_is and _folded(name) not in taken
        if as_is:
            taken.add(_folded(name))
        short = len(name.encode("utf-8")) <= _LONGEST and not name.endswith(".")
        names.append(name if short and (alone or first) else _digested(name, parts))
    return names


def _folded(name: str) -> str:
    """What a file system that is blind for case and for trailing dots makes of a name."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).rstrip(".")


def _digested(name: str, parts: Sequence[str]) -> str:
    digest = hashlib.sha256(json.dumps(list(parts)).encode("utf-8")).hexdigest()[:8]
    cut = name.encode("utf-8")[: _LONGEST - 20].decode("utf-8", "ignore").rstrip(".")
    return f"{cut}-{digest}"
