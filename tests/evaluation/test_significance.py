import os
import random

import pytest

from fairseq_eisl.evaluation.metrics.bleu import bleu
from fairseq_eisl.evaluation.significance import (
    format_significance,
    paired_bootstrap,
    significance_rows,
)

REFERENCES = [f"the {c} man rides a {d} bike in the {c} field ." for c in "abcdef" for d in "xyzuv"]


def spoilt(share, seed):
    """The references with a share of their words replaced."""
    rng = random.Random(seed)
    return [
        " ".join("?" if rng.random() < share else word for word in text.split())
        for text in REFERENCES
    ]


SYSTEMS = {"CE": spoilt(0.5, 1), "EISL": spoilt(0.1, 2), "twin": spoilt(0.5, 3)}


def test_a_clear_difference_is_significant_and_a_twin_is_not():
    baseline, better, twin = paired_bootstrap(SYSTEMS, REFERENCES, resamples=200).systems
    assert [baseline.name, better.name, twin.name] == list(SYSTEMS)
    assert baseline.p_value is None
    assert better.p_value == pytest.approx(1 / 201)  # no resample strays so far
    assert twin.p_value > 0.05
    for system in (baseline, better, twin):
        assert system.bleu == pytest.approx(bleu(SYSTEMS[system.name], REFERENCES).score)
        assert system.mean == pytest.approx(system.bleu, abs=system.margin) and system.margin > 0


def test_no_difference_is_not_significant():
    """sacrebleu itself would say 1 / (resamples + 1) here."""
    same = paired_bootstrap({"CE": SYSTEMS["CE"], "again": SYSTEMS["CE"]}, REFERENCES, 100)
    assert same.systems[1].p_value == 1.0
    assert same.systems[1].bleu == same.systems[0].bleu


def test_the_seed_decides_and_is_in_the_signature(monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    one, again, two = (paired_bootstrap(SYSTEMS, REFERENCES, 50, seed) for seed in (1, 1, 2))
    assert one == again and one.systems != two.systems
    assert "|bs:50|seed:1|" in one.signature and "|seed:2|" in two.signature
    assert os.environ["SACREBLEU_SEED"] == "7"
    monkeypatch.delenv("SACREBLEU_SEED")
    assert paired_bootstrap(SYSTEMS, REFERENCES, 50) == one
    assert "SACREBLEU_SEED" not in os.environ


def test_how_bleu_is_computed_is_passed_on():
    result = paired_bootstrap(SYSTEMS, REFERENCES, 10, tokenize="13a", lowercase=True)
    assert "|tok:13a|" in result.signature and "|case:lc|" in result.signature


def test_rows_and_lines():
    result = paired_bootstrap(SYSTEMS, REFERENCES, 100)
    rows = significance_rows(result)
    assert [r["system"] for r in rows] == list(SYSTEMS)
    assert {r["baseline"] for r in rows} == {"CE"}
    assert rows[0]["p_value"] == "" and rows[1]["p_value"] == "0.0099"
    assert rows[1]["bleu_signature"] == result.signature
    lines = format_significance(result).splitlines()
    assert lines[0].startswith("CE    BLEU ") and lines[0].endswith("baseline")
    assert "95 % interval" in lines[1] and lines[1].endswith("p <= 0.01")
    assert lines[-1] == f"paired bootstrap, {result.signature}"


@pytest.mark.parametrize(
    "systems, options, message",
    [
        ({"CE": REFERENCES}, {}, "a baseline and a system to compare are needed, not 1"),
        ({"CE": REFERENCES, "EISL": REFERENCES[1:]}, {}, "EISL: 29 hypotheses for 30"),
        (SYSTEMS, {"tokenize": "moses"}, "none, 13a, intl.*'moses'"),
        (SYSTEMS, {"resamples": 0}, "resamples must be 1 or more, not 0"),
        (SYSTEMS, {"seed": 0}, "seed must be 1 or more, not 0"),
    ],
)
def test_wrong_inputs_are_refused(systems, options, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(systems, REFERENCES, **options)
