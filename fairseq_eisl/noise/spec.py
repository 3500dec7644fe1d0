"""Noise specifications: ``repeat:0.2,blank:0.1`` to one corruption function."""

import difflib
import math
from dataclasses import dataclass
from random import Random
from typing import Callable, Dict, List, Optional, Tuple

from . import operators as ops
from .operators import Context, Operator, Words


def _number(kind: type, text: str):
    """``text`` as a number, NaN if it is none."""
    try:
        return math.nan if "_" in text else kind(text)  # Python reads 0_1 as 1
    except ValueError:
        return math.nan


def _probability(text: str) -> float:
    value = _number(float, text)
    if not 0.0 <= value <= 1.0:
        raise ValueError("a probability between 0 and 1 is needed")
    return value


def _level(text: str) -> float:
    value = _number(float, text)
    if not 0.0 <= value <= 10.0:
        raise ValueError("a level between 0 and 10 is needed (5% of each noise a level)")
    return value


def _swaps(text: str):
    if text == ops.ALL:
        return text
    value = _number(int, text)
    if not value >= 0:
        raise ValueError("a number of swaps (0, 1, 2, ...) or 'all' is needed")
    return value


@dataclass(frozen=True)
class _Kind:
    argument: str
    parse: Callable
    build: Callable[..., Operator]
    needs_vocabulary: bool = False
    keeps_words: bool = False  # permutes the words: the length in tokens cannot change


def _shuffle(value) -> Operator:
    if value == ops.ALL:
        return lambda words, rng, ctx: ops.permute(words, rng)
    return lambda words, rng, ctx: ops.swap(words, rng, value)


KINDS: Dict[str, _Kind] = {
    "shuffle": _Kind("number of swaps, or all", _swaps, _shuffle, keeps_words=True),
    "repeat": _Kind("probability", _probability, lambda p: lambda w, r, c: ops.repeat(w, r, p)),
    "blank": _Kind(
        "probability", _probability, lambda p: lambda w, r, c: ops.blank(w, r, p, c.blank)
    ),
    "drop": _Kind("probability", _probability, lambda p: lambda w, r, c: ops.drop(w, r, p)),
    "substitute": _Kind(
        "probability",
        _probability,
        lambda p: lambda w, r, c: ops.substitute(w, r, p, c.vocabulary),
        needs_vocabulary=True,
    ),
    "insert": _Kind(
        "probability",
        _probability,
        lambda p: lambda w, r, c: ops.insert(w, r, p, c.vocabulary),
        needs_vocabulary=True,
    ),
    "synthetic": _Kind(
        "level 0..10", _level, lambda x: lambda w, r, c: ops.synthetic(w, r, x, c.blank)
    ),
    "synthetic_released": _Kind(
        "level 0..10",
        _level,
        lambda x: lambda w, r, c: ops.synthetic_released(w, r, x, c.blank, c.vocabulary),
        needs_vocabulary=True,
    ),
}


@dataclass(frozen=True)
class NoiseSpec:
    """A parsed specification; calling it corrupts one sentence."""

    text: str
    operators: Tuple[Operator, ...]
    needs_vocabulary: bool
    keeps_words: bool

    def __reduce__(self):  # data loader workers that do not fork need to pickle it
        return parse_noise, (self.text,)

    def __call__(self, words: Words, rng: Random, context: Context) -> Words:
        """Corrupt ``words`` (a list of opaque words) with the stream ``rng``.

        Raises ValueError if a vocabulary is needed and ``context`` has none.
        """
        if self.needs_vocabulary and not context.vocabulary:
            raise ValueError(f"noise {self.text!r} draws random words and needs a vocabulary")
        for operator in self.operators:
            words = operator(words, rng, context)
        return words


def parse_noise(spec: Optional[str], flag: str = "--noise") -> NoiseSpec:
    """Parse a noise specification.

    ``flag`` is named in the errors (ValueError) for unknown noises and for
    arguments outside their range. ``none`` (or None) means no noise; an empty text, which is
    what a misspelt variable of a shell becomes, is an error.

    >>> from fairseq_eisl.noise.operators import Context, example_rng
    >>> noise = parse_noise("repeat:1,blank:0")
    >>> noise(["a", "b"], example_rng(1, 0), Context(blank="unk"))
    ['a', 'a', 'b', 'b']
    """
    choices = ", ".join(f"{n}:<{k.argument}>" for n, k in KINDS.items())
    spec = "none" if spec is None else spec
    if not spec.strip():
        raise ValueError(
            f"{flag}: {spec!r} names no noise; choose from none, {choices}, or several of them "
            "joined by commas"
        )
    spec = spec.strip()
    parts = [] if spec == "none" else [p.strip() for p in spec.split(",")]
    built: List[Operator] = []
    kinds: List[_Kind] = []
    for part in parts:
        name, _, argument = (text.strip() for text in part.partition(":"))
        said = repr(part) if part == spec else f"{part!r} in {spec!r}"
        kind = KINDS.get(name)
        if kind is None:
            near = difflib.get_close_matches(name, KINDS, 1)
            meant = f"did you mean {near[0]}? (" if near else ""
            raise ValueError(
                f"{flag}: {said} is no known noise; {meant}choose from none, {choices}, "
                f"or several of them joined by commas{')' if near else ''}"
            )
        try:
            value = kind.parse(argument)
        except ValueError as err:
            raise ValueError(f"{flag}: {said}: {err}; write {name}:<{kind.argument}>") from None
        built.append(kind.build(value))
        kinds.append(kind)
    return NoiseSpec(
        text=spec,
        operators=tuple(built),
        needs_vocabulary=any(k.needs_vocabulary for k in kinds),
        keeps_words=all(k.keeps_words for k in kinds),
    )
