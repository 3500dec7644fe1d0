"""Is a difference in BLEU more than chance? sacrebleu's paired bootstrap."""

import contextlib
import os
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from .intervals import ends, p_text
from .metrics.bleu import TOKENIZERS
from .metrics.texts import check_pairs

_SEED = "SACREBLEU_SEED"
LEAST, MOST = 20, 100_000
"""Resamples for results: fewer leave none outside of a 95 % interval, more cost only memory."""


class System(NamedTuple):
    """One system of a test.

    bleu: of the whole test set. mean, margin: the 95 % interval over the resamples is
    ``mean - margin`` to ``mean + margin``. p_value: of the difference to the baseline,
    None for the baseline itself.
    """

    name: str
    bleu: float
    mean: float
    margin: float
    p_value: Optional[float]


class Significance(NamedTuple):
    """systems: the baseline first. signature: sacrebleu's, with seed and resamples."""

    systems: List[System]
    signature: str


def paired_bootstrap(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    resamples: int = 1000,
    seed: int = 1,
    tokenize: str = "none",
    lowercase: bool = False,
) -> Significance:
    """Compare the BLEU of each of ``systems`` with that of the first one.

    The same sentences are drawn, with replacement, for all systems; p is the share of
    resamples whose difference strays further from the mean difference than the difference
    found. ``bs`` in the signature is the number of resamples.

    Raises:
        ValueError: fewer than two systems, unequal counts, fewer than two sentences, an
            unknown tokenizer, or a number or seed below 1.
    """
    if len(systems) < 2:
        raise ValueError(f"a baseline and a system to compare are needed, not {len(systems)}")
    for name, hypotheses in systems.items():
        try:
            check_pairs(hypotheses, references)
        except ValueError as err:
            raise ValueError(f"{name}: {err}") from None
    if tokenize not in TOKENIZERS:
        raise ValueError(f"tokenize must be one of {', '.join(TOKENIZERS)}, not {tokenize!r}")
    for what, value in (("resamples", resamples), ("seed", seed)):
        if value < 1:  # sacrebleu takes 0 for its default number, and for no seed at all
            raise ValueError(f"{what} must be 1 or more, not {value}")
    if len(references) < 2:
        raise ValueError("one sentence cannot be drawn from: a test needs 2 or more")
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    named: List[Tuple[str, Sequence[str]]] = [(n, list(texts)) for n, texts in systems.items()]
    with _environment(_SEED, str(seed)):
        test = PairedTest(named, {"BLEU": metric}, [list(references)], "bs", resamples)
        signatures, scores = test()
    found = [
        _system(name, result, scores["BLEU"][0]) for name, result in zip(systems, scores["BLEU"])
    ]
    return Significance(found, str(signatures["BLEU"]))


def _system(name: str, result, baseline) -> System:
    p_value = result.p_value
    if p_value is not None and result.score == baseline.score:
        # sacrebleu counts resamples that stray further than 0; of a system tested against
        # itself none do, and it would call no difference at all significant.
        p_value = 1.0
    return System(name, float(result.score), float(result.mean), float(result.ci), p_value)


def significance_rows(result: Significance) -> List[Dict[str, str]]:
    """Columns of each system, for a file of rows of their own."""
    return [
        {
            "system": system.name,
            "baseline": result.systems[0].name,
            "bleu": f"{system.bleu:.2f}",
            "bleu_mean": f"{system.mean:.2f}",
            "bleu_margin": f"{system.margin:.2f}",
            "p_value": "" if system.p_value is None else f"{system.p_value:.4f}",
            "bleu_signature": result.signature,
        }
        for system in result.systems
    ]


def format_significance(result: Significance) -> str:
    """A line for each system, then the signature."""
    width = max(len(system.name) for system in result.systems)
    lines = []
    for system in result.systems:
        verdict = "baseline"
        if system.p_value is not None:
            verdict = f"p {p_text(f'{system.p_value:.4f}', result.signature)}"
        low, high = ends(system.mean, system.margin)
        interval = f"95 % interval {low:.2f} to {high:.2f}"
        lines.append(f"{system.name.ljust(width)}  BLEU {system.bleu:.2f}  {interval}  {verdict}")
    return "\n".join([*lines, f"paired bootstrap, {result.signature}"])


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """Set a variable for a block: sacrebleu takes its seed from nowhere else."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
