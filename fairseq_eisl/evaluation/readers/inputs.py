"""What the flags name: files, logs and key=value pairs. What goes wrong is one line."""

import os
import sys
from typing import Dict, List, Optional, Sequence

from ...common.errors import Refused, naming
from ...common.files import read_lines
from .. import PROGRAM
from .generation_log import HINT, read_generation_log
from .subword_check import FLAG, check_pieces, collapsed, leftovers


def pairs(
    name: str, texts: Sequence[str], files: bool = False, may_be_empty: bool = False
) -> Dict[str, str]:
    """``key=value`` texts of the flag ``name``; the key ends at the first ``=``.

    ``files``: the values are files, and a key may hold ``=``: it ends at the first one behind
    which there is a file, if there is any. ``may_be_empty``: ``key=`` is a pair, too.
    """
    found: Dict[str, str] = {}
    for text in texts:
        places = [at for at, character in enumerate(text) if character == "="]
        named = [at for at in places if files and os.path.exists(text[at + 1 :].strip())]
        at = (named or places or [len(text)])[0]
        key, equals, value = text[:at].strip(), text[at : at + 1], text[at + 1 :].strip()
        if not (equals and key and (value or may_be_empty)):
            raise Refused(f"{name} {text}: key=value is needed")
        if key in found:
            raise Refused(f"{name} {text}: {key} is given twice")
        found[key] = value
    return found


def warn(text: str) -> None:
    """A line beside the results."""
    print(f"{PROGRAM}: {text}", file=sys.stderr)


def read_reference(path: str, given: str = "--reference", plain: bool = False) -> List[str]:
    """Sentences of words. ``plain``: they are, whatever looks like pieces of words."""
    with naming(f"{given} {path}", path):
        references = read_lines(path)
        check_words(references, path, [], plain)
    return references


def read_hypotheses(
    given: str, path: str, reference: str, references: List[str], plain: bool = False
) -> List[str]:
    """The hypotheses of a log, one for each sentence of ``references``, those of a file."""
    with naming(given, path):
        hypotheses = read_generation_log(path).hypotheses
        check_words(hypotheses, path, references, plain)
    if len(hypotheses) != len(references):
        raise Refused(
            f"{given}: {len(hypotheses)} hypotheses for the {len(references)} lines of "
            f"--reference {reference}: another test set? Or: {HINT}"
        )
    odd = collapsed(hypotheses, references)
    if odd:
        warn(f"{given}: {odd}; scored as it is")
    return hypotheses


def check_words(
    texts: List[str],
    path: str,
    references: List[str],
    plain: bool,
    sentences: Optional[Sequence[int]] = None,
) -> None:
    """Refuse what looks like pieces of words, or, of what are ``plain`` words, say so.

    ``sentences``: which sentence each of the texts is of, where there are several of one.
    """
    if plain:
        for what in leftovers(texts, references, sentences):
            warn(f"{path}: {what}; scored as it is ({FLAG})")
    else:
        check_pieces(texts, path, references, sentences)
