"""GPT-2's byte-level BPE: how a word is written that moves to or from a sentence's start."""

import contextlib
import json
import unicodedata
from typing import Dict, Iterable, List, Optional, Tuple

SPACE = "\u0120"
_CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")


def read_gpt2_encoder(path: str) -> dict:
    """Map GPT-2 piece ids (as text, the symbols of BART's dictionary) to pieces.

    Raises ValueError if the file at ``path`` is anything else.
    """
    try:
        with open(path, encoding="utf-8") as f:
            encoder = json.load(f)
    except ValueError:  # no JSON, or not even text
        encoder = None
    if not isinstance(encoder, dict) or not encoder:
        raise ValueError(f"{path} is not a GPT-2 encoder.json (a map from pieces to numbers)")
    return {str(number): piece for piece, number in encoder.items()}


def byte_alphabet() -> List[str]:
    """The character that stands for each of the 256 bytes: itself where it can be seen.

    >>> byte_alphabet()[ord("a")], byte_alphabet()[ord(" ")] == SPACE
    ('a', True)
    """
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in seen else next(others)) for byte in range(256)]


def plain_text(pieces: Iterable[str]) -> List[str]:
    """Pieces in the byte alphabet as text; those that are no text by themselves are left out.

    >>> plain_text(["caf\u00c3\u00a9", "\u00c3"])
    ['café']
    """
    values = {character: byte for byte, character in enumerate(byte_alphabet())}
    found = []
    for piece in pieces:
        with contextlib.suppress(KeyError, UnicodeDecodeError):
            found.append(bytes(values[character] for character in piece).decode("utf-8"))
    return found


class Speller:
    """Writes words in pieces as GPT-2 does.

    Args:
        ranks: pieces and their numbers, as in encoder.json. The numbers follow the order of the
            merges, so that the list of merges can be told from them.
    """

    def __init__(self, ranks: Dict[str, int]):
        self._ranks = ranks
        self._characters = byte_alphabet()
        self._bytes = {character: byte for byte, character in enumerate(self._characters)}
        self._pairs: Dict[str, Optional[Tuple[str, ...]]] = {}
        self._spelled: Dict[str, Optional[List[str]]] = {}

    def spell(self, word: str) -> Optional[List[str]]:
        """A word in the byte alphabet, with the space before it or without, as pieces.

        None where that cannot be told: no UTF-8 text, white space within it, unknown bytes.
        """
        if word not in self._spelled:
            self._spelled[word] = self._spell(word)
        return self._spelled[word]

    def _spell(self, word: str) -> Optional[List[str]]:
        try:
            text = bytes(self._bytes[character] for character in word).decode("utf-8")
        except (KeyError, UnicodeDecodeError):
            return None
        if not text.strip() or any(map(str.isspace, text[1:])):
            return None
        out: List[str] = []
        for part in _parts(text):
            out += self._merged([self._characters[byte] for byte in part.encode("utf-8")])
        return out if all(piece in self._ranks for piece in out) else None

    def _merged(self, pieces: List[str], below: Optional[int] = None) -> List[str]:
        """Merge the pair that was learnt first, again and again; only merges ``below`` a rank."""
        while len(pieces) > 1:
            best = None
            for i, pair in enumerate(zip(pieces, pieces[1:])):
                rank = self._ranks.get("".join(pair))
                if rank is None or (below is not None and rank >= below):
                    continue
                if (best is None or rank < best[0]) and self._pair("".join(pair)) == pair:
                    best = rank, i
            if best is None:
                break
            i = best[1]
            pieces = [*pieces[:i], pieces[i] + pieces[i + 1], *pieces[i + 2 :]]
        return pieces

    def _pair(self, piece: str) -> Optional[Tuple[str, ...]]:
        """The two pieces that ``piece`` was merged from: what the merges before it make of it."""
        if piece not in self._pairs:
            parts = self._merged(list(piece), below=self._ranks[piece])
            self._pairs[piece] = tuple(parts) if len(parts) == 2 else None
        return self._pairs[piece]


def _parts(text: str) -> List[str]:
    """The parts of a word that pieces never cross: letters, digits, the rest, contractions."""
    parts, start = [], 0
    while start < len(text):
        contraction = next((c for c in _CONTRACTIONS if text.startswith(c, start)), None)
        if contraction:
            end = start + len(contraction)
        else:
            first = start + (text[start] == " ")
            end = first + 1
            while end < len(text) and _class(text[end]) == _class(text[first]):
                end += 1
        parts.append(text[start:end])
        start = end
    return parts


def _class(character: str) -> str:
    kind = unicodedata.category(character)[0]
    return kind if kind in "LN" else ""
