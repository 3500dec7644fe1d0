import pytest

from fairseq_eisl.evaluation.summary import evidence, headline, settings, varying

from .logs import row


def two(noise="repeat:0.5", ce="10.49", eisl="24.5", **changes):
    return [row("EISL", noise, bleu=eisl, **changes), row("CE", noise, bleu=ce, **changes)]


def test_the_baseline_comes_last_in_the_sentence():
    assert headline(two()) == "EISL 24.5 BLEU against CE 10.5."
    more = [*two(), row("CTC", bleu="20")]
    assert headline(more) == "EISL 24.5, CTC 20.0 BLEU against CE 10.5."
    assert headline([row("A"), row("B")]) == "B 32.1 BLEU against A 32.1."


def test_seeds_are_averaged_and_the_last_row_counts():
    rows = [*two(seed="1", ce="99"), *two(seed="2", ce="20"), *two(seed="1", ce="10")]
    assert headline(rows) == "EISL 24.5 BLEU against CE 15.0 (mean of 2 seeds)."


def test_of_several_settings_the_widest_difference_is_told():
    rows = [*two("none", "30", "30"), *two("repeat:0.3", "31", "30"), *two("repeat:0.5")]
    assert varying(rows) == ["noise"]
    assert headline(rows) == (
        "EISL 24.5 BLEU against CE 10.5, where they differ most (noise repeat:0.5). "
        "Highest BLEU: equal in 1, CE in 1, EISL in 1 of 3 settings."
    )


@pytest.mark.parametrize("name", ["beam", "lenpen", "lm_weight"])
def test_ways_to_decode_are_never_taken_for_one_another(name):
    ways = [row("CE", bleu="30", **{name: "5"}), row("CE", bleu="20", **{name: "1"})]
    ways.append(row("EISL", bleu="25", **{name: "5"}))
    assert headline(ways) == "EISL 25.0 BLEU against CE 30.0."
    # Trials may have chosen another one for each system.
    assert headline(ways[1:]) == "EISL 25.0 BLEU against CE 20.0." and varying(ways) == [name]


def test_the_seed_is_told_of_each_system():
    assert "seed 1." in evidence([row("CE", seed="1"), row("EISL", seed="1")])
    told = evidence([row("CE", seed="1"), row("EISL", seed="2")])
    assert "seeds: CE 1, EISL 2." in told, told


def test_ways_to_search_are_never_taken_for_one_another():
    rows = [*two(search="lookahead"), *two(ce="21", search="lookahead, repeats removed")]
    assert headline(rows) == (
        "EISL 24.5 BLEU against CE 10.5, where they differ most (search lookahead). "
        "Highest BLEU: EISL in 2 of 2 settings."
    )


def test_the_difference_may_be_a_loss():
    assert headline(two("a:1", "30", "10")) == "EISL 10.0 BLEU against CE 30.0."


def test_kinds_of_bleu_are_never_compared():
    rows = [row("CE"), row("EISL", bleu_signature="nrefs:1|tok:13a")]
    assert [list(each.bleu) for each in settings(rows)] == [["CE"], ["EISL"]]
    assert "against" not in headline(rows) and headline(rows) == "CE 8.5 BLEU; EISL 32.1 BLEU."


def test_one_system_alone():
    assert headline([row("CE")]) == "CE 8.5 BLEU."
    many = [row("CE", f"repeat:0.{i}") for i in range(6)]
    assert headline(many).endswith("CE 8.5 BLEU (noise repeat:0.3); and more below.")


def test_an_undefined_bleu_is_not_compared():
    assert headline(two(ce="nan")) == "CE nan BLEU; EISL 24.5 BLEU."


def test_wrong_rows():
    with pytest.raises(ValueError, match="bleu is 'high', no number: system EISL"):
        headline(two(eisl="high"))
