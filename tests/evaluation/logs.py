"""Logs as fairseq writes them, for the tests of this folder."""

from typing import Iterable, Optional, Sequence


def generation_log(
    hypotheses: Sequence[str],
    references: Optional[Sequence[str]] = None,
    order: Optional[Iterable[int]] = None,
    nbest: int = 1,
    detokenised: bool = True,
) -> str:
    """Standard output of fairseq-generate; sentences in ``order``, by default longest first."""
    if order is None:
        order = sorted(range(len(hypotheses)), key=lambda i: -len(hypotheses[i]))
    lines = ["2026-11-27 23:43:36 | INFO | fairseq_cli.generate | {'seed': 1}"]
    for i in order:
        lines.append(f"S-{i}\tquelle {i}")
        if references is not None:
            lines.append(f"T-{i}\t{references[i]}")
        for n in range(nbest):
            text = hypotheses[i] if n == 0 else f"worse {n} {hypotheses[i]}"
            score = -0.25 - n
            lines.append(f"H-{i}\t{score}\t{text}")
            if detokenised:
                lines.append(f"D-{i}\t{score}\t{text}")
            lines.append(f"P-{i}\t-0.1000 -0.4000")
    lines.append("Generate test with beam=1: BLEU4 = 2.52, 18.7/7.0/1.2/0.3 (BP=1.000)")
    return "\n".join(lines) + "\n"


def simple_validation(updates: int, bleu: Optional[float], subset: str = "valid") -> str:
    """A line of --log-format simple."""
    score = "" if bleu is None else f"bleu {bleu} | "
    return (
        f"2026-11-27 23:51:18 | INFO | {subset} | epoch 001 | valid on '{subset}' subset | "
        f"loss 4.944 | nll_loss 4.944 | ppl 30.78 | {score}wps 1065 | wpb 3330 | bsz 202.8 | "
        f"num_updates {updates} | best_bleu 99"
    )


def json_validation(updates: int, bleu: float, subset: str = "valid") -> str:
    """A line of --log-format json."""
    return (
        f"2026-11-27 23:51:18 | INFO | {subset} | "
        f'{{"epoch": 1, "{subset}_loss": "4.944", "{subset}_bleu": "{bleu}", '
        f'"{subset}_num_updates": "{updates}", "{subset}_best_bleu": "99"}}'
    )


def row(system="CE", noise="repeat:0.5", seed="1", **changes):
    """A result row as `score` writes it, the columns that pictures read."""
    values = {
        "system": system,
        "noise": noise,
        "seed": seed,
        "test_set": "Multi30k test 2018 de-en",
        "bleu": "8.50" if system == "CE" else "32.10",
        "bleu_signature": "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0",
        "repetition": "39.90" if system == "CE" else "7.30",
        "repetition_reference": "0.01",
        "length_ratio": "1.720" if system == "CE" else "1.060",
        "length_error": "6.10" if system == "CE" else "1.20",
    }
    return {**values, **changes}
