"""Decoding models whose slots may say a blank: room for it, and none in what is read."""

import math

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.decoding.fairseq.blanks import stretched
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.decoding.refinement.models import (
    BOS,
    CMLM,
    EOS,
    LEV,
    LIMIT,
    LIMITS,
    NAT,
    PREDICTS_LENGTH,
    assert_blank,
    assert_equal,
    decode,
    each_arch,
    generator,
    predict,
    sample_of,
)

# -- the blank is no word ------------------------------------------------------------------------


def most_frequent(made, **options):
    """A word that the random model likes to say: let it be the blank."""
    tokens = torch.cat([found["tokens"] for found in decode(made, **options)])
    counts = tokens[tokens > 3].bincount()
    assert counts.max() > 2
    return int(counts.argmax())


@each_arch
@pytest.mark.parametrize("beam_size", [1, 3])
def test_blanks_are_dropped_everywhere(build, arch, beam_size):
    if arch == LEV and beam_size > 1:
        pytest.skip("predicts no length")
    made, options = build(arch), {"max_iter": 2, "retain_history": True, "beam_size": beam_size}
    plain = decode(made, **options)
    blank = most_frequent(made, **options)
    # Candidates are chosen by the scores of all slots; but one of blanks alone is never chosen.
    for before, found in zip(plain, decode(made, **options, blank=blank)):
        if beam_size > 1 and not set(before["tokens"].tolist()) - {0, 1, 2, blank}:
            continue
        assert found["score"] == before["score"]
        for old, new in zip([before, *before["history"]], [found, *found["history"]]):
            keep = old["tokens"] != blank
            assert torch.equal(new["tokens"], old["tokens"][keep])
            if old["positional_scores"] is not None:
                assert torch.equal(new["positional_scores"], old["positional_scores"][keep])


def test_repeats_around_a_blank_are_repeats(build, monkeypatch):
    """The slots say 5 5 9 5 6 between start and end, of which 9 is the blank."""
    made = build(CMLM)
    predict(made, monkeypatch, F.one_hot(torch.tensor(7), 256) * 50.0)
    said = torch.tensor([BOS, 5, 5, 9, 5, 6, EOS])

    def forward(normalize, encoder_out, prev_output_tokens, **unused):
        scores = F.one_hot(said, 20) * 99.0
        return scores.log_softmax(1).expand(len(prev_output_tokens), -1, -1)

    monkeypatch.setattr(made.model.decoder, "forward", forward)
    for options, expected in (
        ({}, [BOS, 5, 5, 9, 5, 6, EOS]),
        ({"blank": 9}, [BOS, 5, 5, 5, 6, EOS]),
        ({"remove_repeats": True}, [BOS, 5, 9, 5, 6, EOS]),
        ({"blank": 9, "remove_repeats": True}, [BOS, 5, 6, EOS]),
    ):
        for found in decode(made, ["w1 w2", "w3"], **options):
            assert found["tokens"].tolist() == expected


def test_a_reranker_does_not_read_blanks(build, toy):
    made, reranker = build(NAT), toy_corpus.setup(toy.bin, *LIMITS, scale=2).model.eval()
    source = sample_of(made, ["w1 w2"])["net_input"]["src_tokens"]
    given = [source, source.ne(1).sum(1)]

    def scores(*rows):
        hypotheses = [[{"tokens": torch.tensor(row), "score": 0.0}] for row in rows]
        with torch.no_grad():
            options = {"beam_size": len(rows), "blank": 9}
            found = generator(made, **options).rerank(reranker, hypotheses, given, len(rows))
        return [float(hypotheses[0]["score"]) for hypotheses in found]

    found = scores([BOS, 5, 6, EOS], [BOS, 9, 5, 9, 6, EOS], [BOS, 9, 9, EOS])
    assert found[0] == pytest.approx(found[1]) and math.isfinite(found[0])
    assert found[2] == -math.inf  # blanks alone are no translation


# -- room for blanks -----------------------------------------------------------------------------


def test_stretched_lengths():
    lengths = torch.tensor([0, 1, 2, 3, 4, 5, 12])
    assert stretched(lengths, 1.0).tolist() == lengths.tolist()
    assert stretched(lengths, 1.5).tolist() == [0, 1, 2, 4, 5, 7, 17]  # halves up
    assert stretched(lengths, 1.1).tolist() == [0, 1, 2, 3, 4, 5, 13]


@pytest.mark.parametrize("arch", PREDICTS_LENGTH)
@pytest.mark.parametrize("flags", [[], ["--pred-length-offset"]])
def test_predicted_lengths_are_multiplied(build, first_inputs, arch, flags):
    made = build(arch, *flags)
    decode(made)
    plain = first_inputs.pop().ne(1).sum(1)
    assert len(set(plain.tolist())) > 1
    decode(made, length_factor=1.5)
    assert_blank(first_inputs.pop(), stretched(plain, 1.5).clamp(max=LIMIT).tolist())
    decode(made, length_factor=1.25, beam_size=3)
    longest = 2 + int((LIMIT - 2) / 1.25)
    around = plain.clamp(max=longest).unsqueeze(1) + torch.tensor([-1, 0, 1])
    expected = stretched(around, 1.25).clamp(min=2, max=LIMIT)
    assert_blank(first_inputs.pop(), expected.flatten().tolist())


@pytest.mark.parametrize("factor", [1.3, 2.0])
def test_the_most_likely_lengths_are_multiplied(build, monkeypatch, first_inputs, factor):
    made = build(NAT)
    scores = torch.full((256,), -50.0)
    scores[torch.tensor([6, 4, 9])] = torch.tensor([0.0, -1.0, -2.0])
    predict(made, monkeypatch, scores)
    decode(made, ["w1", "w2"], length_factor=factor, beam_size=3, length_candidates="top-k")
    expected = stretched(torch.tensor([6, 4, 9]), factor).clamp(max=LIMIT).tolist()
    assert_blank(first_inputs.pop(), expected * 2)


@pytest.mark.parametrize("arch", [NAT, CMLM])
@pytest.mark.parametrize("options", [{}, {"beam_size": 3, "max_iter": 3}])
def test_a_padded_batch_is_decoded_like_its_sentences(build, arch, options):
    made = build(arch)
    options = {**options, "length_factor": 1.4, "blank": most_frequent(made)}
    together = decode(made, **options)
    for sentence, found in zip(SENTENCES, together):
        assert_equal(found, decode(made, [sentence], **options)[0])


@pytest.mark.parametrize("factor", [0.9, math.nan, math.inf, -2.0])
def test_a_factor_out_of_range_is_named(build, factor):
    with pytest.raises(ValueError, match="--length-factor must be a finite number, 1 or above"):
        generator(build(NAT), length_factor=factor)


def test_without_a_predicted_length_there_is_nothing_to_multiply(build, toy):
    words = "--length-factor 1.2: LevenshteinTransformerModel predicts no length"
    with pytest.raises(ValueError, match=words):
        decode(build(LEV), length_factor=1.2)
    with pytest.raises(ValueError, match=words):
        toy_corpus.setup(toy.bin, "--length-factor", "1.2", arch=LEV)
