import pytest

from fairseq_eisl.common.rows import append_row
from fairseq_eisl.evaluation.intervals import interval, p_text, read_tests
from fairseq_eisl.evaluation.summary import evidence

from .logs import row


def sampled(system="EISL", p="0.0010", signature="nrefs:1|bs:1000|seed:1|tok:none", **changes):
    bleu = row(system)["bleu"]
    values = {
        "system": system,
        "baseline": "CE",
        "bleu": bleu,
        "bleu_mean": f"{float(bleu) + 0.1:.2f}",
        "bleu_margin": "1.00",
        "p_value": "" if system == "CE" else p,
        "bleu_signature": signature,
        "noise": "repeat:0.5",
        "seed": "1",
    }
    return {**values, **changes}


@pytest.mark.parametrize(
    "p, resamples, text",
    [
        ("0.0010", "1000", "<= 0.001"),
        ("0.0020", "1000", "= 0.0020"),
        ("1.0000", "1000", "= 1.0000"),
        ("0.0099", "100", "<= 0.01"),
        ("0.0198", "100", "= 0.0198"),
        ("0.0033", "300", "<= 0.0034"),  # 1 / 301 is more than 0.0033
        ("0.0001", "10000", "<= 0.0001"),
        ("0.0000", "100000", "<= 0.0001"),  # four digits cannot say less
        ("0.5000", "1", "<= 0.5"),
    ],
)
def test_the_least_p_there_can_be_is_a_bound(p, resamples, text):
    """A bootstrap of n resamples never says less than 1 / (n + 1)."""
    assert p_text(p, f"nrefs:1|bs:{resamples}|seed:1") == text


def test_without_a_number_of_resamples_p_is_as_it_stands():
    assert p_text("0.0010", "nrefs:1|abs:1000") == "= 0.0010"


def test_an_interval_is_of_its_row_only():
    tests = [sampled("CE"), sampled("EISL")]
    found = interval(row("EISL"), tests)
    assert found == (pytest.approx(31.2), pytest.approx(33.2), "<= 0.001", "CE")
    assert interval(row("CE"), tests).p == ""
    for other in (row("PG"), row("EISL", "none"), row("EISL", seed="2"), row("EISL", bleu="32.2")):
        assert interval(other, tests) is None
    low = interval(row("CE"), [sampled("CE", bleu_mean="0.5")])
    assert low.low == 0.0  # no BLEU is below
    assert interval(row("EISL"), [*tests, sampled(p="0.4")]).p == "= 0.4"  # the last one counts


def test_what_the_headline_rests_on():
    rows = [
        row("CE", sentences="1071", model="small"),
        row("EISL", sentences="1071", model="small"),
    ]
    assert evidence(rows, [sampled("CE"), sampled("EISL")]) == (
        "95 % interval: CE 7.6 to 9.6, EISL 31.2 to 33.2. EISL against CE p <= 0.001 (paired "
        "bootstrap over the test sentences). Test set: Multi30k test 2018 de-en, 1071 sentences. "
        "Noise repeat:0.5, model small, seed 1."
    )
    assert "not tested" in evidence(rows) and ", 7 sentences" in evidence([row()], size=7)
    seeds = [row(s, seed=k, bleu=f"{10 + int(k)}") for s in ("CE", "EISL") for k in "123"]
    assert "Least to largest of the seeds: CE 11.0 to 13.0, EISL 11.0 to 13.0" in evidence(seeds)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"bleu_mean": "high"}, "bleu_mean is 'high', no number"),
        ({"p_value": "small"}, "p_value is 'small', no number"),
    ],
)
def test_wrong_tests_are_named(tmp_path, change, message):
    path = str(tmp_path / "tests.csv")
    append_row(path, sampled(**change))
    with pytest.raises(ValueError, match=f"tests.csv: {message}"):
        read_tests(path)
